"""What several evaluations need: arguments, bootstrap, reports."""
