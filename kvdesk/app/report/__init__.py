"""Help, reports of problems, and files that a person saves of what happened."""
