"""The memories of the engine, each with its own rules; `kvdesk.cache.mirror` puts them together."""
