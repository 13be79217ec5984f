"""The running process: command line, wiring, shutdown and reload, HTTP, journal, demo."""
