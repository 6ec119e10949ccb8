"""kvdesk: chat with GGUF models on a laptop CPU and watch what the KV cache is doing."""

__version__ = "0.1.0"
