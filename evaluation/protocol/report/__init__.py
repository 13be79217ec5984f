"""The protocol's result for people: tables, pictures, the HTML page, and the figures that were asked for."""
