"""Lifecycle of one input partition, from acquiring its transactional id to releasing it."""
