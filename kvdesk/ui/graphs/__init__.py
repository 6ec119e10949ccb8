"""Graphs over time and over the attention span."""
