"""A proxy in front of any server of OpenAI's or Anthropic's protocol, which compares the requests that pass."""
