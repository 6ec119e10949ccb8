"""Words that a native engineer would not write, in code and documents alike."""

import re
from typing import Final

FOREIGN: Final = re.compile(
    r"\b(anew|by (?:itself|themselves)|stands? (?:in|at|on|still|before|behind|beside|below|above|alone|there)|"
    r"point at|pointed at|where there (?:is|are) (?:none|no)|of (?:its|their) own|comes? back|dearer|dearest|"
    r"mended|spares|spared|quicker|for ever|passe[sd] over|of itself|(?:is|are|was|were) told|so many)\b",
    re.IGNORECASE,
)
"""Say: again, automatically or alone, is, hover, if there is no, its own, returns, more expensive, fixed, saves,
faster, forever, ignored, is reported, this many.
"""
