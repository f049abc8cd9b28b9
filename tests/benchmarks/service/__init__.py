"""The whole service on a real broker, against floors, peers and itself in other sizes."""
