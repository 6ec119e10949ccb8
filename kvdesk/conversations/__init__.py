"""Conversations without Qt: what a window, a server and the command line have in common."""
