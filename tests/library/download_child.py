"""A process of its own that downloads, to be killed."""

from pathlib import Path
from threading import Event

import huggingface_hub.hf_api  # noqa: F401 - imported once, by the server that the children are forked from

from kvdesk.library.download import Transfer
from kvdesk.library.hub import Hub


def download(endpoint: str, repo: str, folder: Path) -> None:
    """The only model of the repository."""
    hub = Hub(endpoint)
    Transfer(hub, hub.models(repo)[0], Event(), lambda _done, _remark: None, folder).run()
