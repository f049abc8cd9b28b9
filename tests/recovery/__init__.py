"""The recovery proof: processes are killed, and what is published stays the same to the byte."""
