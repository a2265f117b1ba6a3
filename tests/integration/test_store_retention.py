from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from typer.testing import CliRunner

from tests.integration.store_examples import (
    OTHER_IDENTITY,
    advance,
    age,
    attributed,
    claim,
    prepared,
    rows,
    scored,
)
from worker.commands.retention import retention
from worker.errors import Stopped, WorkerError
from worker.jobs import retention as retention_run
from worker.jobs.retention import Removal, Remover, describe_removal
from worker.store.attribution_jobs import AttributionJob
from worker.store.errors import PartitionMissing, StoreBusy
from worker.store.partitioning import WEEKLY_TABLES
from worker.store.retention import Overdue
from worker.store.retention_periods import Period
from worker.store.store import Store

NOTHING = Removal(Overdue(0, 0, 0, 0))
WEEKS = "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1"
TABLES = ("interactions", "verdicts", "attribution_jobs", "rescore_jobs", *WEEKLY_TABLES)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


class StopsAfter(threading.Event):
    """Set from the given look on: a process that ends between any two steps."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@pytest.fixture
def shop(store: Store, database_url: str) -> int:
    """Five answers in each of two apps, 0, 10, 40, 70 and 100 days old, with their jobs and books; the scorer."""
    scorer_id, threshold = prepared(store)
    ages = (0, 10, 40, 70, 100)
    batch = [
        scored(len(ages) * number + place, f"id-{days}", [0.01, 0.9], threshold, app=app)
        for number, app in enumerate(("shop", "help"))
        for place, days in enumerate(ages)
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, len(batch))])
    for days in ages:
        age(database_url, f"id-{days}", days)
    rows(database_url, "UPDATE ledger SET settled_at = now() - (9 - record_offset) * interval '10 days'")
    return scorer_id


def kept(url: str) -> dict[str, list[int]]:
    """The ages in days of each app's interactions, with a check that each has all that belongs to it."""
    found = rows(
        url,
        """
        SELECT app, round(extract(epoch FROM now() - stored_at) / 86400)::int AS days,
            (SELECT count(*) FROM passages p WHERE p.interaction_pk = i.id AND p.stored_at = i.stored_at) AS passages,
            (SELECT count(*) FROM sentences s JOIN verdicts v ON v.id = s.verdict_id AND v.scored_at = s.scored_at
                WHERE v.interaction_pk = i.id) AS sentences,
            (SELECT count(*) FROM attribution_jobs j JOIN verdicts v ON v.id = j.verdict_id
                WHERE v.interaction_pk = i.id) AS jobs
        FROM interactions i ORDER BY app, days
        """,
    )
    assert {(row["passages"], row["sentences"], row["jobs"]) for row in found} <= {(2, 2, 1)}
    return {app: [row["days"] for row in found if row["app"] == app] for app in sorted({row["app"] for row in found})}


def count(url: str, table: str) -> int:
    return int(rows(url, f"SELECT count(*) AS n FROM {table}")[0]["n"])


def old_weeks(url: str, days: int) -> set[str]:
    """The weekly tables that ended before so many days ago."""
    ended = f"{datetime.now(UTC) - timedelta(days=days + 7):%Gw%V}"
    return {row["relname"] for row in rows(url, WEEKS) if row["relname"][-7:] <= ended}


