"""Attacks on the service on real brokers, and the proof that they change nothing.

``make campaign`` runs all parts at length; `make test` has a short form of each.
"""
