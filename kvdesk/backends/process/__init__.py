"""Safe mode: the engine runs in a child process, so that a crash costs a reload and not the window."""