@contextmanager
def reading(url: str, table: str) -> Iterator[None]:
    """Somebody reads a table in a long transaction."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://")) as other:
        other.execute(f"SELECT count(*) FROM {table}")
        yield
        other.rollback()


@pytest.mark.usefixtures("shop")
def test_without_a_period_nothing_is_ever_removed(store: Store, database_url: str, stop: threading.Event) -> None:
    weeks = rows(database_url, WEEKS)
    assert store.retention.overdue() == Overdue(0, 0, 0, 0)
    assert Remover.of(store).remove(stop) == NOTHING
    assert kept(database_url) == {"help": [0, 10, 40, 70, 100], "shop": [0, 10, 40, 70, 100]}
    assert rows(database_url, WEEKS) == weeks


@pytest.mark.usefixtures("shop")
def test_an_app_of_its_own_period_loses_what_is_older_and_the_others_and_every_week_stay(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    weeks = rows(database_url, WEEKS)
    store.retention_periods.set(Period("shop", 30))
    assert store.retention.overdue() == Overdue(0, 3, 0, 0)
    assert Remover.of(store).remove(stop).removed == Overdue(0, 3, 0, 0)
    assert kept(database_url) == {"help": [0, 10, 40, 70, 100], "shop": [0, 10]}
    assert rows(database_url, WEEKS) == weeks
    assert count(database_url, "ledger") == 10
    assert Remover.of(store).remove(stop) == NOTHING


@pytest.mark.usefixtures("shop")
def test_what_no_app_keeps_goes_by_the_week_and_the_rest_by_the_row(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    store.retention_periods.set(Period(None, 60))
    store.retention_periods.set(Period("shop", 30))
    assert old_weeks(database_url, 60)
    found = store.retention.overdue()
    removal = Remover.of(store).remove(stop)
    assert removal == Removal(found)
    assert (found.interactions, found.ledger_rows) == (5, 4)
    assert found.weekly_tables >= 3
    assert kept(database_url) == {"help": [0, 10, 40], "shop": [0, 10]}
    assert old_weeks(database_url, 60) == set()
    assert count(database_url, "attribution_jobs") == 5
    assert Remover.of(store).remove(stop) == NOTHING


@pytest.mark.usefixtures("shop")
def test_an_app_that_is_kept_for_ever_keeps_every_week_and_the_ledger(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    weeks = rows(database_url, WEEKS)
    store.retention_periods.set(Period(None, 30))
    store.retention_periods.set(Period("help", None))
    assert Remover.of(store).remove(stop).removed == Overdue(0, 3, 0, 0)
    assert kept(database_url) == {"help": [0, 10, 40, 70, 100], "shop": [0, 10]}
    assert rows(database_url, WEEKS) == weeks
    assert count(database_url, "ledger") == 10


@pytest.mark.usefixtures("shop")
def test_an_app_with_a_longer_period_than_the_others_decides_over_the_weeks(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    store.retention_periods.set(Period(None, 30))
    store.retention_periods.set(Period("help", 90))
    Remover.of(store).remove(stop)
    assert kept(database_url) == {"help": [0, 10, 40, 70], "shop": [0, 10]}


@pytest.mark.usefixtures("shop")
def test_a_run_that_is_broken_off_anywhere_is_completed_by_the_next(
    store: Store, database_url: str, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_run, "INTERACTIONS_AT_ONCE", 1)
    monkeypatch.setattr(retention_run, "ROWS_AT_ONCE", 1)
    store.retention_periods.set(Period(None, 60))
    broken_off = 0
    while _is_stopped(store, StopsAfter(broken_off)):
        broken_off += 1
    assert broken_off >= 4
    assert kept(database_url) == {"help": [0, 10, 40], "shop": [0, 10, 40]}
    assert count(database_url, "ledger") == 6
    assert Remover.of(store).remove(stop) == NOTHING


def _is_stopped(store: Store, stop: threading.Event) -> bool:
    try:
        Remover.of(store).remove(stop)
    except Stopped:
        return True
    return False


def rows_by_app(url: str) -> dict[str, int]:
    return {row["app"]: row["n"] for row in rows(url, "SELECT app, count(*) AS n FROM interactions GROUP BY app")}


@pytest.mark.usefixtures("shop")
def test_weeks_that_somebody_reads_stay_for_now_and_the_rows_in_them_go(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    store.retention_periods.set(Period(None, 60))
    with reading(database_url, "passages"):
        removal = Remover.of(store).remove(stop)
        assert removal.in_use == ("passages",)
        assert describe_removal(removal).endswith("; in use: passages")
    assert kept(database_url) == {"help": [0, 10, 40], "shop": [0, 10, 40]}
    assert {name.split("_2")[0] for name in old_weeks(database_url, 60)} == {"passages"}
    assert Remover.of(store).remove(stop).removed.weekly_tables > 0
    assert old_weeks(database_url, 60) == set()


@pytest.mark.usefixtures("shop")
def test_whoever_uses_one_table_does_not_keep_us_from_dropping_weeks_of_another(
    store: Store, database_url: str
) -> None:
    before = datetime.now(UTC) - timedelta(days=60)
    store.retention_periods.set(Period(None, 60))
    with reading(database_url, "sentences"):
        assert store.weekly_partitions.drop("passages", before) > 0
        with pytest.raises(StoreBusy):
            store.weekly_partitions.drop("sentences", before)


@pytest.mark.usefixtures("shop")
def test_only_weeks_of_the_weekly_tables_that_no_period_covers_can_be_dropped(store: Store) -> None:
    ever = datetime.now(UTC) + timedelta(days=3650)
    assert store.weekly_partitions.drop("passages", ever) == 0
    store.retention_periods.set(Period(None, 60))
    store.retention_periods.set(Period("shop", None))
    assert store.weekly_partitions.drop("passages", ever) == 0
    store.retention_periods.set(Period("shop", 200))
    assert store.weekly_partitions.drop("passages", ever) == 0
    store.retention_periods.set(Period("shop", 30))
    assert store.weekly_partitions.drop("interactions", ever) == 0
    assert store.weekly_partitions.drop("passages", ever) > 0


def test_an_old_answer_that_was_judged_again_goes_with_both_its_verdicts(
    store: Store, database_url: str, shop: int, stop: threading.Event
) -> None:
    other_id, threshold = prepared(store, OTHER_IDENTITY)
    again = scored(10, "id-40", [0.01, 0.9], threshold)
    store.settlements.settle(other_id, [again], [advance(10, 11)])
    assert count(database_url, "verdicts") == 11
    store.retention_periods.set(Period("help", None))
    store.retention_periods.set(Period("shop", 30))
    Remover.of(store).remove(stop)
    assert rows(database_url, "SELECT DISTINCT scorer_id FROM verdicts") == [{"scorer_id": shop}]
    assert count(database_url, "sentences") == 2 * count(database_url, "verdicts") == 14
    store.retention_periods.set(Period("help", 30))
    store.retention_periods.set(Period(None, 30))
    Remover.of(store).remove(stop)
    assert kept(database_url) == {"help": [0, 10], "shop": [0, 10]}


def test_an_old_answer_that_was_judged_again_keeps_what_was_found_lately(
    store: Store, database_url: str, shop: int, stop: threading.Event
) -> None:
    """The answer is kept, and the week of its first verdict, although it is older, is kept with it."""
    other_id, threshold = prepared(store, OTHER_IDENTITY)
    store.settlements.settle(other_id, [scored(10, "id-70", [0.01, 0.9], threshold)], [advance(10, 11)])
    store.retention_periods.set(Period(None, 80))
    Remover.of(store).remove(stop)
    found = rows(
        database_url,
        "SELECT v.scorer_id, count(*) AS n FROM interactions i JOIN verdicts v ON v.interaction_pk = i.id "
        "JOIN sentences s ON s.verdict_id = v.id WHERE i.app = 'shop' AND i.interaction_id = 'id-70' GROUP BY 1",
    )
    assert {(row["scorer_id"], row["n"]) for row in found} == {(shop, 2), (other_id, 2)}


def _running_job_of(store: Store, url: str, scorer_id: int, interaction_id: str) -> AttributionJob:
    """Claim the jobs until the one of the answer comes; the worker is then at it."""
    pk = "SELECT v.id FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk WHERE interaction_id = %(id)s"
    wanted = rows(url, f"{pk} AND app = 'shop'", id=interaction_id)[0]["id"]
    claims: Callable[[], AttributionJob | None] = lambda: store.attribution_jobs.claim("w", scorer_id, 60, 3)  # noqa: E731 - for iter
    return next(job for job in iter(claims, None) if job.verdict_id == wanted)


@pytest.mark.parametrize("period", [Period(None, 60), Period("shop", 60)], ids=["by week", "by row"])
def test_a_job_on_an_answer_that_is_removed_meanwhile_ends_as_a_lost_lease(
    store: Store, database_url: str, shop: int, stop: threading.Event, period: Period
) -> None:
    job = _running_job_of(store, database_url, shop, "id-100")
    store.retention_periods.set(period)
    Remover.of(store).remove(stop)
    found = attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])
    assert not store.attribution_jobs.finish(job, found)
    assert not store.leases.retry(job, "late", 0)
    assert not store.leases.fail(job, "late")
    assert count(database_url, "chunk_attributions") == 0


def test_a_finished_attribution_goes_with_its_answer(
    store: Store, database_url: str, shop: int, stop: threading.Event
) -> None:
    job = _running_job_of(store, database_url, shop, "id-100")
    assert store.attribution_jobs.finish(job, attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]]))
    store.retention_periods.set(Period("shop", 1))
    Remover.of(store).remove(stop)
    assert count(database_url, "chunk_attributions") == 0
    assert rows_by_app(database_url) == {"help": 5, "shop": 1}


@pytest.mark.usefixtures("shop")
def test_a_job_that_ends_and_a_removal_at_once_never_wait_for_each_other(
    store: Store, database_url: str, shop: int, stop: threading.Event
) -> None:
    jobs = list(iter(lambda: store.attribution_jobs.claim("w", shop, 60, 3), None))
    store.retention_periods.set(Period(None, 1))
    found = attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])
    ended: list[bool] = []
    worker = threading.Thread(target=lambda: ended.extend(store.attribution_jobs.finish(job, found) for job in jobs))
    worker.start()
    Remover.of(store).remove(stop)
    worker.join(60)
    assert len(ended) == 10
    Remover.of(store).remove(stop)
    assert rows_by_app(database_url) == {"help": 1, "shop": 1}
    assert deadlocks(database_url) == 0


def deadlocks(url: str) -> int:
    return int(rows(url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0]["deadlocks"])


@pytest.mark.usefixtures("shop")
def test_the_ledger_is_never_removed_beyond_the_position_of_its_partition(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    rows(database_url, "UPDATE ledger SET settled_at = now() - interval '99 days'")
    rows(database_url, "UPDATE partition_offsets SET next_offset = 7")
    store.retention_periods.set(Period(None, 30))
    assert Remover.of(store).remove(stop).removed.ledger_rows == 7
    assert [row["record_offset"] for row in rows(database_url, "SELECT record_offset FROM ledger ORDER BY 1")] == [
        7,
        8,
        9,
    ]
    # So it is with one that went with its topic.
    rows(database_url, "UPDATE partition_offsets SET next_offset = 8, vanished_at = now()")
    assert Remover.of(store).remove(stop).removed.ledger_rows == 1
    rows(database_url, "UPDATE partition_offsets SET incarnation = 1, next_offset = 0, vanished_at = NULL")
    assert Remover.of(store).remove(stop).removed.ledger_rows == 2


def test_offset_gaps_go_when_no_app_keeps_anything_so_old(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    prepared(store)
    for generation, beginning in ((4, 5), (5, 9)):
        assert store.offsets.claim(claim(generation=generation, beginning=beginning)) is not None
    rows(database_url, "UPDATE offset_gaps SET noticed_at = now() - interval '40 days' WHERE from_offset = 0")
    assert Remover.of(store).remove(stop) == NOTHING
    store.retention_periods.set(Period(None, 30))
    assert Remover.of(store).remove(stop).removed == Overdue(0, 0, 0, 1)
    assert [row["from_offset"] for row in rows(database_url, "SELECT from_offset FROM offset_gaps")] == [5]


@pytest.mark.usefixtures("shop")
def test_what_was_removed_can_be_logged_and_judged_again(
    store: Store, database_url: str, stop: threading.Event, shop: int
) -> None:
    store.retention_periods.set(Period(None, 60))
    Remover.of(store).remove(stop)
    _, threshold = prepared(store)
    store.settlements.settle(shop, [scored(10, "id-100", [0.01, 0.9], threshold)], [advance(10, 11)])
    assert kept(database_url)["shop"] == [0, 0, 10, 40]


def test_the_weeks_are_made_ahead_and_only_once(store: Store, database_url: str) -> None:
    before = count(database_url, "pg_class WHERE relispartition AND relkind = 'r'")
    assert store.weekly_partitions.ensure() == 0
    assert store.weekly_partitions.ensure(28 + 21) == 9
    assert store.weekly_partitions.ensure(28 + 21) == 0
    assert count(database_url, "pg_class WHERE relispartition AND relkind = 'r'") == before + 9


def test_a_long_transaction_does_not_let_the_making_of_weeks_stop_everyone(store: Store, database_url: str) -> None:
    with psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://")) as other:
        other.execute("LOCK TABLE interactions IN ROW EXCLUSIVE MODE")
        with pytest.raises(StoreBusy):
            store.weekly_partitions.ensure(50)
        other.rollback()
    assert store.weekly_partitions.ensure(50) == 9


def drop_every_week(url: str) -> None:
    for row in rows(url, WEEKS):
        rows(url, f"DROP TABLE {row['relname']}")


def test_a_batch_is_settled_although_nobody_made_its_week(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    drop_every_week(database_url)
    settled = store.settlements.settle(scorer_id, [scored(0, "a", [0.9, 0.01], threshold)], [advance(0, 1)])
    assert settled.fenced == ()
    assert (count(database_url, "passages"), count(database_url, "sentences")) == (2, 2)
    assert len(rows(database_url, WEEKS)) == 15


def test_a_row_of_a_week_that_is_gone_is_a_passing_fault_and_leaves_nothing(
    store: Store, database_url: str, shop: int
) -> None:
    job = _running_job_of(store, database_url, shop, "id-100")
    before = store.attribution_jobs.backlog()
    drop_every_week(database_url)
    with pytest.raises(PartitionMissing, match="table chunk_attributions"):
        store.attribution_jobs.finish(job, attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]]))
    assert store.attribution_jobs.backlog() == before


@pytest.fixture
def gasp(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Runs ``gasp-worker retention`` with arguments; gives the lines that it prints."""
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)

    def run(*arguments: str) -> list[str]:
        done = CliRunner().invoke(retention, arguments)
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    return run


