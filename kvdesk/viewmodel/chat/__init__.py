"""The conversations as they are shown: rows, messages, what is found in them."""
