"""gnss_interference: areas in which many aircraft lose their accuracy together."""
