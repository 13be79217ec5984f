"""signal: a number of a vehicle that is not what it used to be."""
