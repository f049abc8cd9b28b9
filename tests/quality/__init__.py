"""Measurements that are not part of the test run: ``python -m tests.quality.merging``."""
