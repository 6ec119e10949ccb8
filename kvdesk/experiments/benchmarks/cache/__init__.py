"""`kvdesk bench cache`: what the cache spares, scenario by scenario."""
