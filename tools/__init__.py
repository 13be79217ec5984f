"""Programs for people who work on the project: the checks of `make check` that no library has. Not shipped."""
