"""The small loops of the selector on either of two cores: compiled, or NumPy.

`interface` says what a core computes, `fallback` computes it in NumPy, `compiled` passes arrays to
the loops in C, and `dispatch` takes the one or the other.
"""
