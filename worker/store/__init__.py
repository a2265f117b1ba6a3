"""The only place that speaks SQL: what the worker keeps in PostgreSQL."""

from worker.store.errors import StoreConflict, StoreError, StoreNotReady, StoreRejected, StoreUnavailable
from worker.store.jobs import AttributionJob
from worker.store.leases import Backlog
from worker.store.readback import SentenceRow
from worker.store.rescoring import RescoreJob
from worker.store.status import PartitionStatus
from worker.store.store import Store, open_store

__all__ = [
    "AttributionJob",
    "Backlog",
    "PartitionStatus",
    "RescoreJob",
    "SentenceRow",
    "Store",
    "StoreConflict",
    "StoreError",
    "StoreNotReady",
    "StoreRejected",
    "StoreUnavailable",
    "open_store",
]
