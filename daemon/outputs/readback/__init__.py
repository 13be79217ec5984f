"""What the broker has of us, read back: retained alarms, messages that others hear, and how far it was told."""
