"""The vehicles: slots, ring buffers, and what the configuration declares about them."""
