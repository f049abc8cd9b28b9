"""The experiments, one module each: which settings to measure, and the rows of one setting."""
