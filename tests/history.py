"""A month of two apps with its reviews, made up in SQL: what dashboards and reports are tried on."""

from __future__ import annotations

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from migrations.database_url import engine_url

APP = "support-bot"
SCORER = "tiny-135m"
# What a hostile answer, question or name may hold; it is in every page's way.
HOSTILE = """<script>alert('1')</script><img src=x onerror="alert(2)">"""

# Two thresholds: the seeded one, and from the second week on one that the busier app has learned.
_VERSIONS = """
SELECT setseed(0.4);
SELECT ensure_weeks(now() - interval '31 days', now() + interval '1 day');
INSERT INTO scorers (model, revision, dtype, template, method, label)
VALUES ('tiny', '0123456789abcdef', 'float32', 'plain-1', 'gasp-1', 'tiny-135m');
INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from, note, created_at,
    activated_at, is_active, curve)
VALUES
    (NULL, 1, 1, 0.2, 0.6, 'seeded', 'from the table in docs/thresholds.md', now() - interval '30 days',
        now() - interval '30 days', true, NULL),
    ('support-bot', 1, 1, 0.45, 0.8, 'calibrated', :hostile, now() - interval '16 days',
        now() - interval '16 days', true,
        '{"scores": [-0.6, 0.0, 0.3, 0.5, 0.7, 1.0, 2.0], "probabilities": [0.97, 0.85, 0.6, 0.35, 0.17, 0.05, 0.01]}');
INSERT INTO threshold_activations (threshold_id, activated_at, activated_by, reason)
VALUES (1, now() - interval '30 days', 'gasp-worker', 'seeded'),
    (2, now() - interval '16 days', 'recalibration', 'calibrated')
"""

