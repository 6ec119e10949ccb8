"""The requests that run: which batch comes next, what leaves when a context is full, what costs what."""
