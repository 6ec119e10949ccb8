"""The guided tour: the real window with the real model, driven through a script that a person can watch.

The script is a generator: it does something, says what it waits for, and goes on when that is so. Every step is
photographed, and everything measured ends in a report.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from kvdesk import paths, values
from kvdesk.app.controller import Controller
from kvdesk.cache.compaction import Layout
from kvdesk.message import ConversationId, Message, MessageId, new_message_id
from kvdesk.protocol.cache import CacheView, ContextReady, Forget, OperationDone
from kvdesk.protocol.chat import EngineDied, EngineRestarted, ModelLoaded, TurnEnded
from kvdesk.protocol.logprobs import unpack
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.operations import Compact, HandOperation, Operate, RemoveRange, Undo
from kvdesk.settings import ThemeChoice
from kvdesk.translation import tr
from kvdesk.ui.attention.page import AttentionPage
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.markdown.prose_view import ProseView
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.cells.attention import Spot
from kvdesk.viewmodel.chat.token_surprise import level_of
from tests.tour import sample_answer
from tests.tour.caption import Caption
from tests.tour.serving_steps import Condition, serving

TICK_MS = 30
SETTLE_S = 0.4
STEP_TICKS = 4000
"""At most for a step: two minutes in which the process runs."""


class Tour(QObject):
    """Drives `controller` and `window`; pictures and report.json go into `folder`. `pause_s` lets a person look.
    `themes`: every picture is made in each of them, and has its name at the end; none: in the one that is in force.
    """

    finished = Signal(bool)
    """The tour is over: True when every step did what it should."""

    def __init__(
        self,
        window: MainWindow,
        controller: Controller,
        folder: Path,
        pause_s: float,
        themes: Sequence[ThemeChoice] = (),
    ) -> None:
        super().__init__(window)
        self._window = window
        self._caption = Caption(window)
        self._controller = controller
        self._folder = folder
        self._pause_s, self._themes = pause_s, themes
        self._ended: dict[MessageId, TurnEnded] = {}
        self._view: CacheView | None = None
        self._operations: list[OperationDone] = []
        self._ready: list[ContextReady] = []
        self._report: dict[str, Any] = {"steps": [], "turns": [], "operations": [], "screenshots": []}
        self._problems: list[str] = []
        self._script = self._steps()
        self._waiting: Condition = lambda: True
        self._ticks_left = STEP_TICKS
        self._clock = QTimer(self, interval=TICK_MS)
        self._clock.timeout.connect(self._on_tick)
        controller.event_applied.connect(self._on_event)

    def start(self) -> None:
        """Begin. `finished` comes when the report is written."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clock.start()

    # --- the script ---------------------------------------------------------------------------------------------------

    def _steps(self) -> Iterator[Condition]:
        """The steps of the tour. Every `yield` waits for a condition."""
        self._say("Loading the model")
        yield lambda: "model" in self._report and bool(self._ready) and self._view is not None
        yield from self._picture("loaded")

        self._say("A first conversation: its prompt is prefilled into empty cells")
        first = self._selected()
        yield from self._turn(first, "Write three sentences about a lighthouse.")
        yield from self._picture("first-turn")

        self._say("The second turn reuses every cell of the first and prefills only what is new")
        yield from self._turn(first, "Who lives in it?")
        self._expect(self._last()["reused_tokens"] > 0, "the second turn reused nothing")
        yield from self._picture("second-turn")
        yield from self._attention()

        self._say("What another system prompt costs is counted before it is applied")
        yield from self._parameters("You are a lighthouse keeper. Be brief.")

        self._say("What a file costs is counted before it is sent")
        yield from self._attachment(paths.resources_dir() / "selftest" / "selftest.pdf", "What does this file ask?")

        self._say("Every sampler of llama.cpp is a setting, found by a few letters")
        yield from self._settings("penalty")

        self._say("A second conversation has its own sequence, and its own colour in the map")
        self._window.commands.new_chat()
        second = self._selected()
        yield from self._turn(second, "Name five things found on a beach, as a list.")
        yield from self._turn(second, "Which of them is the oldest?")
        self._expect(self._last()["seq_id"] != self._report["turns"][0]["seq_id"], "both share a sequence")
        yield from self._picture("two-conversations")

        yield from self._branches(second)
        yield from self._list(first, second)
        yield from self._file(first, second)

        self._say("Forgetting the first conversation's cells leaves a hole; its text stays")
        n_operations, used = len(self._operations), self._used()
        self._window.commands.select(first)
        self._window.commands.submit(Forget(first))
        yield lambda: len(self._operations) > n_operations and self._used() < used
        yield from self._picture("forgotten")

        self._say("Its next turn must be prefilled again, but for the beginning that the other conversation holds too")
        yield from self._turn(first, "Is the light still on?")
        self._expect(self._last()["reused_tokens"] < self._last()["prefilled_tokens"], "forgotten cells were reused")
        yield from self._picture("prefilled-again")

        self._say("By hand: some positions are removed, and what that did is measured")
        yield from self._operate(RemoveRange(self._last()["seq_id"], 40, 60), "seq_rm")
        yield from self._picture("by-hand")

        self._say("It can be undone, as long as its copy of the cache is kept")
        yield from self._operate(Undo(self._operations[-1].operation), "undo")

        self._say("Compaction: used cells move to the front, conversation by conversation")
        yield from self._operate(Compact(Layout.BY_CONVERSATION), "compact")
        yield from self._picture("compacted")

        inspector = self._window.inspector
        tabs = {"Graphs": "What was measured, on one time axis", "Timeline": "Every operation, and any past map"}
        for tab, words in tabs.items():
            self._say(words)
            inspector.show_tab(tab)
            yield from self._picture(tab.lower(), 1.2)
        inspector.show_tab("Cache")
        self._say("The same cells, coloured by their position")
        colour = inspector.cache.instruments.bar.mode
        colour.setCurrentIndex(colour.findData(ColourBy.POSITION))
        yield from self._picture("by-position")
        colour.setCurrentIndex(colour.findData(ColourBy.CONVERSATION))

        self._say("Other programs ask over HTTP, on the same cache; another kvdesk can look at it")
        yield from serving(self._window, self._picture_of)
        yield from self._help()

        self._say("Rebuilding the context: every cell is free again")
        n_ready = len(self._ready)
        self._window.commands.rebuild(self._window.store.settings.current.context, "nothing")
        yield lambda: len(self._ready) > n_ready and self._used() == 0
        yield from self._picture("rebuilt")

        self._say("And the conversation goes on")
        yield from self._turn(first, "Good night.")
        yield from self._picture("after-rebuild")

        self._say("An answer that was stopped goes on where it ended, and one token is read for that")
        yield from self._continued(first, "Tell me a long story about the sea.")
        yield from self._picture("continued")

        yield from self._tokens("Write three sentences about a lighthouse.")

        self._say("Reasoning is folded away; formulas, tables, tasks and programs are drawn")
        yield from self._sample(self._selected())

    def _turn(self, conversation: ConversationId, text: str) -> Iterator[Condition]:
        """Ask and wait for the answer and for the map that shows it."""
        answer = self._controller.conversations.send(conversation, text)
        if answer is None:
            self._problems.append(f"no answer could be asked for: {text}")
            return
        yield lambda: answer in self._ended
        ended = self._ended[answer]
        self._expect(ended.state == "complete", f"the answer to {text!r} is {ended.state}: {ended.note}")
        stats = values.asdict(ended.stats)
        self._report["turns"].append({"conversation": conversation, "prompt": text, **stats})
        yield lambda: self._used() == ended.stats.cells_used

    def _branches(self, conversation: ConversationId) -> Iterator[Condition]:
        """A second answer to the last question, both side by side, and the tree they are in."""
        self._say("Another answer is a branch: it stands beside the first, and the question is prefilled only once")
        n = len(self._ended)
        self._window.commands.conversations.turns.regenerate(conversation, 1)
        yield lambda: len(self._ended) > n
        self._window.action_set.run("chat.compare")
        yield from self._picture("compared")
        first = self._window.chat.alternatives._columns[0].message
        self._window.chat.alternatives.closed.emit()
        self._window.commands.conversations.turns.show_branch(conversation, first.id)
        self._expect(self._window.chat.view.widget_of(first.id) is not None, "the answer that was kept is not shown")
        self._window.action_set.run("chat.branches")
        yield from self._picture("branches")
        self._window.chat.branch_tree.close_tree()

    def _list(self, *conversations: ConversationId) -> Iterator[Condition]:
        """The list of chats arranged, and searched."""
        self._say("Chats are pinned and put into folders; what is deleted can be brought back")
        chats = self._window.conversations
        pinned, foldered = conversations
        self._window.commands.conversations.arrangement.pin(pinned, pinned=True)
        self._window.commands.move(foldered, "Beach")
        yield from self._picture("arranged")
        self._window.commands.delete(pinned)
        yield from self._picture("deleted")
        self._window.action_set.run("chat.undo")
        self._expect(self._selected() == pinned, "the chat did not come back")
        self._say("A search finds messages in all chats, and leads to them")
        chats.search.setText("lighthouse")
        yield lambda: bool(chats.results.rows)
        for _ in range(2):
            chats.results.step(1)
        yield from self._picture("found")
        chats.search.clear()
        self._window.commands.conversations.arrangement.pin(pinned, pinned=False)
        self._window.commands.move(foldered, "")
        self._window.commands.select(foldered)

    def _file(self, *conversations: ConversationId) -> Iterator[Condition]:
        """Chats to a file, and what is told of it before it is imported. It is not."""
        self._say("A file of chats is described before anything of it is imported")
        file = self._folder / "chats.json"
        self._window.commands.export(file, conversations)
        self._controller.exports.wait()
        self._window.commands.import_chats(file)
        dialog = self._controller.imports.dialog
        yield lambda: bool(dialog.facts)
        yield from self._picture("import", of=dialog)
        dialog.close_button.click()
        file.unlink()

    def _parameters(self, system_prompt: str) -> Iterator[Condition]:
        """Show the chat's prompt with another system prompt, which is not applied."""
        self._window.chat_parameters.open()
        panel = self._window.chat_parameters.panel
        panel.prompt_edit.setPlainText(system_prompt)
        panel.tab(2).click()
        yield lambda: panel._cost.text() != tr("Counting the tokens …")
        yield from self._picture("chat-parameters")
        panel.prompt_edit.clear()
        self._window.chat_parameters.close()

    def _continued(self, conversation: ConversationId, text: str) -> Iterator[Condition]:
        """Ask, stop the answer, continue it, and stop it again. The question is pinned."""
        answer = self._controller.conversations.send(conversation, text)
        assert answer is not None
        question = self._controller.conversations.branch(conversation)[-2]
        for length in (150, 300):
            yield lambda length=length: self._said(conversation) > length  # type: ignore[misc]
            self._window.commands.conversations.stop(conversation)
            yield lambda: answer in self._ended
            ended = self._ended.pop(answer)
            self._expect(ended.state == "stopped", f"the answer to {text!r} ended before it was stopped")
            if length == 150:
                self._window.commands.conversations.turns.pin(conversation, question.id, pinned=True)
                self._window.commands.conversations.turns.continue_answer(conversation)
        self._expect(ended.stats.prefilled_tokens == 1, f"{ended.stats.prefilled_tokens} tokens were read to continue")

    def _tokens(self, text: str) -> Iterator[Condition]:
        """An answer coloured by surprise, one of its tokens looked at, and another one taken in its place."""
        self._say("How likely was each word? A click shows what else was; to go on with another one reads one token")
        self._window.store.settings.change(token_probabilities=True)
        self._window.commands.new_chat()
        conversation = self._selected()
        yield from self._turn(conversation, text)
        view = self._window.chat.view
        widget = view.widgets[-1]
        known = unpack(widget.message.probabilities)
        at = max(range(4, len(known) // 2), key=lambda i: level_of(known[i]))
        widget.show_token(at)
        view.arrange()
        yield lambda: (card := widget.token_card) is not None and bool(card.price)
        yield from self._picture("probabilities")
        card, n = widget.token_card, len(self._ended)
        self._expect("costs 1 token" in card.price, card.price)
        card.buttons[0].click()
        yield lambda: len(self._ended) > n
        stats = self._ended[view.widgets[-1].message.id].stats
        self._expect(stats.prefilled_tokens == 1, f"{stats.prefilled_tokens} tokens were read for another token")
        self._window.store.settings.change(token_probabilities=False)

    def _attention(self) -> Iterator[Condition]:
        """What a word of the answer looked at."""
        self._say("What did a word look at? Its cells, its words and every head, for a price that is said before")
        window, store = self._window, self._window.store
        window.shown_settings.show_page("Attention")
        page = window.inspector._page(AttentionPage)
        spans = store.spans[self._selected()]
        span = spans.spans[-1]
        store.look(store.attention.looked_from(Spot(spans.seq_id, span.text_p0 + len(span.char_ends) // 2)))
        yield page.compute.isEnabled
        page.compute.click()
        yield lambda: store.attention.shown is not None
        page.table.selectRow(2)  # behind the sink, and often the word itself
        yield from self._picture("attention")
        window.inspector.show_tab("Cache")
        window.inspector.cell_map.clear_selection()

    def _sample(self, conversation: ConversationId) -> Iterator[Condition]:
        """Show an answer that no small model would give. It is not stored."""
        question = Message(new_message_id(), conversation, None, "user", sample_answer.QUESTION)
        answer = Message(new_message_id(), conversation, question.id, "assistant", sample_answer.ANSWER)
        self._window.chat._set_messages((question, replace(answer, thought_ms=sample_answer.THOUGHT_MS)))
        view = self._window.chat.view
        yield lambda: not any(prose.waits for prose in view.findChildren(ProseView))
        view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
        yield from self._picture("formulas")

    def _help(self) -> Iterator[Condition]:
        """What helps to find things, and what is told of kvdesk itself."""
        window, helps = self._window, self._window.help
        self._say("A few letters find every action; F1 lists all keys")
        helps.open_palette()
        helps.palette.edit.setText("chat")
        yield from self._picture("palette")
        helps.palette.close_palette()
        helps.open_shortcuts()
        yield from self._picture("shortcuts")
        helps.palette.close_palette()
        self._say("What kvdesk and llama.cpp log")
        window.shown_settings.show_page("Log")
        window.inspector.log.filter_field.setText("llama_")
        yield from self._picture("log", 0.8)
        window.inspector.log.filter_field.clear()
        window.shown_settings.show_page("Cache")
        self._say("Versions and licences, and a report of a problem that has no text of a chat unless it is ticked")
        window.commands.show_about()
        yield lambda: helps.about is not None
        yield from self._picture("about", of=helps.about)
        window.action_set.run("help.report")
        yield from self._picture("report", of=helps.report)
        for dialog in (helps.about, helps.report):
            if dialog is not None:
                dialog.close()
        self._caption.show_text("")
        window.action_set.run("help.tour")
        yield from self._picture("tour")
        helps.leave_tour()

    def _said(self, conversation: ConversationId) -> int:
        """Characters of its last answer so far."""
        return len(self._controller.conversations.branch(conversation)[-1].text)

    def _attachment(self, file: Path, text: str) -> Iterator[Condition]:
        """Attach a file to a draft, which is not sent, and show what fills the context."""
        chat = self._window.chat
        chat.attachments.give([str(file)])
        yield lambda: bool(chat.composer.attachments.attachments)
        chat.composer.set_text(text)
        chat.composer.meter.bar.setChecked(True)
        yield lambda: (parts := chat.composer.meter.parts) is not None and bool(parts.draft) and not parts.is_estimate
        yield from self._picture("attachment")
        chat.composer.meter.bar.setChecked(False)
        chat.composer.attachments.removed.emit(0)
        chat.composer.edit.clear()

    def _settings(self, words: str) -> Iterator[Condition]:
        """Show the settings that have these words."""
        settings = self._window.rooms.show_settings()
        settings.search.setText(words)
        yield from self._picture("settings")
        settings.search.clear()
        yield from self._picture("all-settings")
        self._window.rooms.show_chats()

    def _operate(self, operation: HandOperation, name: str) -> Iterator[Condition]:
        """Do something to the cache by hand; wait for what it did."""
        n = len(self._operations)
        self._window.commands.submit(Operate(operation))
        yield lambda: any(done.name == name and done.effect is not None for done in self._operations[n:])
        self._operations = [done for done in self._operations if done.effect is not None]
        effect = self._operations[-1].effect
        self._expect(bool(effect and effect.audited), f"the map was not verified after {name}")

    # --- helpers of the script ----------------------------------------------------------------------------------------

    def _say(self, what: str) -> None:
        self._report["steps"].append(what)
        self._caption.show_text(what)

    def _picture(self, name: str, at_least_s: float = SETTLE_S, of: QWidget | None = None) -> Iterator[Condition]:
        """Let the window settle (and a person look), then photograph it. `of`: another window in its place."""
        stem = f"{len(self._report['screenshots']) + 1:02d}-{name}"
        yield self._after(max(self._pause_s, at_least_s))
        if not self._themes:
            self._photograph(f"{stem}.png", of or self._window)
        for theme in self._themes:
            self._window.store.settings.change(theme=theme)
            yield self._after(SETTLE_S)
            self._photograph(f"{stem}-{theme}.png", of or self._window)
        verification = self._view.snapshot.verification if self._view else None
        self._expect(
            verification is not None and verification.state == "verified", f"the map at {name}: {verification}"
        )

    def _photograph(self, file: str, widget: QWidget) -> None:
        words = self._caption.text()
        self._caption.show_text("")  # it covers the message box
        if not widget.grab().save(str(self._folder / file)):
            self._problems.append(f"{file} could not be written")
        self._caption.show_text(words)
        self._report["screenshots"].append(file)

    def _after(self, seconds: float) -> Condition:
        until = time.monotonic() + seconds
        return lambda: time.monotonic() >= until

    def _picture_of(self, name: str, widget: QWidget) -> Iterator[Condition]:
        """Of a dialog."""
        yield from self._picture(name, of=widget)

    def _selected(self) -> ConversationId:
        selected = self._controller.selected
        assert selected is not None
        return selected

    def _last(self) -> dict[str, Any]:
        return dict(self._report["turns"][-1])

    def _used(self) -> int:
        return sum(s.used for m in self._view.snapshot.maps for s in m.streams) if self._view else -1

    def _expect(self, so: bool, otherwise: str) -> None:
        if not so:
            self._problems.append(otherwise)

    # --- the clock ----------------------------------------------------------------------------------------------------

    def _on_tick(self) -> None:
        self._ticks_left -= 1
        try:
            while self._waiting():
                self._waiting = next(self._script)
                self._ticks_left = STEP_TICKS
        except StopIteration:
            self._finish()
        else:
            if self._ticks_left < 0:
                self._problems.append(f"the step {self._report['steps'][-1]!r} did not come to an end")
                self._finish()

    def _on_event(self, event: Event) -> None:
        match event:
            case ModelLoaded():
                self._report["model"] = event.model.name
            case ContextReady():
                self._ready.append(event)
            case CacheView():
                self._view = event
            case TurnEnded():
                self._ended[event.answer] = event
            case OperationDone():
                self._operations.append(event)
                self._report["operations"].append(
                    {"call": event.call, "ms": round(event.ms, 3), "reason": event.reason}
                )
            case CommandFailed() | EngineRestarted() | EngineDied():
                self._problems.append(event.sentence)
                self._ticks_left = 0

    def _finish(self) -> None:
        self._clock.stop()
        self._report["problems"] = self._problems
        self._report["passed"] = not self._problems
        text = json.dumps(self._report, indent=2, ensure_ascii=False)
        (self._folder / "report.json").write_text(text + "\n", encoding="utf-8")
        self._caption.show_text("")
        self.finished.emit(not self._problems)