# One sentence in nine is made up; those score low, and the others seldom do.
_EXCHANGES = """
CREATE TEMPORARY TABLE exchange AS
SELECT n, CASE WHEN n % 10 < 7 THEN 'support-bot' ELSE 'intranet' END AS app, 'conversation-' || n AS interaction_id,
    now() - interval '30 days' + n * (interval '30 days' / :interactions) AS time,
    n % 40 = 0 AS is_skipped, random() AS luck
FROM generate_series(1, :interactions) AS n;
CREATE TEMPORARY TABLE said AS
SELECT found.*, length(text) AS size, coalesce(sum(length(text) + 1) OVER before, 0)::integer AS start_char,
    CASE WHEN is_made_up THEN random_normal(0.05, 0.3) ELSE random_normal(1.2, 0.45) END
        - CASE WHEN n % 50 = 6 AND s = 1 THEN 0.8 ELSE 0 END AS gap
FROM (
    SELECT n, s, random() < 0.11 OR (n % 50 = 6 AND s = 1) AS is_made_up, (ARRAY[
        'The warranty of the water kettle lasts thirty months from the day of delivery.',
        'You can send it back within fourteen days, and the shipping label is in the box.',
        'Both filters have to be rinsed once a week under running water.',
        'A replacement part costs 12.50 euros and is sent on the next working day.',
        'In 2019 the design won an award that no other kettle had won before.'
    ])[1 + (n * 7 + s * 3) % 5] || CASE WHEN n % 50 = 6 AND s = 1 THEN ' ' || :hostile ELSE '' END AS text
    FROM exchange, generate_series(0, 3 + n % 4) AS s
) AS found
WINDOW before AS (PARTITION BY n ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);
INSERT INTO interactions (id, app, interaction_id, revision, is_current, content_hash, occurred_at, received_at,
    stored_at, question, answer, generator_model, metadata, repairs, adapter, source_topic, source_partition,
    source_offset)
OVERRIDING SYSTEM VALUE
SELECT n, app, interaction_id, 1, true, sha256(interaction_id::bytea), time, time, time + interval '2 seconds',
    'How do I look after the kettle? ' || :hostile,
    (SELECT string_agg(text, ' ' ORDER BY s) FROM said WHERE said.n = exchange.n),
    CASE WHEN n % 3 = 0 THEN 'writer-small' ELSE 'writer-large' END, '{}', '{}', 'native', 'gasp.interactions.v1',
    n % 4, n / 4
FROM exchange;
INSERT INTO passages (interaction_pk, position, stored_at, passage_id, text, score, metadata)
SELECT n, p, time + interval '2 seconds', 'kb-' || (n * 3 + p) % 40, 'What the manual says in its part ' || p, 0.5, '{}'
FROM exchange, generate_series(0, 3) AS p WHERE NOT is_skipped;
CREATE TEMPORARY TABLE judged AS
SELECT exchange.*, thresholds.id AS threshold_id, flag_below, attribute_below, found.*
FROM exchange
JOIN thresholds
    ON thresholds.id = CASE WHEN exchange.app = 'support-bot' AND time > now() - interval '16 days' THEN 2 ELSE 1 END
CROSS JOIN LATERAL (
    SELECT count(*) AS n_sentences, count(*) FILTER (WHERE gap < flag_below) AS n_flagged, min(gap) AS lowest_score
    FROM said WHERE said.n = exchange.n
) AS found;
INSERT INTO verdicts (id, interaction_pk, scorer_id, threshold_id, method, skip_reason, lowest_score, context_tokens,
    context_tokens_cut, answer_tokens, answer_tokens_cut, n_sentences, n_scored, n_flagged, scored_at, attributed_at,
    context_windows, language, language_supported)
OVERRIDING SYSTEM VALUE
SELECT n, n, 1, threshold_id,
    CASE WHEN lowest_score < attribute_below AND NOT is_skipped THEN 'leave_one_out' ELSE 'two_pass' END,
    CASE WHEN is_skipped THEN 'no_passages' END, CASE WHEN NOT is_skipped THEN lowest_score END, 400, 0, 100, 0,
    n_sentences, CASE WHEN is_skipped THEN 0 ELSE n_sentences END, CASE WHEN is_skipped THEN 0 ELSE n_flagged END,
    time + interval '2 seconds',
    CASE WHEN lowest_score < attribute_below AND NOT is_skipped THEN time + interval '1 minute' END, 1,
    CASE WHEN n % 25 = 0 THEN 'und-Cyrl' ELSE 'en' END, n % 25 <> 0
FROM judged;
INSERT INTO sentences (verdict_id, sentence_index, scored_at, start_char, end_char, kind, n_tokens, score,
    gap, jsd_no_context, surprisal, skip_reason, flagged, supporting_chunk, supporting_passage, supporting_drop,
    unsupported_probability, worst_start, worst_end)
SELECT n, s, time + interval '2 seconds', start_char, start_char + size, 'prose', 14,
    CASE WHEN NOT is_skipped THEN gap END, CASE WHEN NOT is_skipped THEN gap END,
    CASE WHEN NOT is_skipped THEN 0.1 END, CASE WHEN NOT is_skipped THEN 1.5 END,
    CASE WHEN is_skipped THEN 'no_passages' END, CASE WHEN NOT is_skipped THEN gap < flag_below END,
    rests_on, rests_on, CASE WHEN rests_on IS NOT NULL THEN 0.4 END,
    CASE WHEN NOT is_skipped AND threshold_id = 2 THEN 1 / (1 + exp(7 * (gap - 0.45))) END,
    CASE WHEN NOT is_skipped THEN start_char + 4 END, CASE WHEN NOT is_skipped THEN start_char + 24 END
FROM judged JOIN said USING (n)
CROSS JOIN LATERAL (
    SELECT CASE WHEN NOT is_skipped AND lowest_score < attribute_below AND NOT is_made_up THEN (n + s) % 3 END
) AS attributed (rests_on)
"""

