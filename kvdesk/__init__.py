"""kvdesk: chat with GGUF models on a laptop CPU and watch what the KV cache is doing."""

from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from kvdesk.notebook.watch import watch as watch
else:

    def __getattr__(name):
        """`kvdesk.watch`, imported when it is asked for: every command imports this module."""
        if name != "watch":
            raise AttributeError(f"module 'kvdesk' has no attribute {name!r}")
        from kvdesk.notebook.watch import watch

        return watch
