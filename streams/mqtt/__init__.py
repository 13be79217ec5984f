"""MQTT transports."""
