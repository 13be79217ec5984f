"""`watchkeeper init`: looks at what there is on this machine, and writes a commented configuration for it."""
