"""What mathematics and the specification say of the selector, checked on random input."""
