"""The service beside what one would write in its place; see `measure`.

Each peer is a program of its own, written as by an expert of its framework. What they
have in common, the work on a chunk, is `by_hand`.
"""
