"""Receivers of Mode S and ADS-B: raw frames, SBS lines, readsb's documents."""
