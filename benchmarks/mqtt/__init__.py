"""Load, drains and transports: the MQTT side of the benchmarks."""
