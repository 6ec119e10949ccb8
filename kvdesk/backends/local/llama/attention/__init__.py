"""A second context of the model, in which attention is read."""
