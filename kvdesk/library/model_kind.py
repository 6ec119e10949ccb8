"""What a file is when it is not a language model that can chat: one sentence each.

Owns the lists of architectures and file signatures (names from src/llama-arch.cpp, and of other projects' GGUF files).
Knows nothing of how a header is read.
"""

from typing import Protocol

from kvdesk.errors import ModelFileError
from kvdesk.library.architectures import LANGUAGE_MODELS
from kvdesk.translation import marked, tr

EMBEDDING = frozenset(
    {"bert", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llama-embed", "modern-bert", "neo-bert"}
    | {"nomic-bert", "nomic-bert-moe", "t5encoder"}
)
IMAGE = frozenset(
    {
        "aura",
        "chroma",
        "cosmos",
        "flux",
        "hidream",
        "hyvid",
        "lumina2",
        "ltxv",
        "pig",
        "qwen_image",
        "sd1",
        "sd3",
        "sdxl",
    }
    | {"wan", "z_image"}
)
SPEECH = frozenset({"whisper", "parakeet", "wavtokenizer-dec", "qwen3tts", "pockettts", "outetts", "kokoro"})
DIFFUSION_TEXT = frozenset({"dream", "llada", "llada-moe", "rnd1"})
DRAFT = frozenset({"eagle3", "dflash", "gemma4-assistant"})
ENCODER_DECODER = frozenset({"t5"})
PROJECTOR = frozenset({"clip", "mmproj"})

SIGNATURES = (
    (b"version https://git-lfs", marked("is only a Git LFS pointer; the model itself was not downloaded.")),
    (b"lmgg", marked("is a GGML file, an old format that llama.cpp no longer reads.")),
    (b"tjgg", marked("is a GGJT file, an old format that llama.cpp no longer reads.")),
    (b"fmgg", marked("is a GGMF file, an old format that llama.cpp no longer reads.")),
    (b"algg", marked("is a GGLA adapter, an old format that llama.cpp no longer reads.")),
    (b"PK\x03\x04", marked("is a ZIP archive or PyTorch checkpoint, not a GGUF model.")),
    (b"\x80\x02", marked("is a PyTorch checkpoint, not a GGUF model.")),
    (b"\x1f\x8b", marked("is a gzip archive, not a GGUF model.")),
    (b"7z\xbc\xaf", marked("is a 7-Zip archive, not a GGUF model.")),
    (b"\x89HDF", marked("is an HDF5 file, not a GGUF model.")),
    (b"FUGG", marked("is a GGUF for big-endian machines; this one is little-endian.")),
    (b"<!DOCTYPE", marked("is a web page, not a model: the download failed.")),
    (b"<html", marked("is a web page, not a model: the download failed.")),
)


class Header(Protocol):
    """What this file needs to know of a header."""

    @property
    def architecture(self) -> str: ...

    @property
    def tensors(self) -> tuple[object, ...]: ...

    @property
    def is_split(self) -> bool: ...

    @property
    def path(self) -> object: ...

    def text(self, key: str) -> str: ...

    def integer(self, key: str, default: int) -> int: ...


def describe_foreign(start: bytes) -> str:
    """What a file is whose first bytes are not those of a GGUF, as the rest of a sentence."""
    for signature, sentence in SIGNATURES:
        if start.lower().startswith(signature.lower()):
            return tr(sentence)
    if len(start) > 9 and start[8:10] in (b'{"', b"{ ") and int.from_bytes(start[:8], "little") < 1 << 32:
        return tr("is a safetensors file, not a GGUF model; it has to be converted first.")
    if not start.strip(b"\0"):
        return tr("contains only zeros, not a GGUF model: the download did not finish.")
    if b"\0" not in start:
        try:
            start[:-4].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.end < len(start) - 8:
                return tr("is not a GGUF model.")
        return tr("is a text file, not a GGUF model.")
    return tr("is not a GGUF model.")


def check_language_model(header: Header) -> None:
    """Raise ModelFileError, which says what it is, when the file is not a language model that can chat."""
    name = getattr(header.path, "name", str(header.path))
    sentence = _other_kind(header)
    if sentence:
        raise ModelFileError(f"{name} {sentence}")


def _other_kind(header: Header) -> str:
    architecture, kind = header.architecture, header.text("general.type")
    if kind == "adapter" or header.text("adapter.type"):
        return tr("is a LoRA adapter: it changes a model, but is not a model.")
    if architecture in PROJECTOR or kind in ("mmproj", "clip-vision"):
        return tr("is the image or audio part of a model (mmproj); open the language model that belongs to it.")
    if kind == "imatrix" or architecture == "imatrix":
        return tr("is an importance matrix, data for making quantized models.")
    if kind == "controlvector" or architecture == "controlvector":
        return tr("is a control vector: it steers a model, but is not a model.")
    for names, what in (
        (EMBEDDING, marked("is an embedding model: it turns text into numbers and cannot answer.")),
        (IMAGE, marked("is a model that makes images or video, not a language model.")),
        (SPEECH, marked("is a speech model, not a language model.")),
        (DIFFUSION_TEXT, marked("is a text diffusion model, which keeps no KV cache; kvdesk cannot chat with it.")),
        (DRAFT, marked("is a draft model: it only helps another one to be faster.")),
        (ENCODER_DECODER, marked("is an encoder-decoder model; kvdesk chats with decoder models.")),
    ):
        if architecture in names:
            return tr(what)
    if not architecture:
        return tr("is a GGUF that does not name its architecture, so it is no language model.")
    if not header.tensors and not header.is_split:
        return tr("contains only a vocabulary, not a model.")
    if header.integer(f"{architecture}.attention.causal", 1) == 0:
        return tr("is an embedding model: it turns text into numbers and cannot answer.")
    if architecture not in LANGUAGE_MODELS:
        return tr('is a GGUF of the kind "{architecture}", which this version of llama.cpp does not know.').format(
            architecture=architecture[:40]
        )
    if header.integer(f"{architecture}.block_count", 0) <= 0:
        return tr("is damaged: it does not say how many layers the model has.")
    return ""
