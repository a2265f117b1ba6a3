"""The watchdog: a process in which a part has gone silent ends, and no other one does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.waiting import wait_until
from worker.runtime.watchdog import Liveness

DEADLINE_S = 60.0

# What the processes below have in common. Whoever is called "poll" has half a second.
BEGINNING = """
import ctypes, os, sys, threading, time
from worker.runtime import watchdog
from worker.runtime.logs import configure_logs
from worker.runtime.watchdog import Liveness, Watchdog

class Counting(Liveness):
    looks = 0
    def silent(self, now=None):
        self.looks += 1
        return super().silent(now)

configure_logs("info")
liveness = Counting()
liveness.expect("poll", 0.5)
dog = Watchdog(liveness, look_every_s=0.02)

def wait_for_looks(number, meanwhile=lambda: None):
    last = liveness.looks + number
    while liveness.looks < last:
        meanwhile()
        time.sleep(0.01)
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BEGINNING + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@contextmanager
def started(script: str) -> Iterator[subprocess.Popen[str]]:
    """A process on three pipes; killed at the end if it still runs."""
    command, pipe = [sys.executable, "-c", script], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_component_is_silent_once_it_was_not_heard_of_for_longer_than_it_may() -> None:
    liveness = Liveness()
    liveness.expect("poll", 10.0)
    liveness.expect("engine", 100.0)
    now = time.monotonic()
    assert liveness.silent(now + 9.0) == ()
    ((name, seconds),) = liveness.silent(now + 11.0)
    assert name == "poll"
    assert seconds == pytest.approx(11.0, abs=0.5)


def test_a_beat_ends_the_silence() -> None:
    liveness = Liveness()
    liveness.expect("poll", 0.0)
    wait_until(liveness.silent, what="silence", deadline_s=DEADLINE_S)
    before = time.monotonic()
    liveness.beat("poll")
    assert liveness.silent(before) == ()


def test_an_excused_component_may_be_silent_until_it_beats_again() -> None:
    liveness = Liveness()
    liveness.expect("engine", 10.0)
    liveness.excuse("engine")
    assert liveness.silent(time.monotonic() + 1000.0) == ()
    liveness.beat("engine")
    assert [name for name, _ in liveness.silent(time.monotonic() + 1000.0)] == ["engine"]


@pytest.mark.parametrize("call", [Liveness.beat, Liveness.excuse])
def test_a_component_that_nobody_expects_is_a_mistake(call: object) -> None:
    assert callable(call)
    with pytest.raises(KeyError, match="pol"):
        call(Liveness(), "pol")


def test_time_in_which_nobody_could_be_heard_is_forgiven_but_never_counts_ahead() -> None:
    liveness = Liveness()
    liveness.expect("poll", 10.0)
    liveness.forgive(1000.0)
    liveness.forgive(-1000.0)
    now = time.monotonic()
    assert liveness.silent(now + 9.0) == ()
    assert [name for name, _ in liveness.silent(now + 11.0)] == ["poll"]


def test_a_thread_that_blocks_for_ever_ends_the_process_with_its_stack_on_standard_error() -> None:
    ended = run("""
def wait_for_nothing(secret="what the customer asked"):
    threading.Event().wait()

with dog:
    threading.Thread(target=wait_for_nothing).start()
    wait_for_looks(10**9)
""")
    assert ended.returncode == 70
    assert '"component": "poll"' in ended.stderr
    assert '"event": "wedged"' in ended.stderr
    assert "in wait_for_nothing" in ended.stderr
    assert "customer" not in ended.stderr


def test_a_process_whose_components_beat_or_are_excused_goes_on() -> None:
    ended = run("""
liveness.expect("engine", 0.01)
liveness.excuse("engine")
with dog:
    wait_for_looks(75, lambda: liveness.beat("poll"))
print("went on")
""")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "went on\n", "")


def test_the_watchdog_bites_no_more_once_its_context_is_left() -> None:
    ended = run("""
with Watchdog(liveness, look_every_s=0.02, frozen_within_s=0.3):
    wait_for_looks(3, lambda: liveness.beat("poll"))
while not liveness.silent():
    time.sleep(0.01)
print(len(threading.enumerate()), [name for name, _ in liveness.silent()])
""")
    assert (ended.returncode, ended.stdout) == (0, "1 ['poll']\n")


def test_a_process_in_which_c_code_keeps_the_interpreters_lock_is_ended_too() -> None:
    ended = run("""
def hold_the_lock():
    ctypes.PyDLL(None).sleep(600)

with Watchdog(liveness, look_every_s=0.02, frozen_within_s=0.5):
    wait_for_looks(3, lambda: liveness.beat("poll"))
    hold_the_lock()
""")
    assert ended.returncode == 1
    assert "in hold_the_lock" in ended.stderr


def test_a_wedged_process_ends_although_nobody_reads_its_standard_error() -> None:
    script = """
watchdog.LAST_WORDS_S = 0.5

def fill():
    while True:
        os.write(2, b"x" * 65536)

with dog:
    threading.Thread(target=fill).start()
    wait_for_looks(10**9)
"""
    with started(BEGINNING + script) as process:
        assert process.wait(DEADLINE_S) == 1


def test_a_process_that_was_stopped_and_continued_lives_and_is_still_watched() -> None:
    script = """
with dog:
    wait_for_looks(3)
    liveness.beat("poll")
    print("ready", flush=True)
    sys.stdin.readline()
    wait_for_looks(3)
    print("lives", flush=True)
    wait_for_looks(10**9)
"""
    with started(BEGINNING.replace("0.5)", "1.0)") + script) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, what="the stop")
        stopped_at = time.monotonic()
        wait_until(lambda: time.monotonic() > stopped_at + 1.5, what="a stop longer than the silence that is allowed")
        process.send_signal(signal.SIGCONT)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "lives\n"
        assert process.wait(DEADLINE_S) == 70
