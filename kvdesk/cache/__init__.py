"""The KV cache as llama.cpp keeps it: an exact model of its cells, and ways to prove it. No Qt, no llama_cpp."""
