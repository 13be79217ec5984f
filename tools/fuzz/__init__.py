"""Seeded fuzzing: damaged and hostile files, payloads and configurations. `make fuzz` runs all of it."""
