"""Messages and their answers: added to the branch that is shown, asked of the back end, and taken over as they come.

Owns what a user does with messages. Must never know: when a queued message is sent (`queued_messages`).
"""

import json
from collections.abc import Callable, Sequence

from kvdesk.chat import Conversation, QueuedMessage, typed
from kvdesk.conversations import requests
from kvdesk.conversations.answers import RunningAnswer
from kvdesk.conversations.changes import AnswerEnded, AnswersGrew, MessagesAdded, MessagesChanged
from kvdesk.conversations.collection import now_ms
from kvdesk.conversations.state import ConversationState
from kvdesk.conversations.titles import propose_title
from kvdesk.conversations.tool_steps import next_call, refusal, result_fields, with_calls
from kvdesk.conversations.toolbox import PendingCall, Toolbox, ToolResult
from kvdesk.conversations.tree import Tree
from kvdesk.message import NO_STATS, ConversationId, Message, MessageId, Role, ToolUse, ended_early, new_message_id
from kvdesk.protocol.cache import MessageSpans
from kvdesk.protocol.chat import BackendReady, Generate, PreviewTurn, TokenLogprobs, TurnEnded, TurnStarted
from kvdesk.protocol.features import OF_ENGINE, Feature
from kvdesk.protocol.logprobs import alternatives, pack, text_with, unpack
from kvdesk.protocol.messages import Command, SubscriptionDropped
from kvdesk.settings import Settings
from kvdesk.values import replace


