"""Grammars in llama.cpp's notation GBNF, read and followed as llama.cpp does, but without ending the process."""
