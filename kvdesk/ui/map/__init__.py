"""The cell map."""
