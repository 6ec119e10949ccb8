"""What other programs' engines write about their cache: logs of llama-server, Ollama, LM Studio, llama-cpp-python."""
