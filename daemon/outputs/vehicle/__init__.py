"""Ways out to the vehicle itself."""
