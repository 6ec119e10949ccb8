"""What came of operations by hand, on the page of the cache and as notices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtWidgets import QWidget

from kvdesk.protocol import cache
from kvdesk.protocol.operations import BatchRefused, CompactionPreview
from kvdesk.quantities import rate_text, tokens_text
from kvdesk.session import Changed
from kvdesk.session.changed import Tone, Update
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.effect_text import took

if TYPE_CHECKING:
    from kvdesk.ui.cache.instruments import Instruments


class Page(Protocol):
    """The page that shows answers."""

    @property
    def instruments(self) -> Instruments:
        """Its parts, made now if they were not yet."""

    @property
    def made_instruments(self) -> Instruments | None:
        """None until they were needed."""

    def reveal(self, widget: QWidget) -> None:
        """Scroll to a part of it."""


class OperationAnswers:
    """Shows each answer in the part of the page that asked."""

    def __init__(self, page: Page, kit: Kit) -> None:
        self._page, self._kit, self._store = page, kit, kit.store

    def ask_rebuild(self, settings: ContextSettings) -> bool:
        """Where cells would be lost, say what a new context costs first. False: there is nothing to ask."""
        held, n_cells = self._store.held(), self._store.n_cells
        if held or n_cells:
            self._page.instruments.question.ask(settings, n_cells or sum(n for _, n in held), held)
            self._page.reveal(self._page.instruments.question)
        return bool(held or n_cells)

    def open_compaction(self) -> None:
        """Show what a compaction would do."""
        self._page.instruments.compaction.ask()
        self._page.reveal(self._page.instruments.compaction)

    def show(self, changed: Changed, update: Update | None) -> None:
        """What has changed, and what came."""
        if changed & Changed.RANGE and self._store.range is not None:
            self._page.instruments.operations.set_range(*self._store.range)
        if (made := self._page.made_instruments) is not None:
            self._tell(made, update)
        match update:
            case cache.OperationDone():
                self._show_operation(update)
            case cache.Audited():
                tones: dict[str, Tone] = {"verified": "good", "mirrored": "", "mismatch": "danger"}
                said = tr("Audit at {at}: {result}").format(at=update.at, result=update.sentence)
                self._store.notify(said, tones[update.state])
            case cache.Verified():
                self._show_verified(update)
            case cache.Refilled():
                self._show_refilled(update)
            case BatchRefused():
                self._page.instruments.operations.show_refused(update)
                self._page.instruments.rulers.show_refused(update)
                self._store.notify(update.sentence, "warning")

    def _tell(self, made: Instruments, update: Update | None) -> None:
        """What changes only what is shown already."""
        match update:
            case cache.OperationDone() | cache.CacheView():
                made.compaction.show_state()
            case cache.SpeedSample():
                made.effect.add_speed(update)
            case cache.ContextReady():
                made.question.forget()
                made.effect.forget()
                made.compaction.hide()
            case cache.ContextPreview():
                made.question.show_preview(update)
            case CompactionPreview():
                made.compaction.show_preview(update)

    def _show_operation(self, done: cache.OperationDone) -> None:
        if done.note and done.effect is None:  # else it is shown with the effect
            title = self._store.title(done.conversation, -1)
            said = tr("“{title}” {what}") if done.emptied else tr("A branch of “{title}” {what}")
            self._store.notify(said.format(title=title, what=done.note), "warning")
        if done.effect is None:
            return
        titles = partial(self._store.title_after, done)
        self._page.instruments.effect.show_effect(done, titles, self._store.texts)
        self._page.reveal(self._page.instruments.effect)

    def _show_verified(self, event: cache.Verified) -> None:
        title = self._store.title(event.conversation, -1)
        said = tr("The next token of “{title}” is {verdict} ({tokens} computed again in {time}).")
        tokens = tokens_text(event.n_tokens)
        said = said.format(title=title, verdict=event.logits, tokens=tokens, time=took(event.ms))
        if event.ghost is not None:
            share = tr("{share} of what was removed still counts in the next token.").format(share=f"{event.ghost:.0%}")
            said = f"{said} {share}"
        elif event.without_effect:
            none = tr("What was removed makes no difference to it, even computed again: ask about it, then verify.")
            said = f"{said} {none}"
        self._store.notify(said, "good" if event.logits.verdict.same else "warning")

    def _show_refilled(self, event: cache.Refilled) -> None:
        """A rebuild is no operation with cells before and after; what it cost is said in the same place."""
        said = [tr("The context was rebuilt; that cannot be undone."), *filter(None, (event.not_carried,))]
        if event.n_read:
            tok_s = event.n_read / event.ms * 1e3 if event.ms else 0.0
            said.append(
                tr("Read again: {tokens} in {took} ({tok_s} tok/s).").format(
                    tokens=tokens_text(event.n_read), took=took(event.ms), tok_s=rate_text(tok_s)
                )
            )
        if event.n_carried:
            said.append(tr("Restored without reading: {tokens}.").format(tokens=tokens_text(event.n_carried)))
        said.append(
            tr("Conversations in the new cache: {n}.").format(n=event.n_conversations)
            if not event.n_left
            else tr("Conversations in the new cache: {n}; without room: {left}.").format(
                n=event.n_conversations, left=event.n_left
            )
        )
        self._page.instruments.effect.show_sentences(tr("rebuild of the context"), *said)
        self._page.reveal(self._page.instruments.effect)
