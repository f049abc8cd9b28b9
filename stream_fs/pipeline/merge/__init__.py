"""One ranking for a stream of several partitions, merged from their newest snapshots."""
