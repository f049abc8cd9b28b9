"""The command line, `stream-fs`: one module for each command."""
