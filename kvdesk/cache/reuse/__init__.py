"""How much of a prompt is in the cache and why not more: the first different token, and what a client changed."""
