"""From messages to rankings: decode, chunk, update, publish, against small protocols."""
