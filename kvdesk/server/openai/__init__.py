"""OpenAI's protocol: chat completions, completions, responses, embeddings, the list of models."""
