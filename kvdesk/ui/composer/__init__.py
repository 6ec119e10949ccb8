"""What is typed and what is attached to it, before it is sent."""
