"""The pane of one conversation: its header, and what of `ui.messages` and `ui.composer` stands in it."""
