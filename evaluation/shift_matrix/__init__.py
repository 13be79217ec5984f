"""`evaluate shift_matrix`: models trained on one scenario and judged on others."""
