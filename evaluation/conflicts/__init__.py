"""`evaluate conflicts`: a controller's recorded episodes."""
