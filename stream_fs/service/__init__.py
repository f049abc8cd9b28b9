"""The service: configuration, observability, the process, and the loop that joins them."""
