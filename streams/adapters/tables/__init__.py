"""Tables of flights: OpenSky, traffic, Parquet."""
