"""Files for other programs that we write and do not read: MCAP, GeoJSON, KML."""
