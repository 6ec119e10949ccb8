"""The map of a server's blocks."""
