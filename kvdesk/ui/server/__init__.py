"""Serving other programs, in the window: the switch, the address, the key, and who asks."""
