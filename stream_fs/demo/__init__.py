"""`stream-fs demo`: the service on a real broker with real data, in a few minutes."""
