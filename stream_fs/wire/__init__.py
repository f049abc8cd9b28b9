"""Codecs of everything that travels: records in, rankings and dead letters out. No Kafka here."""