# A flagged sentence is asked about six times in ten, another one the more rarely the higher it scores. The last three
# days wait; every fifth task was read by two people, and one label in fifty is wrong.
_REVIEWS = """
INSERT INTO review_policies (app, daily_sentences, sampled_share, objective, target, attribution_share, reviewers)
VALUES (NULL, 40, 0.4, 'recall', 0.8, 0.2, 1);
CREATE TEMPORARY TABLE asked AS
SELECT n, s, start_char, start_char + size AS end_char, gap, gap < flag_below AS flagged, is_made_up, probability
FROM judged JOIN said USING (n)
CROSS JOIN LATERAL (
    SELECT CASE WHEN gap < flag_below THEN 0.6 ELSE 0.35 * greatest(0.2, exp((flag_below - gap) / 0.4)) END
) AS chance (probability)
WHERE NOT is_skipped AND luck < probability;
INSERT INTO review_tasks (app, interaction_id, revision, interaction_pk, scorer_id, threshold_id, reason, probability,
    lowest_score, reviewers, state, round, created_at, closed_at)
SELECT app, interaction_id, 1, n, 1, threshold_id, CASE WHEN bool_or(flagged) THEN 'flagged' ELSE 'sampled' END,
    max(probability), min(asked.gap), 1,
    CASE WHEN time < now() - interval '3 days' THEN 'labelled' WHEN n % 9 = 0 THEN 'disputed' ELSE 'open' END, 1,
    time + interval '2 seconds', CASE WHEN time < now() - interval '3 days' THEN time + interval '20 hours' END
FROM judged JOIN asked USING (n) GROUP BY n, app, interaction_id, threshold_id, time ORDER BY n;
INSERT INTO review_sentences (task_pk, sentence_index, start_char, end_char, score, flagged, reason, probability)
SELECT id, s, start_char, end_char, gap, flagged, CASE WHEN flagged THEN 'flagged' ELSE 'sampled' END,
    asked.probability
FROM review_tasks JOIN asked ON asked.n = interaction_pk;
INSERT INTO review_labels (tool, external_id, action, label, detail, task_id, sentence_index, reviewer, labelled_at,
    received_at, source)
SELECT 'label-studio', task_id || '-' || s || '-' || reader, 'label', said.label,
    CASE WHEN said.label = 'unsupported' THEN 'baseless' END, task_id, s, reviewer, spoken_at,
    spoken_at + interval '1 minute', 'topic'
FROM review_tasks JOIN asked ON asked.n = interaction_pk
CROSS JOIN generate_series(0, CASE WHEN n % 5 = 0 THEN 1 ELSE 0 END) AS reader
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN random() < 0.02 THEN 'cant_tell'
        WHEN is_made_up <> (random() < 0.02) THEN CASE WHEN random() < 0.15 THEN 'partly' ELSE 'unsupported' END
        WHEN random() < 0.05 THEN 'not_a_claim'
        ELSE 'supported'
    END, (ARRAY['anna', 'ben', 'chris'])[1 + (n + reader) % 3], created_at + random() * interval '18 hours'
) AS said (label, reviewer, spoken_at)
WHERE state = 'labelled' OR (state = 'disputed' AND reader = 0);
INSERT INTO outbox (task_pk, channel, round, state, attempts, created_at, finished_at)
SELECT id, 'kafka', 1, 'done', 1, created_at, created_at + interval '1 second' FROM review_tasks;
INSERT INTO calibration_runs (app, scorer_id, ran_at, trigger, outcome, reason, in_force_id, threshold_id, numbers)
VALUES
    ('support-bot', 1, now() - interval '23 days', 'schedule', 'refused', 'too_few_unsupported', 1, NULL,
        '{"n_labels": 61, "n_unsupported": 17, "effective_n": 31.4, "psi": null}'),
    ('support-bot', 1, now() - interval '16 days', 'schedule', 'new', 'reached', 1, 2,
        '{"n_labels": 143, "n_unsupported": 41, "effective_n": 70.2, "psi": 0.02, "prior": 0.12, "prior_low": 0.08,
          "prior_high": 0.17, "recall": 0.86, "recall_low": 0.8, "recall_high": 0.93, "precision": 0.63,
          "precision_low": 0.5, "precision_high": 0.74, "flagged_share": 0.13}'),
    ('support-bot', 1, now() - interval '9 days', 'schedule', 'unchanged', 'reached', 2, NULL,
        '{"n_labels": 232, "n_unsupported": 78, "effective_n": 118.0, "psi": 0.03, "prior": 0.11, "prior_low": 0.08,
          "prior_high": 0.15, "recall": 0.84, "recall_low": 0.77, "recall_high": 0.9, "precision": 0.6,
          "precision_low": 0.5, "precision_high": 0.69, "flagged_share": 0.14}'),
    ('intranet', 1, now() - interval '2 days', 'command', 'refused', 'too_few_unsupported', 1, NULL,
        '{"n_labels": 94, "n_unsupported": 22, "effective_n": 51.9, "psi": 0.05}')
"""

