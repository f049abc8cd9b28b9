"""Records in: the formats of the input topic, parsed into chunks."""
