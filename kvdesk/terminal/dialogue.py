"""One conversation, a turn at a time, on the service, the store and the host that the window has too."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from kvdesk.chat import Conversation
from kvdesk.conversations.changes import Change, ConversationChanged, Listener
from kvdesk.conversations.parameters import Parameters
from kvdesk.conversations.service import ConversationService
from kvdesk.conversations.tree import Tree
from kvdesk.errors import UserError
from kvdesk.host.host import Host
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.protocol.cache import CacheView, Watch
from kvdesk.protocol.chat import EngineDied, EngineRestarted, Generate, ModelLoaded, TextDelta, TurnEnded
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.quantities import tokens_text
from kvdesk.session.store import Store
from kvdesk.settings import Settings
from kvdesk.thinking import Thinking, levels_of
from kvdesk.translation import tr
from kvdesk.values import replace
from kvdesk.viewmodel.cells.readout import stats_parts
from kvdesk.viewmodel.palette import N_COLOURS

_LOOK_S: Final = 0.1
"""A wait ends at least this often, to see whether Ctrl+C was pressed: Windows does not wake a waiting thread for it."""
_WATCHER: Final = "terminal"


class Dialogue:
    """Asks and waits for the answer. Everything is called from one thread; the host runs on another.

    on_text   gets each piece of an answer as it comes
    listener  hears every change of the conversation, as the one who keeps it does
    stored    a conversation to go on with and its messages; None: a new one, with the system prompt of the settings
    """

    def __init__(
        self,
        host: Host,
        settings: Settings,
        on_text: Callable[[str], None],
        listener: Listener | None = None,
        stored: tuple[Conversation, Tree] | None = None,
    ) -> None:
        self.store = Store(settings)
        self.remark = ""  # about the model
        self._host, self._on_text = host, on_text
        self._wake = threading.Event()
        self._ended: dict[MessageId, TurnEnded] = {}
        self._failed: UserError | None = None
        self._interrupted = False
        self.service = ConversationService(
            host.submit, host.stop, lambda: self.store.settings.current, n_colours=N_COLOURS
        )
        if listener is not None:
            self.service.subscribe(listener)
        if stored is None:
            self.chat: ConversationId = self.service.create()
        else:
            conversation, tree = stored
            self.chat = conversation.id
            self.service.load([conversation])
            self.service.tree_read(self.chat, tree)
        self.service.subscribe(self._on_change)
        self._show()
        self._subscription = host.subscribe(self._wake.set, known=True)
        self._take()

    def think(self, thinking: Thinking) -> None:
        """From the next answer on."""
        self.service.set_parameters(self.chat, replace(Parameters.of(self.conversation), thinking=thinking))

    @property
    def levels(self) -> tuple[str, ...]:
        """Of thinking, as the chat template has them (`kvdesk.thinking.levels_of`)."""
        model = self.store.model
        return levels_of(self.conversation.template or (model.template if model is not None else ""))

    def close(self) -> None:
        """Nothing more is heard from the host."""
        self._subscription.close()

    @property
    def messages(self) -> list[Message]:
        """Those of the branch that is shown, oldest first."""
        return self.service.branch(self.chat)

    @property
    def question(self) -> Message | None:
        """The user's last message."""
        return next((message for message in reversed(self.messages) if message.role == "user"), None)

    @property
    def conversation(self) -> Conversation:
        found = self.service.get(self.chat)
        assert found is not None
        return found

    def ask(self, text: str) -> TurnEnded:
        """Send a message and wait for its answer. Raises UserError: the turn failed, the engine died, no text."""
        return self._answered(self.service.send(self.chat, text))

    def edit(self, text: str) -> TurnEnded:
        """The last question in other words, in a new branch, and its answer. Raises UserError."""
        question = self.question
        if question is None:
            raise UserError(tr("Nothing was asked yet."))
        return self._answered(self.service.turns.edit(self.chat, question.id, text))

    def ask_again(self) -> TurnEnded:
        """Another answer to the last question, in a new branch. Raises UserError."""
        if not self.messages or self.messages[-1].role != "assistant":
            raise UserError(tr("There is no answer yet."))
        self.service.turns.regenerate(self.chat)
        return self._answered(self.service.answer_of(self.chat))

    def view(self) -> CacheView:
        """The cells as they are now. Raises UserError if the engine died."""
        self.store.view = None
        self._host.submit(Watch(True, _WATCHER))
        self._wait(lambda: self.store.view is not None)
        self._host.submit(Watch(False, _WATCHER))
        assert self.store.view is not None
        return self.store.view

    @contextmanager
    def stopped_by_interrupt(self) -> Iterator[None]:
        """Inside it, the first Ctrl+C stops the answer; the next one raises KeyboardInterrupt."""

        def stop(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, signal.default_int_handler)
            self._interrupted = True  # nothing else: this thread may hold any lock now

        self._interrupted = False
        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self._interrupted = False

    # --- events -------------------------------------------------------------------------------------------------------

    def _answered(self, answer: MessageId | None) -> TurnEnded:
        if answer is None:
            raise UserError(tr("A prompt must have some text."))
        self._wait(lambda: answer in self._ended)
        ended = self._ended.pop(answer)
        if ended.state == "failed":
            raise UserError(ended.note)
        return ended

    def _wait(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            self._take()
            if self._interrupted:
                self._interrupted = False
                self.service.stop(self.chat)
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed

    def _take(self) -> None:
        events = self._subscription.take()
        self.service.take(events)
        for event in events:
            self.store.apply(event)
            self._show_event(event)

    def _show_event(self, event: Event) -> None:
        match event:
            case TextDelta() if event.conversation == self.chat:
                self._on_text(event.text)
            case TurnEnded() if event.conversation == self.chat:
                self._ended[event.answer] = event
            case ModelLoaded():
                self.remark = event.remark
            case CommandFailed() if isinstance(event.command, Generate):
                self._failed = UserError(event.sentence, event.detail)
            case EngineDied() | EngineRestarted():
                self._failed = UserError(event.sentence, event.detail)

    def _on_change(self, change: Change) -> None:
        if isinstance(change, ConversationChanged):
            self._show()

    def _show(self) -> None:
        self.store.show_conversations(self.service.conversations, self.chat)


def cost_line(ended: TurnEnded) -> str:
    """What an answer cost, and why it ended if it is not simply complete."""
    tokens = tokens_text(ended.stats.generated_tokens)
    stopped = tr("stopped") if ended.state == "stopped" else ""
    return " · ".join(filter(None, (*stats_parts(ended.stats), tokens, stopped, ended.note)))
