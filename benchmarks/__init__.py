"""Speed and memory, each a figure compared with a named baseline in the same run."""
