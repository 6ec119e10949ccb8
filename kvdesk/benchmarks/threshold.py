"""`Threshold` under the name that the benches of drawing know."""

from kvdesk.experiments.threshold import Threshold

__all__ = ["Threshold"]
