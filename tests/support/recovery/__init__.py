"""Runs of the service through a fixed input, with faults, compared byte by byte."""
