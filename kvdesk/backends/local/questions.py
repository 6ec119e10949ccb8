"""Commands that change nothing, so that no new view of the cache is needed after them."""

from kvdesk.backends.local.attention.job import attend
from kvdesk.backends.local.attention.price import price
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.prompt.tokenizing import tokenized
from kvdesk.backends.local.scheduler.jobs import Job, Jobs, verify
from kvdesk.backends.local.session import Session, opened
from kvdesk.errors import UserError
from kvdesk.protocol.attention import Attend, PreviewAttention
from kvdesk.protocol.cache import PreviewContext, RecordingTaken, TakeRecording, VerifyConversation
from kvdesk.protocol.chat import MeasureContext, PreviewTurn
from kvdesk.protocol.operations import PreviewCompaction
from kvdesk.protocol.prompt import Detokenize, PreviewPrompt, PriceTools, PromptPreview, Tokenize, ToolsPriced
from kvdesk.translation import tr
from kvdesk.values import replace

Question = (
    PreviewCompaction
    | PreviewContext
    | PreviewTurn
    | MeasureContext
    | PreviewPrompt
    | PriceTools
    | Tokenize
    | Detokenize
    | VerifyConversation
    | TakeRecording
    | PreviewAttention
    | Attend
)


def answer(command: Question, session: Session | None, jobs: Jobs, emit: Emit) -> None:
    """Raises UserError: no model is open, for one."""
    match command:
        case PreviewCompaction():
            emit(opened(session).runtime.previews.compaction(command))
        case PreviewContext():
            loaded, runtime = opened(session).loaded, opened(session).runtime
            emit(runtime.previews.context(loaded.header, runtime.estimate.context, command.settings))
        case PreviewTurn() | MeasureContext():
            _count(command, session, emit)
        case PreviewPrompt():
            emit(_prompt(command, session))
        case PriceTools():
            emit(_tools(command, session))
        case Tokenize() | Detokenize():
            emit(tokenized(session.loaded.prompts if session is not None else None, command))
        case VerifyConversation():
            loaded, runtime = opened(session).loaded, opened(session).runtime
            readings = verify(runtime.cache_manager, loaded.noise, command.conversation, emit)
            jobs.add(Job(command, tr("to verify the conversation"), runtime.cache_manager, readings))
        case TakeRecording():
            emit(RecordingTaken(opened(session).runtime.recording()))
        case PreviewAttention() | Attend():
            _attention(command, opened(session), jobs, emit)


def _count(command: PreviewTurn | MeasureContext, session: Session | None, emit: Emit) -> None:
    if session is None:
        return
    previews = session.runtime.previews
    try:
        emit(previews.measure(command) if isinstance(command, MeasureContext) else previews.turn(command))
    except UserError:
        pass  # reported when it is sent, not while it is being typed


def _prompt(command: PreviewPrompt, session: Session | None) -> PromptPreview:
    """Problems of the prompt are part of its preview, because it is being edited."""
    conversation, number = command.turn.conversation, command.number
    prompts = session.loaded.prompts if session is not None else None
    template = prompts.model_template if prompts is not None else ""
    try:
        preview = replace(opened(session).runtime.previews.prompt(command), model_template=template)
    except UserError as error:
        preview = PromptPreview(conversation, number, template, problem=str(error))
    if prompts is not None:
        prompts.begin()  # the chat's own template usually comes next
    return preview


def _tools(command: PriceTools, session: Session | None) -> ToolsPriced:
    """Problems are part of the answer, because nothing has been sent yet."""
    try:
        return opened(session).runtime.previews.tools(command)
    except UserError as error:
        return ToolsPriced(command.turn.conversation, command.number, problem=str(error))


def _attention(command: PreviewAttention | Attend, session: Session, jobs: Jobs, emit: Emit) -> None:
    header, runtime = session.loaded.header, session.runtime
    if isinstance(command, PreviewAttention):
        emit(price(runtime.context, runtime.cache_manager, header, command))
        return
    readings = attend(runtime.context, runtime.cache_manager, header, command, emit)
    jobs.add(Job(command, tr("to see what tokens look at"), runtime.cache_manager, readings))
