"""Models and servers that can be opened."""
