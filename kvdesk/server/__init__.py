"""kvdesk as a server: OpenAI's and Anthropic's protocols over HTTP, on the host and the cache of the chats. No Qt."""
