"""What faults are called: the name of each attack's incident, and the fit of the model that gives it."""
