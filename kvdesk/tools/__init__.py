"""Tool servers of the Model Context Protocol: what they offer, and calls to them. Knows neither Qt nor chats.

`client` runs every server on one event loop in one thread, `server_child` runs between kvdesk and a local server,
`schemas` turns their tools into what a chat template takes, and `config` reads the files of other programs.
"""
