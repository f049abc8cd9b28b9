"""The service beside what one would write in its place; see `contest`.

Each peer is a program of its own, written as somebody would who knows the framework well. What they
have in common, the work on a chunk, is `by_hand`.
"""
