"""Safe mode: the engine in a child process, so that whatever ends it costs a reload and not the window."""
