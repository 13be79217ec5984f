"""What flows: message schema, codec, fleet table and ring buffers, sources (MQTT, logs, simulator) and sinks."""
