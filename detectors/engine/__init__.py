"""The Pipeline and what it needs: event time, windows, gateways, warm-up."""
