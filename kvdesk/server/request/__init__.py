"""The fields of a request as values, and what they mean to kvdesk: messages, tools, sampling, reasoning."""
