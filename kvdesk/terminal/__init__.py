"""A chat in a terminal, on the same host, conversations and store as the window's. Knows no Qt."""
