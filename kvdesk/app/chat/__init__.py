"""Conversations of the window: shown, branched, found, deleted, exported, imported, and files for them."""
