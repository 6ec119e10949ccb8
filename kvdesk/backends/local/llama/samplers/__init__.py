"""Samplers of answers: llama.cpp's chain, grammars, probabilities, a limit of reasoning."""
