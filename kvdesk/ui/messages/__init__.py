"""The messages of a conversation: their widgets, what is done with one, its branches and alternatives."""
