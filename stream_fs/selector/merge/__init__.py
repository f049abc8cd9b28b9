"""Merging the models of several partitions into one."""
