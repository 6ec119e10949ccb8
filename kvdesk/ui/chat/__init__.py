"""The pane of one conversation: its header, with parts of `ui.messages` and `ui.composer`."""
