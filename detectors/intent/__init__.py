"""intent: controllers that act without a conflict, or leave one alone."""
