"""What the daemon serves over HTTP: metrics, health, and the server itself."""
