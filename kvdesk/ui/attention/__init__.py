"""What the model looked at: a page of the inspector, a picture of every head, and a legend over the messages."""
