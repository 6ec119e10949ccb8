"""Drives llama.cpp: model, context, sequences, turns. No Qt. `binding` is the only importer of llama_cpp."""
