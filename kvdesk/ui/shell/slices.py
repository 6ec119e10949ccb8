"""The parts that a build can do without. Without its line a slice has no room, page, section, action, menu entry or
controller, and its modules are not imported."""

from typing import Final

from kvdesk.ui.attention.slice import ATTENTION
from kvdesk.ui.blocks.slice import BLOCKS
from kvdesk.ui.lab.slice import LAB
from kvdesk.ui.server.slice import SERVE

SLICES: Final = (LAB, SERVE, BLOCKS, ATTENTION)
