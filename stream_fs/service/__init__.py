"""What an operator meets: configuration, metrics, health, logs, and the loop that joins them."""
