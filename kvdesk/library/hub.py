"""Hugging Face's hub, or a mirror that speaks its protocol: what it has, and the bytes of one file.

Search and metadata are asked with huggingface_hub's own client, which is imported at the first question. The token goes
to the endpoint alone, never to where it redirects, and into no log.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kvdesk import paths
from kvdesk.errors import UserError, explained
from kvdesk.library.find import FIRST_PART, LATER_PART
from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.whole_file import write_whole

if TYPE_CHECKING:
    from httpx2 import Response

PUBLIC = "https://huggingface.co"
CONNECT_S, READ_S = 10.0, 20.0
MOST_REPOS = 20
"""Repositories that a search brings, those downloaded most first."""
_MOST_TOKEN = 1 << 12  # bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_QUANTIZATION = re.compile(r"(?i)(?:^|[-._])((?:IQ|TQ|Q)\d(?:_[0-9A-Z]+)*|MXFP4|BF16|F16|F32)(?=[-.]|$)")


class HubError(UserError):
    """What was asked for cannot be had, and asking again changes nothing."""


class HubUnreachable(HubError):
    """The connection failed or was lost, or the server is busy: a later attempt may work. wait_s: as it asked for."""

    def __init__(self, sentence: str, detail: str = "", wait_s: float = 0.0) -> None:
        super().__init__(sentence, detail)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository: its path there, bytes, and SHA-256 in hexadecimal, "" if the hub does not say."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A GGUF of a repository at one commit, all its files in order."""

    repo: str
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def title(self) -> str:
        stem = self.files[0].name.rsplit("/", 1)[-1]
        return re.sub(r"(?i)\.gguf$", "", FIRST_PART.sub("", stem))

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository that a search found. n_downloads: in the last month, as the hub counts."""

    name: str
    n_downloads: int
    licence: str
    gated: bool


class Hub:
    """One endpoint with one token. Methods block; each raises HubError with a sentence."""

    def __init__(self, endpoint: str = "", token: str = "") -> None:
        self.endpoint = (endpoint.strip() or os.environ.get("HF_ENDPOINT", "").strip() or PUBLIC).rstrip("/")
        if urlsplit(self.endpoint).scheme not in ("http", "https") or not urlsplit(self.endpoint).hostname:
            raise HubError(tr("{address} is no web address of a model hub.").format(address=self.endpoint))
        self._token = token

    def search(self, words: str) -> tuple[Repo, ...]:
        """Repositories with GGUF files whose names match, those downloaded most first."""
        with self._sentences(words):
            found = self._api().list_models(search=words, filter="gguf", sort="downloads", limit=MOST_REPOS)
            return tuple(_repo(model) for model in found)

    def models(self, repo: str) -> tuple[RemoteModel, ...]:
        """The GGUF files of a repository, split ones together, the smallest first."""
        if not is_repo(repo):
            raise HubError(tr("{repo} is no name of a repository: it is owner/name.").format(repo=repo))
        with self._sentences(repo):
            info = self._api().model_info(repo, files_metadata=True, timeout=READ_S)
            files = [_file(sibling) for sibling in info.siblings or ()]
        return tuple(sorted(_grouped(repo, info.sha or "main", files), key=lambda model: model.size_bytes))

    def file(self, repo: str, revision: str, name: str) -> RemoteFile:
        """What the hub says of a file now."""
        with self._sentences(f"{repo}/{name}"):
            facts = _client().get_hf_file_metadata(
                self.url(repo, revision, name), token=self._token or False, timeout=READ_S, endpoint=self.endpoint
            )
        etag = facts.etag or ""
        return RemoteFile(name, facts.size or 0, etag if _SHA256.fullmatch(etag) else "")

    def url(self, repo: str, revision: str, name: str) -> str:
        """Where a file is asked for."""
        return str(_client().hf_hub_url(repo, name, revision=revision, endpoint=self.endpoint))

    @contextmanager
    def stream(self, url: str, headers: dict[str, str]) -> Iterator[Response]:
        """The answer to GET, redirects followed; errors while it is read get a sentence too."""
        own = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        with self._sentences(url.rsplit("/", 1)[-1]):
            session = _client().get_session()
            with session.stream("GET", url, headers={**headers, **own, "Accept-Encoding": "identity"}) as response:
                if response.status_code >= 400 and response.status_code != 416:
                    response.read()
                    _client().utils.hf_raise_for_status(response)
                yield response

    def _api(self) -> Any:
        return _client().HfApi(endpoint=self.endpoint, token=self._token or False, library_name="kvdesk")

    @contextmanager
    def _sentences(self, what: str) -> Iterator[None]:
        _client()
        import httpx2
        from huggingface_hub import errors

        host = urlsplit(self.endpoint).netloc
        try:
            yield
        except errors.GatedRepoError as error:
            said = tr("{what} requires that you accept its terms on {host}. Accept them there, then enter your token.")
            raise HubError(said.format(what=what, host=host), str(error)) from error
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
            said = tr("{host} has no {what}, or it is private.")
            raise HubError(said.format(what=what, host=host), str(error)) from error
        except errors.HfHubHTTPError as error:
            raise _refusal(host, error) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(host, error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = tr("{host} answered something that is not the protocol of a model hub.")
            raise HubError(said.format(host=host), f"{type(error).__name__}: {error}") from error


def is_repo(text: str) -> bool:
    """Whether it looks like owner/name."""
    return _REPO.fullmatch(text) is not None


def quantization_of(name: str) -> str:
    """As file names tell it, such as "Q4_K_M"; "" if they do not."""
    found = _QUANTIZATION.findall(FIRST_PART.sub("", name).removesuffix(".gguf"))
    return found[-1].upper() if found else ""


def token_file() -> Path:
    """Where the token is kept, apart from the settings, so that no export or report has it."""
    return paths.data_dir() / "hub-token"


def read_token() -> str:
    """The user's token: of the file, else of the environment (HF_TOKEN); "" without one."""
    try:
        text = paths.read_regular(token_file(), _MOST_TOKEN).decode().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    return text or os.environ.get("HF_TOKEN", "").strip()


