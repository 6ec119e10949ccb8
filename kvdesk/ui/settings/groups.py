"""Which settings stand together. What is rarely changed is folded away under a title."""

from pydantic import BaseModel

from kvdesk.settings import ContextSettings, Sampling
from kvdesk.translation import tr

Groups = tuple[tuple[str, tuple[str, ...]], ...]
"""Title ("": always shown) and names of fields."""


def groups_of(model: type[BaseModel]) -> Groups:
    """All fields of a table, in the order in which they are shown."""
    groups: Groups = ()
    if model is Sampling:
        groups = _sampling()
    elif model is ContextSettings:
        groups = _context()
    named = {name for _, names in groups for name in names}
    others = tuple(name for name in model.model_fields if name not in named)
    return (*groups, ("", others)) if others else groups


def _sampling() -> Groups:
    return (
        ("", ("temperature", "top_k", "top_p", "min_p", "seed", "max_tokens")),
        (tr("Stop strings"), ("stop",)),
        (tr("Penalties for repetition"), ("repeat_penalty", "presence_penalty", "frequency_penalty", "repeat_last_n")),
        (
            tr("DRY: no repeated sequences"),
            ("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"),
        ),
        (
            tr("XTC, typical P, top n-sigma, dynamic temperature"),
            ("xtc_probability", "xtc_threshold", "typical_p", "top_n_sigma", "dynatemp_range", "dynatemp_exponent"),
        ),
        (tr("Mirostat, adaptive P"), ("mirostat", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay")),
        (tr("Grammar, JSON schema, logit bias"), ("grammar", "json_schema", "logit_bias")),
        (tr("Order of the samplers"), ("samplers",)),
    )


def _context() -> Groups:
    return (
        ("", ("n_ctx", "n_seq_max", "type_k", "type_v", "exact")),
        (tr("Batches and threads"), ("n_batch", "n_ubatch", "n_threads", "n_threads_batch")),
        (tr("Layout of the cache"), ("flash_attn", "kv_unified", "swa_full", "n_rs_seq")),
    )
