"""The thread between window and engine: an inbox of commands down, batches of events up."""
