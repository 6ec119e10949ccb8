"""The questions that an empty chat offers, without Qt."""

from typing import Final

from kvdesk.message import TurnStats
from kvdesk.quantities import seconds_text
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

_PASSAGE: Final = marked(
    "A language model reads a text token by token, and a token is about three quarters of a word. For each token "
    "it computes two small lists of numbers in every layer, the key and the value. Later tokens look back at them "
    "to find out what was said before. To compute them all again for every new token would be far too slow, so "
    "the model keeps them in memory. This memory is called the KV cache, and it grows by the same amount with "
    "each token.\n\n"
    "A chat is where the cache pays off. Each time you ask something, the whole conversation so far is sent to "
    "the model again, because the model itself remembers nothing. Without a cache it would have to read "
    "everything from the start, and each answer would begin later than the one before. With a cache only the "
    "words that are new are read. The beginning has not changed, so its keys and values are still right. But if a "
    "single word near the beginning is changed, everything behind it has to be read again, since each token has "
    "seen all those before it.\n\n"
    "The cache has a price. It takes memory, which is why a long conversation needs a larger computer than a "
    "short one. When it is full, something has to go: old messages, other chats, or the precision of the numbers. "
    "A good program shows what is in it, and lets you choose."
)
_CODE: Final = """```python
def common_prefix(a, b):
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n
```"""


@dataclass(frozen=True, slots=True)
class Starter:
    """A card of the empty chat. `questions`: what it asks one after the other; `material` is below the first."""

    name: str
    title: str
    about: str
    questions: tuple[str, ...]
    material: str = ""

    def messages(self, *, in_english: bool) -> tuple[str, ...]:
        """What is sent. `in_english`: the model speaks nothing else."""
        said = [text if in_english else tr(text) for text in self.questions]
        if self.material:
            said[0] += "\n\n" + (self.material if in_english else tr(self.material))
        return tuple(said)


TWICE: Final = "twice"
STARTERS: Final = (
    Starter(
        TWICE,
        marked("Ask twice: see the second answer start sooner"),
        marked("Two questions about one text: the second one finds it in the cache."),
        (marked("What is this text about? Answer in one sentence."), marked("And in five words?")),
        _PASSAGE,
    ),
    Starter(
        "code",
        marked("Explain a piece of code"),
        marked("A short Python function. You can attach files too: PDF, Word, text."),
        (marked("What does this function do? Answer in two sentences."),),
        _CODE,
    ),
    Starter(
        "plain",
        marked("Why is the sky blue?"),
        marked("A plain question. You can type your own below."),
        (marked("Why is the sky blue? Answer in two sentences."),),
    ),
)


def compared(first: TurnStats, second: TurnStats) -> str:
    """How soon two answers began, and why; "" if nobody measured it."""
    if not first.ttft_ms or not second.ttft_ms:
        return ""
    text = tr(
        "The first answer began after {first}, the second after {second}: "
        "{reused} of its {prompt} tokens were in the cache."
    )
    return text.format(
        first=seconds_text(first.ttft_ms / 1e3),
        second=seconds_text(second.ttft_ms / 1e3),
        reused=f"{second.reused_tokens:,}",
        prompt=f"{second.prompt_tokens:,}",
    )
