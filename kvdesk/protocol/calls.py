"""llama.cpp's calls as text, with their arguments: a user learns the API by using the window. Pure.

Owns how a call is written, on a button before it is made and in the journal afterwards: the C function with its
parameters, and by its name what is not known yet.
"""

Argument = int | str


def seq_rm(seq_id: Argument, p0: int, p1: int) -> str:
    return f"llama_memory_seq_rm(mem, {seq_id}, {p0}, {p1})"


def seq_cp(src: int, dst: Argument, p0: int, p1: int) -> str:
    return f"llama_memory_seq_cp(mem, {src}, {dst}, {p0}, {p1})"


def seq_keep(seq_id: int) -> str:
    return f"llama_memory_seq_keep(mem, {seq_id})"


def seq_add(seq_id: int, p0: int, p1: int, shift: int) -> str:
    return f"llama_memory_seq_add(mem, {seq_id}, {p0}, {p1}, {shift})"


def clear(*, data: bool = True) -> str:
    return f"llama_memory_clear(mem, {str(data).lower()})"


def state_get() -> str:
    return "llama_state_get_data(ctx, dst, size)"


def state_set(size: Argument = "size") -> str:
    return f"llama_state_set_data(ctx, src, {size})"


def state_seq_get(seq_id: Argument) -> str:
    return f"llama_state_seq_get_data(ctx, dst, size, {seq_id})"


def state_seq_set(seq_id: Argument, size: Argument = "size") -> str:
    return f"llama_state_seq_set_data(ctx, src, {size}, {seq_id})"


def decode(n_tokens: int, *where: str) -> str:
    """`where`: what else is said of the batch."""
    tokens = "1 token" if n_tokens == 1 else f"{n_tokens} tokens"
    return f"llama_decode(ctx, {{{', '.join((tokens, *where))}}})"


def new_context() -> str:
    return "llama_free(ctx); llama_init_from_model(model, params)"
