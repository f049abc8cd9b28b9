"""Bytes that mean harm, for everything that reads bytes."""
