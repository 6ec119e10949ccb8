"""A few small models that chat well on a laptop: where to begin.

Sizes are those of November 2026; the hub is asked again before a download, and what it says counts.
"""

from kvdesk.translation import tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Recommended:
    """A file of a repository. size_mb: millions of bytes. good_for: in a few words. chinese: speaks it well."""

    repo: str
    file: str
    size_mb: int
    licence: str
    good_for: str
    chinese: bool = False


def recommended() -> tuple[Recommended, ...]:
    """The smallest first."""
    return (
        Recommended(
            "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
            "smollm2-360m-instruct-q8_0.gguf",
            386,
            "apache-2.0",
            tr("Very old machines; short answers in English"),
        ),
        Recommended(
            "Qwen/Qwen3-0.6B-GGUF",
            "Qwen3-0.6B-Q8_0.gguf",
            639,
            "apache-2.0",
            tr("Fast answers in many languages, Chinese too; can reason"),
            chinese=True,
        ),
        Recommended(
            "ggml-org/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_K_M.gguf", 806, "gemma", tr("Writing and summaries")
        ),
        Recommended(
            "Qwen/Qwen3-1.7B-GGUF",
            "Qwen3-1.7B-Q8_0.gguf",
            1834,
            "apache-2.0",
            tr("Everyday questions in many languages; can reason"),
            chinese=True,
        ),
        Recommended(
            "ggml-org/SmolLM3-3B-GGUF",
            "SmolLM3-Q4_K_M.gguf",
            1915,
            "apache-2.0",
            tr("Long texts in European languages; can reason"),
        ),
        Recommended(
            "bartowski/Llama-3.2-3B-Instruct-GGUF",
            "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
            2019,
            "llama3.2",
            tr("Conversation and summaries"),
        ),
        Recommended(
            "Qwen/Qwen3-4B-GGUF",
            "Qwen3-4B-Q4_K_M.gguf",
            2497,
            "apache-2.0",
            tr("The best of those for 8 GB of memory; code, many languages"),
            chinese=True,
        ),
        Recommended(
            "Qwen/Qwen3-8B-GGUF",
            "Qwen3-8B-Q4_K_M.gguf",
            5028,
            "apache-2.0",
            tr("Difficult questions and code, with 16 GB of memory"),
            chinese=True,
        ),
    )
