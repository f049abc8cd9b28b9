"""The methods that are compared, and their registry."""
