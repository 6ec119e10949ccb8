"""The window. Knows values and messages, never the engine, the worker, the database or the controller."""
