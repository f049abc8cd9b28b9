"""How fast the parts are, and how their cost grows. Not part of the test run: minutes each."""
