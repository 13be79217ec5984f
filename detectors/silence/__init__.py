"""silence: a stream that has stopped."""
