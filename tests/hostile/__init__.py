"""A fuzzer for everything that reads bytes: `python -m tests.hostile`."""
