"""The list of conversations, its folders, its search, and what is imported into it."""
