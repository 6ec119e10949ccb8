"""The page of the laboratory: questions about the KV cache, each answered by an experiment."""
