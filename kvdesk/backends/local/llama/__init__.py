"""llama.cpp itself: model, context, the memory that is mirrored, states in and out. No conversations."""
