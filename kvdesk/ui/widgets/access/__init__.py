"""Keyboard, input methods, directions of text, and what a screen reader says."""
