"""The state of a context or a sequence as bytes: read, and cut."""
