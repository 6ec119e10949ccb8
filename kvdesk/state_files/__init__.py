"""Files in which KV caches are saved: what is in them, whether they can be restored, and how two differ."""
