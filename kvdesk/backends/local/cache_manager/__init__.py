"""The sequences of one context: who has which, what is reused, what is evicted, what is saved."""
