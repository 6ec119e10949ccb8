"""Conversations as files: export as JSON, Markdown and HTML; import of kvdesk's JSON and of other programs' exports."""
