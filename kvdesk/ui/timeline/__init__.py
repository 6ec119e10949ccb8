"""The Timeline tab: every operation, and the map as it left it."""
