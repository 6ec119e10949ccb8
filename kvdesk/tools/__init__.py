"""Servers of tools, as the Model Context Protocol has them: what they offer, and their calls. Knows no Qt and no chats.

`client` runs all of them on one event loop with a thread of its own, `server_child` stands between kvdesk and a local
server, `schemas` makes of their tools what a chat template gets, `config` reads the files of other programs.
"""
