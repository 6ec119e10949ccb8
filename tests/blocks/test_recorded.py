"""Golden recordings: what the unmodified publishers of these versions sent for one and the same history.

Made by tests/stress/foreign_publisher.py, whose stress test compares maps with the publishers themselves.
"""

import pytest

from kvdesk.blocks.events import decode
from kvdesk.blocks.tree import BlockTree

RECORDED = {
    "SGLang 0.5.23": (
        (
            "93cb41dac0cbf758d7769187a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573920bf4b1706172656e745f626c6f"
            "636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3"
            "47505500"
        ),
        (
            "93cb41dac0cbf758ed839187a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573910db1706172656e745f626c6f63"
            "6b5f68617368f4a9746f6b656e5f69647394090a0b0caa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da347505500"
        ),
        (
            "93cb41dac0cbf75900de9183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573910da66d656469756da3475055"
            "00"
        ),
        "93cb41dac0cbf75913e79181a474797065b0416c6c426c6f636b73436c656172656400",
    ),
    "vLLM 0.9.2": (
        "93cb41dac0cbf7e213cc9196ab426c6f636b53746f726564920bf4c098010203040506070804c000",
        "93cb41dac0cbf7e2292d9196ab426c6f636b53746f726564910df494090a0b0c04c000",
        "93cb41dac0cbf7e23cb29192ac426c6f636b52656d6f766564910d00",
        "93cb41dac0cbf7e24fa39191b0416c6c426c6f636b73436c656172656400",
    ),
    "vLLM 0.33.0": (
        (
            "93cb41dac0cbf8703ad591de0008a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573920bf4b1706172656e745f62"
            "6c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d65646975"
            "6da3475055a96c6f72615f6e616d65c000"
        ),
        (
            "93cb41dac0cbf871605f91de0008a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573910db1706172656e745f626c"
            "6f636b5f68617368f4a9746f6b656e5f69647394090a0b0caa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055"
            "a96c6f72615f6e616d65c000"
        ),
        (
            "93cb41dac0cbf87174849183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573910da66d656469756da3475055"
            "00"
        ),
        "93cb41dac0cbf87187c59181a474797065b0416c6c426c6f636b73436c656172656400",
    ),
}
"""By version: blocks 11 and -12 of four tokens each are stored, 13 after them, 13 is removed, all is cleared."""


@pytest.mark.parametrize("version", RECORDED)
def test_every_version_tells_the_same_history(version: str) -> None:
    tree, known = BlockTree(), list[list[tuple[str, tuple[int, ...]]]]()
    for seq, message in enumerate(RECORDED[version]):
        tree.apply(seq, decode(bytes.fromhex(message)))
        known.append([(block.key[1][-2:], block.token_ids) for block in tree.layout().blocks])
    first = [("0b", (1, 2, 3, 4)), ("f4", (5, 6, 7, 8))]
    assert known == [first, [*first, ("0d", (9, 10, 11, 12))], first, []]
