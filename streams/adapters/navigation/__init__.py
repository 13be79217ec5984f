"""Satellite receivers on their own: NMEA 0183, gpsd, UBX. Each is the GPS of one vehicle, which the source names."""
