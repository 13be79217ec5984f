"""Telemetry messages without a broker: MessagePack and JSON lines on sockets, pipes and in files."""
