"""Turns conversations into prompt tokens: templates, and where messages lie in their output."""