_OPERATION = """
INSERT INTO ledger (topic, partition, record_offset, outcome, reason, interaction_pk, value_bytes, broker_time,
    settled_at)
SELECT 'gasp.interactions.v1', n % 4, n / 4,
    CASE WHEN n % 90 = 0 THEN 'dead_lettered' WHEN is_skipped THEN 'skipped' ELSE 'scored' END,
    CASE WHEN n % 90 = 0 THEN 'invalid_json' WHEN is_skipped THEN 'no_passages' END,
    CASE WHEN n % 90 <> 0 THEN n END, 900, time, time + interval '2 seconds'
FROM exchange;
INSERT INTO traces (system, trace_id, app, first_at, last_at, pieces, steps, has_root, closed_by, outcome, reason,
    interaction_pks, state, finished_at, run_after)
SELECT 'otlp', 'trace-' || n, app, time, time, 4, 12, n % 7 <> 0,
    CASE WHEN n % 7 = 0 THEN 'time_out' ELSE 'complete' END,
    CASE WHEN n % 3 = 0 THEN 'scored' ELSE 'skipped' END, CASE WHEN n % 3 <> 0 THEN 'not_rag' END,
    CASE WHEN n % 3 = 0 THEN ARRAY[n::bigint] ELSE '{}' END, 'done', time + interval '20 seconds', time
FROM exchange WHERE n % 20 = 0;
INSERT INTO traces (system, trace_id, app, first_at, last_at, pieces, steps, has_root)
SELECT 'langsmith', 'open-' || n, 'support-bot', now() - n * interval '1 minute', now(), 2, 5, n % 2 = 0
FROM generate_series(1, 9) AS n;
INSERT INTO partition_offsets (topic, partition, next_offset, end_offset, owner, generation, last_broker_time)
SELECT 'gasp.interactions.v1', p, 500, 503 + p, 'worker-1', 3, now() FROM generate_series(0, 3) AS p;
INSERT INTO offset_gaps (topic, partition, incarnation, from_offset, to_offset, reason, owner, noticed_at)
VALUES ('gasp.interactions.v1', 2, 0, 310, 345, 'retention', 'worker-1', now() - interval '12 days');
INSERT INTO job_runs (job, scheduled_for, owner, started_at, finished_at, outcome, detail)
SELECT job, day, 'worker-1', day, day + interval '3 seconds',
    CASE WHEN job = 'retention' AND extract(day FROM day) = 7 THEN 'failed' ELSE 'done' END, NULL
FROM generate_series(now() - interval '29 days', now(), interval '1 day') AS day,
    unnest(ARRAY['retention', 'recalibrate']) AS job
"""


def fill(url: str, *, interactions: int = 2_000, reviewed: bool = True) -> None:
    """Fill a migrated, empty database with the thirty days until now; without reviews nobody was asked anything."""
    values: dict[str, object] = {"interactions": interactions, "hostile": HOSTILE}
    parts = (_VERSIONS, _EXCHANGES, *([_REVIEWS] if reviewed else []), _OPERATION)
    engine = create_engine(engine_url(url), poolclass=NullPool)
    with engine.begin() as connection:
        for statement in ";\n".join(parts).split(";\n"):
            used = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement), used)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
