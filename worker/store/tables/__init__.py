"""The tables as the store's statements see them: names, types, keys and indexes.

The migrations make the database, with its check constraints and views; a test compares the two.
"""

from worker.store.tables.answers import (
    INTERACTION_TIME,
    chunk_attributions,
    interactions,
    passages,
    sentences,
    verdicts,
)
from worker.store.tables.jobs import attribution_jobs, rescore_jobs, result_exports, second_opinions
from worker.store.tables.maintenance import job_runs, retention_periods, schema_revisions
from worker.store.tables.metadata import METADATA
from worker.store.tables.reviews import (
    outbox,
    review_labels,
    review_leases,
    review_paces,
    review_policies,
    review_sentences,
    review_tasks,
)
from worker.store.tables.thresholds import calibration_runs, scorers, threshold_activations, thresholds
from worker.store.tables.topics import ledger, ledger_items, offset_gaps, partition_offsets
from worker.store.tables.traces import trace_aliases, trace_pieces, traces

__all__ = [
    "INTERACTION_TIME",
    "METADATA",
    "attribution_jobs",
    "calibration_runs",
    "chunk_attributions",
    "interactions",
    "job_runs",
    "ledger",
    "ledger_items",
    "offset_gaps",
    "outbox",
    "partition_offsets",
    "passages",
    "rescore_jobs",
    "result_exports",
    "retention_periods",
    "review_labels",
    "review_leases",
    "review_paces",
    "review_policies",
    "review_sentences",
    "review_tasks",
    "schema_revisions",
    "scorers",
    "second_opinions",
    "sentences",
    "threshold_activations",
    "thresholds",
    "trace_aliases",
    "trace_pieces",
    "traces",
    "verdicts",
]
