"""Rankings out: their fields, bytes and sizes."""
