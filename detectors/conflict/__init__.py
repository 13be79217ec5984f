"""conflict and los: pairs of aircraft that will lose separation, or have lost it."""
