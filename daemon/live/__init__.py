"""The live page: what it shows, how it is sent, and the files that a browser loads."""
