"""The controllers of what a build can do without."""
