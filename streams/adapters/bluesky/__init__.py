"""The BlueSky simulator, joined over its network or run from a scenario."""
