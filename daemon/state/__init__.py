"""What survives a restart: snapshots on disk and how they are taken over."""
