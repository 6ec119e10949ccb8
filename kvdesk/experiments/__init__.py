"""The laboratory: questions about the KV cache, each answered by an experiment that anyone can run on any model."""

from difflib import get_close_matches

from kvdesk.errors import UserError
from kvdesk.experiments.experiment import Experiment
from kvdesk.experiments.questions import (
    batching,
    context_size,
    defrag_policies,
    documents,
    drafts,
    eviction,
    forgetting,
    fragmentation,
    kv_types,
    move_cost,
    no_cache,
    paged,
    positions,
    prefix_sharing,
    rebuild,
    requantization,
    ring_buffer,
    seq_ids,
    seq_rm_memory,
    six_requests,
    size_formula,
    soak,
    threads,
)
from kvdesk.translation import tr

EXPERIMENTS: tuple[Experiment, ...] = (
    six_requests.EXPERIMENT,
    positions.EXPERIMENT,
    seq_ids.EXPERIMENT,
    seq_rm_memory.EXPERIMENT,
    size_formula.EXPERIMENT,
    no_cache.EXPERIMENT,
    fragmentation.EXPERIMENT,
    kv_types.EXPERIMENT,
    requantization.EXPERIMENT,
    forgetting.EXPERIMENT,
    eviction.EXPERIMENT,
    context_size.EXPERIMENT,
    threads.EXPERIMENT,
    rebuild.EXPERIMENT,
    move_cost.EXPERIMENT,
    ring_buffer.EXPERIMENT,
    batching.EXPERIMENT,
    drafts.EXPERIMENT,
    soak.EXPERIMENT,
    prefix_sharing.EXPERIMENT,
    documents.EXPERIMENT,
    paged.EXPERIMENT,
    defrag_policies.EXPERIMENT,
)


def experiment_by_id(name: str) -> Experiment:
    """Raises UserError if there is none."""
    for experiment in EXPERIMENTS:
        if experiment.id == name:
            return experiment
    ids = [experiment.id for experiment in EXPERIMENTS]
    near = get_close_matches(name, ids, 1)
    advice = (
        tr("Did you mean {near}?").format(near=near[0])
        if near
        else tr("There are {names}.").format(names=", ".join(ids))
    )
    raise UserError(tr("There is no experiment {name}. {advice}").format(name=name, advice=advice))
