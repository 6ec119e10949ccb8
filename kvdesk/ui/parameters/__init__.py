"""The parameters of one chat: system prompt, sampling, chat template, and what changing them costs."""
