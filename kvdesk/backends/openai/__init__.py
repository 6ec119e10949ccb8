"""Servers that speak OpenAI's chat completions: what they are is found by asking, and chats go on there."""
