"""What the numbers of a saved K or V are like."""

import numpy as np

from kvdesk.cache.state.blob import Section
from kvdesk.library.ggml_rows import is_known, rows
from kvdesk.library.ggml_types import TYPES
from kvdesk.state_files.found import Numbers
from kvdesk.values import replace


def describe(blob: memoryview, section: Section, layer: int, n_cells: int) -> Numbers:
    """What the numbers of one tensor are like."""
    kind = TYPES.get(section.ggml_type)
    found = Numbers(
        section.kind, layer, kind.name if kind else str(section.ggml_type), section.row_bytes, section.n_rows
    )
    if not n_cells or not is_known(section):
        return found
    n, total, most, n_bad = 0, 0.0, 0.0, 0
    low, high = np.inf, -np.inf
    with np.errstate(all="ignore"):
        for part in rows(blob, section, n_cells):
            good = np.isfinite(part)
            n_bad_here = int(part.size - np.count_nonzero(good))
            if n_bad_here:
                part = np.where(good, part, np.float32(0))
            n_bad += n_bad_here
            norms = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            n, total, most = n + len(part), total + float(norms.sum()), max(most, float(norms.max()))
            low, high = min(low, float(part.min())), max(high, float(part.max()))
    return replace(found, norm_mean=total / n, norm_max=most, low=low, high=high, n_bad=n_bad)
