"""What crosses the thread between a window (or a server, or a command line) and a back end: frozen values."""
