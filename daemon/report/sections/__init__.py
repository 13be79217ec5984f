"""The parts of a report's page, each made as HTML that can be read without its script."""
