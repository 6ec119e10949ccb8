"""Back ends, the programs that run a model: `local` is llama.cpp in this process."""
