"""Experiments and measurements, headless; results are data."""
