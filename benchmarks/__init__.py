"""Speed and memory, each a figure beside a named baseline in the same run."""
