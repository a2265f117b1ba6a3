"""The files of tests that take longest, the longest first.

Files are handed out one by one to the processes of `make test`: one that is begun late goes on when the others have
ended. What a file takes is mostly waiting, so that these are long on any machine.
"""

from __future__ import annotations

LONGEST = (
    "tests/acceptance/test_operation.py",
    "tests/acceptance/test_soak_short.py",
    "tests/acceptance/test_hard_work.py",
    "tests/acceptance/test_rolling_upgrade.py",
    "tests/integration/test_consume.py",
    "tests/integration/test_broker_contract.py",
    "tests/acceptance/test_human_loop.py",
    "tests/acceptance/test_supporting_passages.py",
    "tests/integration/test_dlq.py",
    "tests/acceptance/test_recovery.py",
    "tests/acceptance/test_gaps.py",
    "tests/acceptance/test_trace_recovery.py",
    "tests/acceptance/test_any_model.py",
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_detect.py",
    "tests/acceptance/test_dlq.py",
    "tests/acceptance/test_packaged_model.py",
    "tests/unit/scoring/test_peers.py",
    "tests/integration/test_benchmarks.py",
    "tests/acceptance/test_bad_inputs.py",
    "tests/integration/test_review_topic.py",
    "tests/integration/test_review_page_browser.py",
    "tests/integration/test_wheel.py",
    "tests/integration/test_broker_security.py",
    "tests/integration/test_roles.py",
    "tests/integration/test_labelling.py",
    "tests/integration/test_migrations.py",
    "tests/acceptance/test_traces.py",
)
