"""The score that a verdict goes by is the chosen detector's, beside the gap; until now the gap was the score."""

from __future__ import annotations

from importlib import import_module

from alembic import op
from sqlalchemy import text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Names of columns and of what checks them, old and new. What was asked about keeps the score that it was asked for.
_RENAMED = (
    ("verdicts", "lowest_gap", "lowest_score"),
    ("review_tasks", "lowest_gap", "lowest_score"),
    ("review_sentences", "gap", "score"),
)
_RENAMED_IN_VIEWS = (
    ("v_interactions", "lowest_gap", "lowest_score"),
    ("v_rates_5m", "lowest_gap_p10", "lowest_score_p10"),
    ("v_rates_5m", "lowest_gap_p50", "lowest_score_p50"),
    ("v_rates_1d", "lowest_gap_p10", "lowest_score_p10"),
    ("v_rates_1d", "lowest_gap_p50", "lowest_score_p50"),
    ("v_review_queue", "lowest_gap", "lowest_score"),
    ("v_review_labels", "gap", "score"),
    ("v_review_consensus", "gap", "score"),
)

# In portions of this many verdicts, so that no statement takes long, however many sentences there are. What is done
# stays done if the migration is broken off.
_PORTION = 200_000
_FILL = """
UPDATE sentences SET score = gap
WHERE verdict_id >= :first AND verdict_id < :last AND gap IS NOT NULL AND score IS NULL
"""
_SCORES = """
ALTER TABLE sentences
    DROP CONSTRAINT ck_sentences_all_features,
    ADD CONSTRAINT ck_sentences_score_finite CHECK (abs(score) < 'Infinity'),
    ADD CONSTRAINT ck_sentences_all_features
        CHECK (num_nulls(score, gap, jsd_no_context, surprisal, flagged) IN (0, 5))
"""
_SCORES_BEFORE = """
ALTER TABLE sentences DROP CONSTRAINT ck_sentences_all_features, DROP COLUMN score;
ALTER TABLE sentences ADD CONSTRAINT ck_sentences_all_features
    CHECK (num_nulls(gap, jsd_no_context, surprisal, flagged) IN (0, 4))
"""


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE sentences ADD COLUMN IF NOT EXISTS score double precision")
        _fill()
    for table, old, new in _RENAMED:
        _rename(table, old, new)
    for view, old, new in _RENAMED_IN_VIEWS:
        op.execute(f"ALTER VIEW {view} RENAME COLUMN {old} TO {new}")
    op.execute(_SCORES)
    op.execute(_consensus("score"))
    op.execute("DROP VIEW v_flagged_sentences, v_sentences, v_second_opinions")
    op.execute(_sentences().replace("    s.gap,\n", "    s.score,\n    s.gap,\n"))
    op.execute(_view("0003_delivery", "_V_FLAGGED_SENTENCES"))
    op.execute(_second_opinions().replace("    s.gap,\n", "    s.score,\n    s.gap,\n"))


def downgrade() -> None:
    op.execute("DROP VIEW v_flagged_sentences, v_sentences, v_second_opinions")
    op.execute(_consensus("gap"))
    op.execute(_SCORES_BEFORE)
    for view, old, new in _RENAMED_IN_VIEWS:
        op.execute(f"ALTER VIEW {view} RENAME COLUMN {new} TO {old}")
    for table, old, new in _RENAMED:
        _rename(table, new, old)
    op.execute(_sentences())
    op.execute(_view("0003_delivery", "_V_FLAGGED_SENTENCES"))
    op.execute(_second_opinions())


def _fill() -> None:
    connection = op.get_bind()
    last = connection.scalar(text("SELECT coalesce(max(id), 0) FROM verdicts"))
    for first in range(0, last + 1, _PORTION):
        connection.execute(text(_FILL), {"first": first, "last": first + _PORTION})


def _rename(table: str, old: str, new: str) -> None:
    """Rename a column together with the constraint that keeps it finite."""
    op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT ck_{table}_{old}_finite TO ck_{table}_{new}_finite")


def _consensus(of_sentence: str) -> str:
    """The consensus while the asked sentence's own column is named score, whichever the sentence's column is."""
    definition = _view("0004_review", "_V_REVIEW_CONSENSUS").replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
    return (
        definition.replace("coalesce(asked.gap, scored.gap) AS gap", "coalesce(asked.score, scored.score) AS score")
        .replace("coalesce(asked.gap, scored.gap)", "coalesce(asked.score, scored.score)")
        .replace("SELECT v.scorer_id, s.gap,", f"SELECT v.scorer_id, s.{of_sentence} AS score,")
    )


def _sentences() -> str:
    """As the revision before has it."""
    before = _view("0003_delivery", "_V_SENTENCES")
    return before.replace("    s.gap,\n", "    s.gap,\n    s.unsupported_probability,\n")


def _second_opinions() -> str:
    return _view("0006_second_opinions", "_V_SECOND_OPINIONS")


def _view(migration: str, name: str) -> str:
    """A view as an earlier revision defines it."""
    definition: str = getattr(import_module(f"migrations.versions.{migration}"), name)
    return definition
