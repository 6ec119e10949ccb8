"""The sequences of one context: which conversation has which, what is reused, evicted and saved."""
