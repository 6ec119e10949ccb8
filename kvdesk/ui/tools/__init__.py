"""Tools in the window: servers in the settings, consent, the choice of a chat, calls and results among its messages."""
