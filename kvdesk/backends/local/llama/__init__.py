"""Wraps llama.cpp: model, context, mirrored memory, saving and restoring states. Knows no conversations."""
