"""A worker in trouble: wedged, told to stop, without its database, with records of any size."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from migrations.upgrade import upgrade
from schemas.dead_letter import DeadLetter
from tests.acceptance.test_bad_inputs import letters_of
from tests.bars import bar
from tests.brokers import Broker
from tests.exchanges import exchange
from tests.faulty_worker import endless_worker, wedged_worker
from tests.pgbouncer import PgBouncerCannotRun, pgbouncer
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.sink import RecordSink
from worker.embedded.guarded import free_port
from worker.embedded.postgres import embedded_postgres

Deploy = Callable[..., Deployment]

STOP_WITHIN_S = 30.0
RESUME_WITHIN_S = 30.0
OUTAGE_S = bar(300, 15)
MIB = 1024 * 1024


def get(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionError:
        return 0, ""
    finally:
        connection.close()


def test_a_worker_whose_poll_thread_wedges_is_ended_so_that_it_can_be_started_anew(
    tansu: Broker, deploy: Deploy
) -> None:
    deployment = deploy(tansu, wedged_after_s=5)
    deployment.send(0, 8)
    with deployment.worker(life=wedged_worker) as worker:
        assert worker.process.wait(90) == 70
        assert worker.events("wedged") == 1
    with deployment.worker():
        deployment.wait_settled(8)


def test_a_stop_in_a_batch_that_does_not_end_abandons_it_and_leaves_within_the_grace(
    tansu: Broker, deploy: Deploy
) -> None:
    deployment = deploy(tansu)
    deployment.send(0, 4)
    with deployment.worker(life=endless_worker) as worker:
        wait_until(lambda: "scoring" in worker.log.read_text(), what="the batch")
        asked_at = time.monotonic()
        assert worker.end(signal.SIGTERM) == 0
        assert time.monotonic() - asked_at < STOP_WITHIN_S
        assert worker.events("batch_abandoned") == 1
    assert deployment.count("ledger") == 0
    with deployment.worker():
        deployment.wait_settled(4)


def test_a_second_signal_ends_a_worker_at_once(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu)
    deployment.send(0, 4)
    with deployment.worker(life=endless_worker) as worker:
        wait_until(lambda: "scoring" in worker.log.read_text(), what="the batch")
        worker.process.send_signal(signal.SIGTERM)

        def ended() -> bool:
            # Signals that come before the first was seen are one with it.
            worker.process.send_signal(signal.SIGTERM)
            return worker.process.poll() is not None

        wait_until(ended, what="the end", deadline_s=5)
        assert worker.process.returncode == -signal.SIGTERM


def test_a_worker_says_over_http_how_it_is(tansu: Broker, deploy: Deploy) -> None:
    port = free_port()
    deployment = deploy(tansu, http_port=port)
    deployment.send(0, 5)
    with deployment.worker() as worker:
        deployment.wait_settled(5)
        wait_until(lambda: get(port, "/readyz")[0] == 200, what="readiness")
        assert get(port, "/healthz")[0] == 200
        wait_until(lambda: 'gasp_lag_messages{partition="0"' in get(port, "/metrics")[1], what="the lag")
        page = get(port, "/metrics")[1]
        assert 'gasp_settled_messages_total{outcome="scored",reason="none"} 5.0' in page
        assert 'app="default"' in page
        assert worker.end(signal.SIGTERM) == 0


def test_a_database_that_is_full_or_read_only_is_waited_out_without_a_dead_letter(
    tansu: Broker, deploy: Deploy
) -> None:
    deployment = deploy(tansu)
    with deployment.worker() as worker:
        deployment.send(0, 3)
        deployment.wait_settled(3)
        # What a full disk says, said by the server itself.
        deployment.execute("""
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON ledger EXECUTE FUNCTION full_disk()
        """)
        deployment.send(3, 3)
        wait_until(lambda: worker.events("transient_fault") >= 2, what="two attempts")
        assert deployment.count("ledger") == 3
        deployment.execute("DROP TRIGGER full_disk ON ledger")
        deployment.wait_settled(6)
        # As after a failover to a standby that is not promoted yet.
        database = deployment.rows("SELECT current_database() AS name")[0]["name"]
        deployment.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'gasp-worker%%'"
        deployment.rows(ended)
        faults = worker.events("transient_fault")
        deployment.send(6, 3)
        wait_until(lambda: worker.events("transient_fault") >= faults + 2, what="two attempts")
        assert deployment.count("ledger") == 6
        deployment.execute(
            f"SET transaction_read_only = off; ALTER DATABASE {database} RESET default_transaction_read_only"
        )
        deployment.wait_settled(9)
        assert worker.process.poll() is None
    assert deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1") == [{"outcome": "scored", "n": 9}]


@pytest.mark.timeout(OUTAGE_S + 300)
def test_an_outage_of_the_database_loses_nothing_and_needs_no_restart(tansu: Broker, deploy: Deploy) -> None:
    directory = Path(tempfile.mkdtemp(prefix="gasp-outage-"))
    try:
        with embedded_postgres(directory, durable=False) as url:
            upgrade(url)
            deployment = deploy(tansu, database_url=url)
            stack = ExitStack()
            worker = stack.enter_context(deployment.worker())
            deployment.send(0, 40)
            deployment.wait_settled(40)
        with stack:
            deployment.send(40, 200)
            process = psutil.Process(worker.process.pid)
            before, ends_at = process.memory_info().rss, time.monotonic() + OUTAGE_S
            wait_until(lambda: time.monotonic() > ends_at, what="the outage", deadline_s=OUTAGE_S + 10)
            grown = process.memory_info().rss - before
            with embedded_postgres(directory, durable=False):
                returned_at = time.monotonic()
                wait_until(lambda: deployment.count("ledger") > 40, what="the first batch after the outage")
                resumed_s = time.monotonic() - returned_at
                deployment.wait_settled(240)
                outcomes = deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1")
                assert worker.process.poll() is None
                assert worker.end(signal.SIGTERM) == 0
        print(f"away for {OUTAGE_S:g} s: grown by {grown / MIB:.1f} MiB, resumed after {resumed_s:.1f} s")
        assert outcomes == [{"outcome": "scored", "n": 240}]
        assert resumed_s < RESUME_WITHIN_S
        assert grown < 20 * MIB
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.kafka
def test_records_of_any_size_have_their_outcome_and_the_partition_moves_on(apache: Broker, deploy: Deploy) -> None:
    deployment = deploy(apache, max_message_bytes=MIB)
    deployment.topic = apache.create_topic(1, {"max.message.bytes": str(80 * MIB)})
    sizes = [int(mib * MIB) for mib in (0.9, 1.1, 9, 60)]
    with RecordSink(apache.bootstrap, max_request_bytes=80 * MIB, max_pending_bytes=80 * MIB) as sink:
        for number, size in enumerate(sizes):
            row = exchange(number)
            row["metadata"] = {"padding": ""}
            row["metadata"] = {"padding": "x" * (size - len(json.dumps(row).encode()))}
            sink.send(deployment.topic, json.dumps(row).encode())
            sink.send(deployment.topic, json.dumps(exchange(100 + number)).encode())
        sink.flush(120)
    with deployment.worker():
        deployment.wait_settled(2 * len(sizes))
    booked = deployment.rows("SELECT outcome, reason, value_bytes FROM ledger ORDER BY record_offset")
    assert [row["value_bytes"] for row in booked[::2]] == sizes
    assert [row["reason"] for row in booked[::2]] == [None, "too_large", "too_large", "too_large"]
    assert {row["outcome"] for row in booked[1::2]} == {"scored"}
    letters = letters_of(deployment, 3)
    facts = [DeadLetter.from_headers(letter.headers) for letter in letters]
    assert [(one.offset, one.size_bytes, one.value_attached) for one in facts] == [
        (2 * number, size, False) for number, size in enumerate(sizes) if number
    ]


def test_a_worker_outlives_a_large_batch_that_no_client_can_decode(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu, wedged_after_s=5)
    deployment.send(0, 4)
    tansu.send_undecodable(deployment.topic, before=0, hidden=2_000)
    deployment.send(4, 4)
    with deployment.worker() as worker:
        deployment.wait_settled(2_009)
        assert worker.process.poll() is None
    counts = deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1 ORDER BY 1")
    assert counts == [{"outcome": "dead_lettered", "n": 2_001}, {"outcome": "scored", "n": 8}]


@pytest.mark.kafka
def test_nothing_waits_in_a_topic_that_ends_with_an_aborted_transaction(apache: Broker, deploy: Deploy) -> None:
    deployment = deploy(apache)
    deployment.send(0, 3)
    with deployment.worker() as worker:
        deployment.wait_settled(3)
        apache.send_transaction(deployment.topic, [json.dumps(exchange(3)).encode()] * 4, aborted=True)
        end = [{"next_offset": 8, "end_offset": 8, "lag": 0}]
        lag = "SELECT next_offset, end_offset, lag FROM v_ingest_lag"
        wait_until(lambda: deployment.rows(lag) == end, what="the end of the topic")
        assert worker.end(signal.SIGTERM) == 0
    assert json.loads(deployment.run("status", "--json").stdout)["lag"] == 0
    assert apache.committed(deployment.topic) == 8


def test_two_workers_run_behind_a_pooler(tansu: Broker, deploy: Deploy, database_url: str) -> None:
    with ExitStack() as stack:
        try:
            pooled_url = stack.enter_context(pgbouncer(database_url, pool_size=3))
        except PgBouncerCannotRun as error:
            pytest.skip(f"PgBouncer cannot run here: {error}")
        deployment = deploy(tansu, partitions=2, database_url=pooled_url)
        deployment.send(0, 40)
        workers = [stack.enter_context(deployment.worker()) for _ in range(2)]
        deployment.wait_settled(40)
        assert [worker.end(signal.SIGTERM) for worker in workers] == [0, 0]
        assert deployment.rows("SELECT count(DISTINCT interaction_id) AS n FROM interactions") == [{"n": 40}]


def test_of_two_workers_with_one_instance_id_the_first_ends_and_says_why(apache: Broker, deploy: Deploy) -> None:
    deployment = deploy(apache, instance_id="one-and-the-same")
    with deployment.worker("consume") as first:
        wait_until(lambda: first.events("rebalanced"), what="the first worker's partition")
        with deployment.worker("consume"):
            assert first.process.wait(90) == 2
    assert "GASP_INSTANCE_ID" in first.log.read_text("utf-8").splitlines()[-1]


def test_two_consumer_groups_on_one_topic_and_database_do_not_take_turns(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu)
    other = deploy(tansu, consumer_group="another-group")
    other.topic = deployment.topic
    deployment.send(0, 12)
    with deployment.worker("consume,attribute") as first:
        deployment.wait_settled(12)
        with other.worker("consume,attribute") as second:
            workers = (first, second)
            wait_until(lambda: any(one.process.poll() is not None for one in workers), what="the end of one of the two")
            (ended,) = (one for one in workers if one.process.poll() is not None)
            assert ended.process.wait(30) == 2
            assert "GASP_CONSUMER_GROUP" in ended.log.read_text("utf-8").splitlines()[-1]
            deployment.send(12, 12)
            deployment.wait_settled(24)


def test_one_worker_reads_several_topics(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu)
    second = tansu.create_topic(1)
    deployment.settings = {**deployment.settings, "topic": f"{deployment.topic}, {second}"}
    deployment.send(0, 6)
    tansu.send(second, [json.dumps(exchange(number)).encode() for number in range(6, 12)])
    with deployment.worker() as worker:
        deployment.wait_settled(12)
        tansu.send(second, [json.dumps(exchange(12)).encode()])
        deployment.wait_settled(13)
        assert worker.end(signal.SIGTERM) == 0
    counted = "SELECT topic, count(*) AS n FROM ledger GROUP BY topic ORDER BY n"
    assert deployment.rows(counted) == [{"topic": deployment.topic, "n": 6}, {"topic": second, "n": 7}]
    told = json.loads(deployment.run("status", "--json").stdout)
    assert told["lag"] == 0
    assert [(one["topic"], one["next_offset"]) for one in told["partitions"]] == [(deployment.topic, 6), (second, 7)]
