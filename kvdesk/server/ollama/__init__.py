"""Ollama's protocol: what its clients ask first, and chats."""
