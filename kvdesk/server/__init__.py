"""kvdesk as a server: the OpenAI protocol over HTTP, on the same host and the same cache as the chats. No Qt."""
