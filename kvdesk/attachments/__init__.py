"""Files as text for the model: read in a child process, since they may be anything and come from anywhere."""
