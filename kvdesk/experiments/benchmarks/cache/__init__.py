"""`kvdesk bench cache`: what the cache saves, scenario by scenario."""
