"""Up and Down in an empty message box restore what was sent before."""

from collections.abc import Callable, Sequence

from kvdesk.ui.composer.composer import Composer


class SentMessages:
    """`sent` gives the texts that were sent, oldest first."""

    def __init__(self, composer: Composer, sent: Callable[[], Sequence[str]]) -> None:
        self._composer, self._sent = composer, sent
        self._back = 0  # how many messages ago what is shown was sent; 0: it was not recalled
        self._shown = ""

    def step(self, by: int) -> bool:
        """Show an older (-1) or a newer (1) message, after the newest an empty field. Whether there was anything to do:
        not where something else is typed.
        """
        text = self._composer.text
        if not self._back or text != self._shown:
            self._back = 0
            if text:
                return False
        sent = self._sent()
        wanted = self._back - by
        if not 0 <= wanted <= len(sent) or wanted == self._back:
            return bool(self._back)
        self._back = wanted
        self._shown = sent[-wanted] if wanted else ""
        self._composer.set_text(self._shown)
        return True