@pytest.mark.usefixtures("shop")
def test_the_command_sets_shows_and_runs_retention(gasp: Callable[..., list[str]], database_url: str) -> None:
    assert gasp() == ["overdue: 0 weekly tables, 0 interactions, 0 ledger rows, 0 rows of lost offsets"]
    assert gasp("set", "90") == ["every other app: 90 days"]
    assert gasp("set", "30", "--app", "shop") == ["shop: 30 days"]
    assert gasp("keep", "--app", "help") == ["help: for ever"]
    assert gasp() == [
        "every other app: 90 days",
        "help: for ever",
        "shop: 30 days",
        "overdue: 0 weekly tables, 3 interactions, 0 ledger rows, 0 rows of lost offsets",
    ]
    expected = "0 weekly tables, 3 interactions, 0 ledger rows, 0 rows of lost offsets"
    assert gasp("run", "--dry-run") == [f"would remove {expected}"]
    assert kept(database_url)["shop"] == [0, 10, 40, 70, 100]
    assert gasp("run") == [f"removed {expected}"]
    assert kept(database_url) == {"help": [0, 10, 40, 70, 100], "shop": [0, 10]}
    assert gasp("reset", "--app", "help") == ["help: as every other app"]
    assert gasp("reset", "--app", "help") == ["help: has no period of its own"]
    gasp("run")
    assert kept(database_url)["help"] == [0, 10, 40, 70]
    assert gasp("keep") == ["every other app: for ever"]


@pytest.mark.usefixtures("shop")
def test_an_app_whose_rows_cannot_be_removed_keeps_no_other_from_it(
    store: Store, database_url: str, stop: threading.Event
) -> None:
    store.retention_periods.set(Period("help", 30))
    store.retention_periods.set(Period("shop", 30))
    rows(
        database_url,
        """
        CREATE FUNCTION keep_help() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'kept' USING ERRCODE = 'restrict_violation'; END $$;
        CREATE TRIGGER keep_help BEFORE DELETE ON interactions FOR EACH ROW WHEN (OLD.app = 'help')
        EXECUTE FUNCTION keep_help()
        """,
    )
    with pytest.raises(WorkerError, match="1 of 2 apps failed"):
        Remover.of(store).remove(stop)
    assert kept(database_url) == {"help": [0, 10, 40, 70, 100], "shop": [0, 10]}
