"""The statistics of `kvdesk.experiments.statistics` under the name that the benches of drawing know."""

from kvdesk.experiments.statistics import MOST_ROUNDS, SURE, error, ratio, ratio_at_least

__all__ = ["MOST_ROUNDS", "SURE", "error", "ratio", "ratio_at_least"]
