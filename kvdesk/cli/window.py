"""Whether the window of a command can open here. If not, the command goes on as text."""

from importlib import import_module

from kvdesk.cli.output import say
from kvdesk.translation import tr


def can_open(module: str) -> bool:
    """Whether the module of a window can be imported, and there is a display. If not, the reason goes to standard
    error.
    """
    from kvdesk.app.display import has_display, missing_import

    why = "" if has_display() else tr("There is no display for a window.")
    try:
        if not why:  # an import that takes a second
            import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "kvdesk":
            raise
        needs = tr("A window needs the application ({name} is missing): pip install 'kvdesk[app]'.")
        why = missing_import(error) or needs.format(name=error.name)
    if why:
        say(why + " " + tr("This is shown as text, as with --text."))
    return not why
