"""llama-server's own endpoints, in its shapes."""