def keep_token(token: str) -> None:
    """Write it for its owner's eyes alone; "" removes it.

    Raises UserError.
    """
    file = token_file()
    with explained(tr("The token cannot be kept: {why}.")):
        if token.strip():
            write_whole(file, token.strip().encode("utf-8", "replace"), mode=0o600)
        else:
            file.unlink(missing_ok=True)


@cache
def _client() -> ModuleType:
    """huggingface_hub, with an end to every wait, and without its telemetry: that asks the hub unasked."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    import httpx2
    import huggingface_hub

    class Once(httpx2.Client):
        """A failure is reported at once: huggingface_hub would try again for half a minute before it says anything."""

        def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
            try:
                response = super().send(request, **how)
            except httpx2.TransportError as error:
                raise _unreachable(error.request.url.netloc.decode("ascii"), error) from error  # of a redirect
            if response.status_code == 429 or response.status_code >= 500:
                response.close()
                raise _busy(response)
            return response

    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    huggingface_hub.set_client_factory(lambda: Once(timeout=timeout, follow_redirects=True))
    for name in ("httpx2", "httpcore2"):  # they log addresses, those of a redirect with their signatures
        logging.getLogger(name).setLevel(logging.WARNING)
    return huggingface_hub


def _unreachable(host: str, error: Exception) -> HubUnreachable:
    import httpx2

    silent = isinstance(error, httpx2.TimeoutException)
    said = tr("{host} does not answer.") if silent else tr("{host} cannot be reached. Is this computer online?")
    return HubUnreachable(said.format(host=host), type(error).__name__)  # its text may have a signed address


def _busy(response: Response) -> HubUnreachable:
    said = tr("{host} answers with error {status}.")
    wait = response.headers.get("Retry-After", "")
    host = response.request.url.netloc.decode("ascii")
    return HubUnreachable(
        said.format(host=host, status=response.status_code), "", float(wait) if wait.isdigit() else 0.0
    )


def _refusal(host: str, error: Any) -> HubError:
    status = error.response.status_code
    if status in (401, 403):
        return HubError(tr("{host} does not accept the token, or wants one.").format(host=host), str(error))
    return HubError(tr("{host} answers with error {status}.").format(host=host, status=status), str(error))


def _repo(model: Any) -> Repo:
    licence = next((tag.removeprefix("license:") for tag in model.tags or () if tag.startswith("license:")), "")
    return Repo(model.id, model.downloads or 0, licence, bool(model.gated))


def _file(sibling: Any) -> RemoteFile:
    sha256 = sibling.lfs.sha256 if sibling.lfs is not None else ""
    return RemoteFile(sibling.rfilename, sibling.size or 0, sha256 or "")


def _grouped(repo: str, revision: str, files: Iterable[RemoteFile]) -> Iterator[RemoteModel]:
    """Language models among the files; split ones of which a part is missing are left out."""
    known = {file.name: file for file in files if file.name.lower().endswith(".gguf")}
    for name, file in known.items():
        if LATER_PART.search(name) or "mmproj" in name.lower():
            continue
        match = FIRST_PART.search(name)
        if match is None:
            yield RemoteModel(repo, revision, (file,))
            continue
        names = [f"{name[: match.start()]}-{n:05d}-of-{match[1]}.gguf" for n in range(1, min(int(match[1]), 1000) + 1)]
        if all(part in known for part in names):
            yield RemoteModel(repo, revision, tuple(known[part] for part in names))
