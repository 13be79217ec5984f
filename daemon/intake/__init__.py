"""From the network to the pipeline: queue, sources next to the broker, dead letters, the pump."""
