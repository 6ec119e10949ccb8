"""The page of models: what is on this machine, whether it fits, and how fast it should be."""
