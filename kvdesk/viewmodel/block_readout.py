"""The blocks of a server in words and numbers, and what their colours mean. No Qt."""

import time
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kvdesk.blocks.tree import BlockMap
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.quantities import tokens_text
from kvdesk.translation import marked, plural, tr
from kvdesk.viewmodel.cells.readout import duration


class BlockColour(StrEnum):
    """What blocks are coloured by."""

    AGE = marked("age")
    TIER = marked("tier")
    SHARED = marked("prompts")
    USED = marked("requests of this window")

    @property
    def meaning(self) -> str:
        """One line for the legend."""
        return {
            BlockColour.AGE: tr("When it was first stored: old to new"),
            BlockColour.TIER: tr("Where it is: {tiers}"),
            BlockColour.SHARED: tr("How many prompts continue from it: none, one, several"),
            BlockColour.USED: tr("How many requests of this window had it in their prompt: none to most"),
        }[self]


def numbers(view: BlockMapView) -> list[tuple[str, str, str]]:
    """Caption, value and what it means, of each number that is known."""
    blocks, metrics = view.blocks, view.metrics
    rows = [
        (
            tr("Blocks"),
            f"{len(blocks.blocks):,}",
            tr("Whole blocks that the server's events reported and that still exist"),
        ),
        (
            tr("Tokens"),
            f"{blocks.n_tokens:,}",
            tr("Tokens in these blocks; the last, unfinished block of a prompt is not reported"),
        ),
        (
            tr("Forks"),
            f"{blocks.n_shared:,}",
            tr("Blocks from which several prompts go on: their beginning is stored once"),
        ),
        (tr("Removed"), f"{blocks.n_removed:,}", tr("Blocks that were evicted or cleared since the first message")),
    ]
    if metrics.usage is not None:
        rows.append((tr("Cache taken"), f"{metrics.usage:.0%}", tr("The server's own figure")))
    if (share := metrics.share_of_hits) is not None:
        rows.append(
            (
                tr("From cache"),
                f"{share:.0%}",
                tr("Of all prompt tokens, those that were in the cache: the server's own figure"),
            )
        )
    if metrics.running is not None or metrics.waiting is not None:
        value = f"{metrics.running or 0:.0f} + {metrics.waiting or 0:.0f}"
        rows.append((tr("Requests"), value, tr("Running and waiting now: the server's own figures")))
    return rows


def heard(view: BlockMapView) -> str:
    """Since when it is known, and what is not."""
    blocks = view.blocks
    if blocks.n_messages == 0:
        nothing = tr("Nothing has arrived so far at {address}. The server reports its blocks when they change.")
        return nothing.format(address=view.address)
    said = [
        tr("Known since message {n:,}; {heard:,} messages heard.").format(n=blocks.first_seq, heard=blocks.n_messages)
    ]
    if blocks.n_missed:
        said.append(
            plural(
                "1 was missed: what it changed is not known.",
                "%n were missed: what they changed is not known.",
                blocks.n_missed,
            )
        )
    if blocks.n_restarts:
        said.append(
            plural(
                "The server was started again once meanwhile.",
                "The server was started again %n times meanwhile.",
                blocks.n_restarts,
            )
        )
    if blocks.n_forgotten:
        said.append(plural("1 old block is no longer shown.", "%n old blocks are no longer shown.", blocks.n_forgotten))
    return " ".join(said)


def describe(blocks: BlockMap, index: int) -> str:
    """One block, for a tooltip: lines."""
    block = blocks.blocks[index]
    depth, parent, children = int(blocks.depth[index]), int(blocks.parent[index]), int(blocks.n_children[index])
    n = len(block.token_ids)
    lines = [
        tr("Block {hash}, {tokens}, on {tiers}").format(
            hash=block.key[1][:16], tokens=tokens_text(n), tiers=", ".join(block.tiers)
        ),
        tr("Begins a prompt")
        if parent == -1
        else tr("What precedes it is not known")
        if parent == -2
        else tr("Tokens {first:,} to {last:,} of its prompts").format(first=depth * n, last=depth * n + n - 1),
        plural("1 prompt goes on from it", "%n prompts go on from it", children)
        if children
        else tr("No whole block follows"),
        tr("Stored {age} ago").format(age=duration(max(time.time() - block.stored_s, 0.0))),  # by two computers' clocks
    ]
    if block.n_stored > 1:
        lines.append(tr("Reported {n} times").format(n=block.n_stored))
    if block.n_used:
        lines.append(plural("In 1 request of this window", "In %n requests of this window", block.n_used))
    if block.key[0]:
        lines.append(tr("Group of layers: {n}").format(n=block.key[0]))
    lines.append(
        tr("Token ids: {ids}").format(ids=", ".join(map(str, block.token_ids[:12])) + (" …" if n > 12 else ""))
    )
    return "\n".join(lines)


def shades(blocks: BlockMap, by: BlockColour) -> NDArray[np.float64]:
    """0 to 1 of each block on the scale of what it is coloured by. By tier: its number among `tiers`."""
    each = blocks.blocks
    match by:
        case BlockColour.AGE:
            order = np.argsort(np.argsort([block.stored_s for block in each], kind="stable"), kind="stable")
            return order / max(len(each) - 1, 1)
        case BlockColour.TIER:
            names = tiers(blocks)
            return np.array([names.index(block.tiers[0]) for block in each], np.float64)
        case BlockColour.SHARED:
            return np.minimum(blocks.n_children, 2) / 2.0
        case BlockColour.USED:
            used = np.array([block.n_used for block in each], np.float64)
            return used / max(float(used.max(initial=0.0)), 1.0)


def tiers(blocks: BlockMap) -> Sequence[str]:
    """The tiers that blocks lie on, each once."""
    return sorted({block.tiers[0] for block in blocks.blocks})
