"""Adapters: feeds and recordings of other projects. Each declares itself; catalog.py lists them."""
