"""`watchkeeper demo`: an embedded broker, the simulator and the daemon in one process group."""
