"""The messages of each chat, for peers that get all of them with every request."""

Said = dict[str, str]
"""A message as OpenAI's API has it: role and content."""


class History:
    """Chats by their names."""

    def __init__(self) -> None:
        self._chats: dict[str, list[Said]] = {}

    def asked(self, chat: str, text: str) -> list[Said]:
        """The messages of a request."""
        return [*self._chats.get(chat, ()), {"role": "user", "content": text}]

    def answered(self, chat: str, text: str, answer: str) -> None:
        """Both belong to the chat now."""
        self._chats[chat] = [*self.asked(chat, text), {"role": "assistant", "content": answer}]

    def forget(self, chat: str) -> None:
        self._chats.pop(chat, None)
