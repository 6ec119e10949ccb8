"""The prefix tree of hashed blocks that vLLM and SGLang tell of by their KV events. No Qt, no network."""
