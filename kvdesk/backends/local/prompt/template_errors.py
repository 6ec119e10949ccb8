"""Errors of chat templates as sentences."""

import traceback

from jinja2 import TemplateSyntaxError
from jinja2.exceptions import SecurityError

from kvdesk.backends.local.prompt.jinja_sandbox import Raised
from kvdesk.errors import TemplateError
from kvdesk.translation import marked, tr

MODELS_OWN, CHATS_OWN = marked("The model's chat template"), marked("This chat's own template")
"""Names of templates in sentences."""
_FILE = "<template>"  # Jinja2's name for a template that is no file
_MOST_REASON = 200  # characters of what Jinja2 says


def stopped(name: str) -> str:
    """The sentence for a template that exceeds its limits."""
    return tr("{name} was stopped: it does what no template needs to do.").format(name=name)


def template_error(error: Exception, name: str) -> TemplateError:
    if isinstance(error, TemplateError):
        return error
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, Raised):
        reason = error.message or tr("it gives no reason")
        return TemplateError(tr("{name} refuses this conversation: {reason}").format(name=name, reason=reason), detail)
    if isinstance(error, TemplateSyntaxError):
        what = (error.message or tr("it cannot be read")).rstrip(".")
        return TemplateError(
            tr("{name} is broken in line {lineno}: {what}.").format(name=name, lineno=error.lineno, what=what), detail
        )
    if isinstance(error, SecurityError | OverflowError | MemoryError):
        return TemplateError(stopped(name), detail)
    line, reason = _line_of(error), " ".join(str(error).split())[:_MOST_REASON].rstrip(".")
    if line:
        said = tr("{name} fails on this conversation in line {line}{reason}.")
    else:
        said = tr("{name} fails on this conversation{reason}.")
    return TemplateError(said.format(name=name, line=line, reason=f": {reason}" if reason else ""), detail)


def _line_of(error: Exception) -> int:
    """Line of the template that raised the error, as Jinja2 rewrites tracebacks; 0 if unknown."""
    lines = (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == _FILE)
    return next(lines, 0) or 0
