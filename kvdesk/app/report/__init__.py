"""Help, reports of problems, and files that a user saves of what happened."""
