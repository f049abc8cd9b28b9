"""A tool, not a test suite: injects faults into the service on real brokers.

``make campaign`` runs all parts; see README.md. Short forms of the parts are tests in
``tests/integration/campaign``.
"""
