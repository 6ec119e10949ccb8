"""Windows beside the main one, and commands that show one window."""
