"""Markdown of answers as widgets."""
