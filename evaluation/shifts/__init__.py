"""`evaluate shifts`: one aircraft of an episode is shifted, everything else and the seed stay the same."""
