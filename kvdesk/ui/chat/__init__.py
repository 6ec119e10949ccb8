"""Conversations: list, messages, composer."""
