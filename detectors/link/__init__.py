"""link: telemetry that arrives late, thin or with holes."""
