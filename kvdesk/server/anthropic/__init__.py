"""Anthropic's protocol: `/v1/messages`."""