class Turns:
    """`submit`, `stop`, `settings` and `toolbox` as for `ConversationService`."""

    def __init__(
        self,
        state: ConversationState,
        submit: Callable[[Command], None],
        stop: Callable[[MessageId], None],
        settings: Callable[[], Settings],
        toolbox: Toolbox,
    ) -> None:
        self._toolbox = toolbox
        self._state, self._known, self._answers = state, state.known, state.answers
        self._submit, self._stop, self._settings = submit, stop, settings
        self.model_name = ""  # of the model that is open: it writes the next answers
        self.features = OF_ENGINE  # of the back end; all, until it says which

    # --- what a user does -------------------------------------------------------------------------------------------

    def send(self, known: Conversation, message: QueuedMessage) -> MessageId:
        """The user's message and an answer to it, after the branch that is shown. `known`: with the draft of then."""
        shown = self._state.branch(known.id)
        title = known.title
        if not (shown or title):
            title = propose_title(message.text if message.text.strip() else message.attachments[0].name)
        self._known.put(replace(known, title=title))
        self._add(known.id, "user", message, shown[-1].id if shown else None)
        return self._ask(known.id)

    def edit(self, conversation: ConversationId, message: MessageId, text: str) -> MessageId | None:
        """The user's message in other words, as a branch beside the first; asks for an answer to it. What is attached
        to it stays.
        """
        old = self._known.message(conversation, message)
        if old is None or old.role != "user" or self._state.is_answered(conversation):
            return None
        if not (text.strip() or old.attachments):
            return None
        self._state.cut_branch(conversation, old.parent)
        self._add(conversation, "user", typed(text, old.attachments), old.parent)
        return self._ask(conversation)

    def regenerate(self, conversation: ConversationId, n: int = 1, message: MessageId | None = None) -> None:
        """`n` new answers beside this one (None: the last), made together: all stay, as branches of the same question,
        and so does what follows it. Several call no tools: only what is shown continues automatically.
        """
        branch = self._state.branch(conversation)
        wanted = [m for m in branch if m.id == message] if message is not None else branch[-1:]
        if not self._state.is_answered(conversation) and wanted and wanted[0].role == "assistant":
            for _ in range(n):
                self._state.cut_branch(conversation, wanted[0].parent)
                self._ask(conversation, replaces=branch[-1].id, may_call=n == 1)

    def continue_answer(self, conversation: ConversationId, message: MessageId | None = None) -> MessageId | None:
        """Go on with an answer where it ended (None: the last one), if it ended early (`kvdesk.chat.ended_early`) and
        the back end can do that: the new text comes after the old one. Where messages follow it, it goes on in a copy
        beside it, on its own branch. None if it cannot.
        """
        branch = self._state.branch(conversation)
        wanted = [m for m in branch if m.id == message] if message is not None else branch[-1:]
        if not wanted or not ended_early(wanted[0]) or self._state.is_answered(conversation):
            return None
        if Feature.CONTINUE not in self.features:
            return None
        leaf, is_copy = branch[-1].id, wanted[0].id != branch[-1].id
        if is_copy:  # what follows it stays as it is, on its branch
            self._state.cut_branch(conversation, wanted[0].parent)
            self._put_new(replace(wanted[0], id=new_message_id(), created_ms=now_ms(), pinned=False))
            branch = self._state.branch(conversation)
        before = branch[-1]
        writers = [name for name in (before.model, self.model_name) if name]
        answer = replace(before, state="streaming", note="", finish="", model=", ".join(dict.fromkeys(writers)))
        self._answers.go_on(answer, before, leaf if is_copy else None)
        self._known.put_message(answer)
        self._state.put_first(replace(self._known[conversation], updated_ms=now_ms()))
        self._state.tell(MessagesChanged((answer,)))
        self._generate(conversation, answer.id, branch[:-1], continued=before)
        return answer.id

    def edit_answer(
        self, conversation: ConversationId, message: MessageId, text: str, *, go_on: bool = False
    ) -> MessageId | None:
        """The model's answer in a user's words, as a branch beside it. It may be continued; `go_on`: it is, now."""
        old = self._known.message(conversation, message)
        if old is None or old.role != "assistant" or not text.strip() or self._state.is_answered(conversation):
            return None
        edited = _version(replace(old, text=text, probabilities=b""))
        self._state.cut_branch(conversation, old.parent)
        self._put_new(edited)
        if go_on:
            self.continue_answer(conversation)
        else:
            self.measure(conversation)
        return edited.id

    def take_token(self, conversation: ConversationId, message: MessageId, at: int, token: int) -> MessageId | None:
        """Go on with another token in the place of number `at` of an answer, one of those that were likely there
        (`Message.probabilities`): what precedes it is kept, and the new answer is a branch beside the old one.
        None if it cannot.
        """
        old = self._known.message(conversation, message)
        if old is None or self._state.is_answered(conversation) or Feature.CONTINUE not in self.features:
            return None
        new = _with_token(old, at, token)
        if new is None:
            return None
        self._state.cut_branch(conversation, old.parent)
        self._put_new(new)
        return self.continue_answer(conversation, new.id)

    def pin(self, conversation: ConversationId, message: MessageId, *, pinned: bool) -> None:
        """List the message at the top of the chat, or no longer. It changes nothing of what the model is shown."""
        old = self._known.message(conversation, message)
        if old is not None and old.state != "streaming" and old.pinned != pinned:
            changed = replace(old, pinned=pinned)
            self._known.put_message(changed)
            self._state.tell(MessagesChanged((changed,)))

    def stop(self, conversation: ConversationId) -> None:
        """Stop its running answers and calls."""
        for running in self._running(conversation):
            if running.message.role == "tool":
                self._toolbox.cancel(running.message.id)
                self._answers.end(running.message.id)
                self._put_ended(replace(running.message, state="stopped"))
            else:
                self._stop(running.message.id)

    def drop(self, conversation: ConversationId) -> None:
        """Stop its running answers and calls and forget them: nothing more is reported about them."""
        for running in self._running(conversation):
            self._toolbox.cancel(running.message.id)
            self._stop(running.message.id)
            self._answers.end(running.message.id)

    def show_branch(self, conversation: ConversationId, message: MessageId) -> None:
        """Show the newest branch that goes through a message; not while an answer is running."""
        tree = self._known.tree(conversation)
        if tree is None or tree.get(message) is None or self._state.is_answered(conversation):
            return
        self._state.put_first(replace(self._known[conversation], leaf=tree.tip(message)))
        self._state.tell_branch(conversation)

    def preview(self, conversation: ConversationId, text: str, replaced: MessageId | None = None) -> None:
        """Ask what sending `text` now would cost, in the place of a message or after all of them; nothing while the
        conversation is not read yet.
        """
        tree = self._known.tree(conversation)
        if tree is None:
            return
        known, old = self._known[conversation], tree.get(replaced)
        attachments = known.draft_attachments if old is None else old.attachments
        is_answer = old is not None and old.role == "assistant"
        draft = QueuedMessage(text, attachments) if is_answer else typed(text, attachments)
        if not (text.strip() or draft.attachments):
            return
        before = self._state.branch(conversation)
        if old is not None:
            before = tree.branch(old.parent) if old.parent is not None else []
        self._submit(requests.preview(known, before, draft, self._settings(), old, self.offered(known)))

    def priced(self, known: Conversation) -> PreviewTurn | None:
        """Its next turn, of which tool servers are priced; None while it is not read."""
        if not self._state.is_read(known.id):
            return None
        return requests.next_turn(known, self._state.branch(known.id), self._settings(), self.offered(known))

    def preview_token(self, conversation: ConversationId, message: MessageId, at: int) -> None:
        """Ask what `take_token` would cost there: the same for every token."""
        old, tree = self._known.message(conversation, message), self._known.tree(conversation)
        if tree is None or old is None or old.parent is None:
            return
        others = (_with_token(old, at, one.token) for one in alternatives(old, at))
        new = next((one for one in others if one is not None), None)
        if new is not None:
            known, before = self._known[conversation], tree.branch(old.parent)
            self._submit(requests.preview_continued(known, before, new, old.id, self._settings(), self.offered(known)))

    def measure(self, conversation: ConversationId) -> None:
        """Ask how full its context is. Not while it is answered: then the turn tells."""
        if not self._state.is_read(conversation):
            return
        known, shown = self._known[conversation], self._state.branch(conversation)
        if known.leaf not in self._answers.of(conversation):  # others may still be written
            self._submit(requests.measure(known, shown, self._settings(), self.offered(known)))

    # --- what the back end says ---------------------------------------------------------------------------------------

    def take(self, event: MessageSpans | BackendReady | SubscriptionDropped) -> None:
        """What concerns no single answer."""
        match event:
            case MessageSpans():
                self._count_results(event)
            case BackendReady():
                self.features = event.features
            case SubscriptionDropped():
                self._begin_anew()

    def started(self, event: TurnStarted) -> None:
        """The answer begins."""
        self._answers.started(event)

    def refused(self, command: Generate) -> None:
        """The back end did not take it: nobody will end the answer."""
        self.end(TurnEnded(command.conversation, command.answer, "failed", NO_STATS))

    def end(self, event: TurnEnded) -> None:
        """The answer is what it is from now on."""
        running = self._answers.end(event.answer)
        if running is None:
            return  # its conversation was deleted meanwhile
        is_nothing = not running.parts and (running.before is None or event.state != "complete")
        if running.replaces is not None and is_nothing:
            self._take_back(running, running.replaces)
        elif running.before is not None and is_nothing:
            self._put_ended(replace(running.before, note=event.note or running.before.note))  # nothing came of it
        else:
            stats = event.stats.after(running.before.stats if running.before is not None else None)
            ended = replace(running.final(), state=event.state, stats=stats, note=event.note, finish=event.finish)
            if event.state == "complete" and not event.finish and running.tools:
                ended = with_calls(ended, running.form, json.loads(running.tools))
            self._put_ended(ended)
        self._state.put(replace(self._known[event.conversation], updated_ms=now_ms()))
        self._go_on(event.conversation)

    def _begin_anew(self) -> None:
        """The texts of all running answers come again from the beginning."""
        for conversation in self._answers.begin_anew():
            self._state.tell_branch(conversation)

    def tell_growth(self) -> None:
        """Tell the text so far of the answers that became longer."""
        if grown := self._answers.take_grown():
            self._state.tell(AnswersGrew(grown))

    def interrupt(self, note: str) -> None:
        """No more text will come: what runs ends here."""
        for running in list(self._answers):
            self._toolbox.cancel(running.message.id)
            self._answers.end(running.message.id)
            self._put_ended(replace(running.final(), state="interrupted", note=note))

    # --- tools --------------------------------------------------------------------------------------------------------

    def offered(self, known: Conversation) -> str:
        """The tools that its next answer is offered, as in `Generate`."""
        return self._toolbox.offered(known) if Feature.TOOLS in self.features else ""

    def tool_ended(self, message: MessageId, result: ToolResult) -> None:
        """The call whose result this message is has one; nothing if it was stopped meanwhile."""
        running = self._answers.end(message)
        if running is None or running.message.use is None:
            return
        use = replace(running.message.use, ms=result.ms, failed=result.failed)
        self._put_ended(replace(running.message, text=result.text, state="complete", use=use))
        self._go_on(running.message.conversation)

    def _count_results(self, event: MessageSpans) -> None:
        """How many tokens results are where the model reads them: as many cells as they have."""
        if (tree := self._known.tree(event.conversation)) is None:
            return
        for span in event.spans:
            message = tree.get(span.message)
            if message is not None and message.use is not None and not message.use.n_tokens:
                counted = replace(message, use=replace(message.use, n_tokens=span.p1 - span.p0))
                tree.put(counted)
                self._state.tell(MessagesChanged((counted,)))

    def _go_on(self, conversation: ConversationId) -> None:
        """The next call of the answer at the end of the shown branch, or an answer to the results of all its calls."""
        branch = self._state.branch(conversation)
        if not branch or self._state.is_answered(conversation) or branch[-1].state != "complete":
            return
        call = next_call(branch)
        if call is None:
            if branch[-1].role == "tool":
                self._ask(conversation)
            return
        server = self._toolbox.server_of(self._known[conversation], call.name)
        use = ToolUse(server, call.name, call.arguments)
        message = Message(new_message_id(), conversation, branch[-1].id, "tool", "", "streaming", created_ms=now_ms())
        message = replace(message, fields=result_fields(call), use=use)
        self._answers.start(message, None)
        self._put_new(message)
        if why := refusal(branch, self._settings().tools, call):
            self.tool_ended(message.id, ToolResult(why, failed=True))
        else:
            self._toolbox.begin(PendingCall(message.id, conversation, call.name, call.arguments))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _running(self, conversation: ConversationId) -> list[RunningAnswer]:
        return [running for running in self._answers if running.message.conversation == conversation]

    def _ask(
        self, conversation: ConversationId, replaces: MessageId | None = None, *, may_call: bool = True
    ) -> MessageId:
        """Ask for an answer to the conversation as it is."""
        asked = self._state.branch(conversation)
        answer = self._add(conversation, "assistant", QueuedMessage(""), asked[-1].id, replaces=replaces)
        self._generate(conversation, answer.id, asked, may_call=may_call)
        return answer.id

    def _generate(
        self,
        conversation: ConversationId,
        answer: MessageId,
        asked: Sequence[Message],
        *,
        continued: Message | None = None,
        may_call: bool = True,
    ) -> None:
        known = self._known[conversation]
        tools = self.offered(known)
        tree = self._known.tree(conversation)
        others = tree.messages if tree is not None else ()
        command = requests.generate(known, answer, asked, self._settings(), continued, tools, others)
        if not may_call:
            command = replace(command, choice=None)
        if command.choice is not None:
            self._answers.offer(answer, tools)
        self._submit(command)

    def _add(
        self,
        conversation: ConversationId,
        role: Role,
        wanted: QueuedMessage,
        parent: MessageId | None,
        replaces: MessageId | None = None,
    ) -> Message:
        """A user's message, or an answer that begins to run."""
        now = now_ms()
        message = Message(new_message_id(), conversation, parent, role, wanted.text, created_ms=now)
        message = replace(message, attachments=wanted.attachments)
        if role == "assistant":
            message = replace(message, state="streaming", model=self.model_name)
            self._answers.start(message, replaces)
        self._put_new(message)
        return message

    def _put_new(self, message: Message) -> None:
        """A new message at the end of the branch that is shown."""
        conversation = message.conversation
        self._known.put_message(message)
        self._state.put_first(replace(self._known[conversation], leaf=message.id, updated_ms=message.created_ms))
        self._state.tell(MessagesAdded((message,)))

    def _take_back(self, empty: RunningAnswer, shown: MessageId) -> None:
        """Another answer, or a copy of one, of which nothing came gives way to the branch that was shown before."""
        conversation = empty.message.conversation
        self._known.put_tree(conversation, Tree()).discard(empty.message.id)
        self._state.tell(AnswerEnded(replace(empty.message, state="stopped"), is_gone=True))
        known = self._known[conversation]
        if known.leaf == empty.message.id:
            self._known.put(replace(known, leaf=shown))
        self._state.tell_branch(conversation)

    def _put_ended(self, message: Message) -> None:
        self._known.put_message(message)
        self._state.tell(AnswerEnded(message))


def _version(old: Message) -> Message:
    """A new version of an answer, with this text and these tokens: nobody has written it in one go."""
    stats = replace(NO_STATS, vocab=old.stats.vocab, marks=old.stats.marks) if old.stats is not None else None
    return replace(
        old, id=new_message_id(), state="complete", stats=stats, note="", created_ms=now_ms(), finish="edited",
        pinned=False, fields="",
    )  # fmt: skip


def _with_token(old: Message, at: int, token: int) -> Message | None:
    """The version of an answer that ends with another token in the place of number `at`; None if it cannot be."""
    other = next((one for one in alternatives(old, at) if one.token == token), None)
    if other is None or other.hidden:
        return None
    known = unpack(old.probabilities)
    text = text_with(known, old.text, at, other)
    if not text or len(old.tokens) <= at:
        return None
    rank = 1 + [one.token for one in known[at].top].index(token)
    kept = pack([*known[:at], TokenLogprobs(other, known[at].top, rank)])
    return _version(replace(old, text=text, tokens=(*old.tokens[:at], token), probabilities=kept))
