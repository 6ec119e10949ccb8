"""The cells as they are shown: what is in them, what tokens look at, what an operation changes."""
