"""Payloads to batches and back, and the reference page of the messages."""
