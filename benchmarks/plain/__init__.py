"""The plain ways that benchmarks measure against: what a textbook or a first attempt does."""
