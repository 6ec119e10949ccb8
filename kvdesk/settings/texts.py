"""The names of settings in the language of the person."""

from pydantic.fields import FieldInfo

from kvdesk.translation import tr


def texts_of(info: FieldInfo) -> tuple[str, str]:
    """Title and description of a setting, "" for what it lacks."""
    title, description = info.title or "", info.description or ""
    return tr(title), tr(description)
