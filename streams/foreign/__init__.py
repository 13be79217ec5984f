"""Bytes that others wrote: the one way to decode them, to unpack them, and to drive a library that reads them."""
