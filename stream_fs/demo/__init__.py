"""`stream-fs demo`: a real broker, real data, the service, and what it finds, in a few minutes."""
