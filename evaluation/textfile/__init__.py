"""`evaluate textfile`: finished evaluations for Prometheus."""
