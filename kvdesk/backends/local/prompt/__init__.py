"""Conversations to prompt tokens: templates, and where messages lie in what they render."""
