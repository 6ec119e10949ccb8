"""How much of a prompt is in the cache, and why not more: the first token that differs, and what a client changed."""
