"""The running requests: which batch comes next, what a full context evicts, how long decodes take."""
