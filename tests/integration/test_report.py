"""The page of ``gasp-worker report``: what it shows, and that nothing in it can run or be loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.history import APP, HOSTILE, SCORER, fill
from tests.integration.store_examples import rows
from tests.integration.test_roles import apply_roles, as_login
from worker.cli import app as command
from worker.embedded.databases import create_database, drop_database
from worker.errors import WorkerError
from worker.report.contents import gather
from worker.report.page import html
from worker.store.queue_days import queue_days
from worker.store.store import Store, open_store

LOGIN = "report_login"
VOID = {"meta", "br"}
# What a page can load from elsewhere, or run.
LOADING = {"src", "srcset", "href", "xlink:href", "action", "data", "poster", "background", "style"}


class Page(HTMLParser):
    """The page as a browser reads it: its elements, and the text of each kind of them. Its tags must pair."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: Counter[tuple[str, str]] = Counter()
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.texts[self._open[-1], data.strip()] += 1

    def text(self, tag: str) -> str:
        return "\n".join(found for kind, found in self.texts if kind == tag)


@pytest.fixture(scope="module")
def reviewed(postgres_server: str, template_database: str) -> Iterator[str]:
    """A month with reviews, as a login sees it that is a member of gasp_worker and gasp_reviewer."""
    url = create_database(postgres_server, "for_report", template=template_database)
    fill(url, interactions=1_000)
    rows(url, f"CREATE ROLE {LOGIN} LOGIN")
    apply_roles(url)
    rows(url, f"GRANT gasp_worker, gasp_reviewer TO {LOGIN}")
    yield as_login(url, LOGIN)
    drop_database(postgres_server, "for_report")


@pytest.fixture
def unreviewed(database_url: str) -> str:
    fill(database_url, interactions=200, reviewed=False)
    return database_url


def written(url: str, app: str = APP, days: float = 30) -> str:
    with open_store(url, application_name="gasp-test") as store:
        return html(gather(store, app, datetime.now(UTC) - timedelta(days=days), None))


@pytest.fixture(scope="module")
def page(reviewed: str) -> str:
    return written(reviewed)


def test_the_page_holds_everything_and_can_run_or_load_nothing(page: str) -> None:
    assert len(page.encode()) < 1_000_000
    read = Page(page)
    assert not {tag for tag, _ in read.elements} & {"script", "img", "iframe", "object", "embed", "link", "form"}
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in LOADING & set(attributes):
            assert name == "style" or (attributes[name] or "").startswith("#"), (tag, attributes)
    assert not re.search(r"url\((?!#)", page)
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert ids
    # matplotlib names some marks twice within one plot; between plots nothing may be named alike.
    assert all(re.match(r"(scores|thresholds|reliability|queue)-", one or "") for one in ids)


def test_texts_of_messages_are_shown_as_they_are_and_never_become_markup(page: str) -> None:
    read = Page(page)
    assert HOSTILE in read.text("blockquote")
    assert HOSTILE in read.text("details")
    assert HOSTILE in read.text("td")
    assert "<script" not in page


def test_the_words_that_are_grounded_least_are_marked(page: str, reviewed: str) -> None:
    marked = Counter(text for (kind, text), count in Page(page).texts.items() if kind == "mark" for _ in range(count))
    assert marked.total() == 10
    known = rows(reviewed, "SELECT worst_text FROM v_flagged_sentences WHERE app = %(app)s", app=APP)
    assert set(marked) <= {row["worst_text"] for row in known}


def test_what_is_marked_never_becomes_markup_and_may_be_missing(unreviewed: str) -> None:
    rows(unreviewed, "UPDATE sentences SET worst_start = start_char, worst_end = end_char RETURNING 1")
    page = written(unreviewed)
    assert HOSTILE in Page(page).text("mark")
    assert "<script" not in page
    rows(unreviewed, "UPDATE sentences SET worst_start = NULL, worst_end = NULL RETURNING 1")
    rows(unreviewed, "UPDATE verdicts SET language = NULL, language_supported = NULL RETURNING 1")
    page = written(unreviewed)
    assert "mark" not in {tag for tag, _ in Page(page).elements}
    assert HOSTILE in Page(page).text("blockquote")
    assert "by language" not in page


def test_languages_are_counted_and_those_that_are_not_supported_named(page: str) -> None:
    told = Page(page).text("p")
    assert re.search(r"Answers by language: en 9\d\.\d\s%\. Not supported, .*: und-Cyrl \d\.\d\s%\.", told)


def test_every_plot_says_in_words_what_it_shows(page: str) -> None:
    plots = [attributes for tag, attributes in Page(page).elements if tag == "svg"]
    assert len(plots) == 4
    assert all(plot["role"] == "img" and len(plot["aria-label"] or "") > 40 for plot in plots)


def test_the_numbers_are_those_of_the_database(reviewed: str, page: str) -> None:
    counted = rows(
        reviewed,
        """
        SELECT sum(interactions) AS answers, sum(sentences_scored) AS scored, sum(sentences_flagged) AS flagged
        FROM v_rates_5m WHERE app = %(app)s
        """,
        app=APP,
    )[0]
    queue = rows(reviewed, "SELECT count(*) AS tasks FROM v_review_queue WHERE app = %(app)s", app=APP)[0]
    labels = rows(reviewed, "SELECT unsupported FROM v_review_consensus WHERE app = %(app)s", app=APP)
    shown = numbers(page)
    assert shown["answers"].startswith(f"{counted['answers']:,}")
    assert shown["sentences scored"].startswith(f"{counted['scored']:,}")
    assert f"{counted['flagged']:,} sentences" in shown["flagged"]
    assert shown["tasks waiting"] == f"{queue['tasks']:,}"
    assert shown["labelled sentences"] == f"{len(labels):,} {sum(row['unsupported'] for row in labels):,} unsupported"
    assert re.fullmatch(r"\d+\.\d\s% \d+\.\d\s% to \d+\.\d\s%", shown["recall"])
    assert f"scorer {SCORER}" in Page(page).text("p")


def numbers(page: str) -> Mapping[str, str]:
    cards = re.findall(r"<dt>(.*?)</dt><dd>(.*?)<small>(.*?)</small>", page)
    return {name: f"{value} {more}".strip() for name, value, more in cards}


def test_what_is_estimated_at_the_bound_in_force_covers_the_truth_of_the_made_up_month(page: str) -> None:
    # One sentence in nine is made up, and one label in fifty is wrong.
    low, high = (float(bound) for bound in re.findall(r"([\d.]+)\s%", numbers(page)["unsupported"])[1:])
    assert low < 100 * (0.11 * 0.98 + 0.89 * 0.02) < high


def test_without_labels_it_says_so_and_shows_what_there_is(unreviewed: str) -> None:
    found = written(unreviewed)
    read = Page(found)
    assert "Nobody has labelled a sentence" in read.text("p")
    assert "No recalibration in this period" in read.text("p")
    assert "No review task was waiting" in read.text("p")
    assert [tag for tag, _ in read.elements].count("svg") == 1
    assert "recall" not in numbers(found)


def test_a_period_without_any_answer_is_shown_as_such(unreviewed: str) -> None:
    rows(unreviewed, "UPDATE interactions SET occurred_at = now() - interval '20 days'")
    found = written(unreviewed, days=1)
    assert numbers(found)["answers"] == "0"
    assert "No sentence of this period has a score" in Page(found).text("p")


def test_of_very_many_answers_the_scores_of_a_share_are_read(unreviewed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.store.report.MAX_ANSWERS", 35)
    with open_store(unreviewed, application_name="gasp-test") as store:
        found = gather(store, APP, datetime.now(UTC) - timedelta(days=40), None).found
    # A quarter of 140 answers, each of whose sentences is scored or none.
    assert 0.1 * found.totals.sentences_scored < len(found.scores) < 0.45 * found.totals.sentences_scored


def test_the_queue_of_a_day_has_what_was_opened_and_not_yet_closed(store: Store, database_url: str) -> None:
    fill(database_url, interactions=1)
    rows(database_url, TASKS)
    noon = datetime(2025, 11, 3, 12, tzinfo=UTC)
    with store._database.read() as connection:
        days = queue_days(connection, "shop", 1, noon - timedelta(days=1), noon + timedelta(days=1))
    assert [(one.day.day, one.waiting, one.labels) for one in days] == [(2, 2, 0), (3, 2, 1), (4, 1, 0)]


# One is closed before the period, one waits from before it to its last morning, one is made on its first afternoon.
TASKS = """
INSERT INTO review_tasks (app, interaction_id, revision, scorer_id, threshold_id, reason, probability, lowest_score,
    reviewers, state, created_at, closed_at)
SELECT 'shop', id, 1, 1, 1, 'flagged', 0.5, 0.1, 1, CASE WHEN closed IS NULL THEN 'open' ELSE 'labelled' END,
    made::timestamptz, closed::timestamptz
FROM (VALUES
    ('a', '2025-11-01T00:00Z', '2025-11-01T09:00Z'), ('b', '2025-11-01T00:00Z', '2025-11-04T10:00Z'),
    ('c', '2025-11-02T13:00Z', NULL)
) AS tasks (id, made, closed);
INSERT INTO review_labels (tool, external_id, action, label, app, interaction_id, revision, sentence_index, reviewer,
    labelled_at, source)
VALUES ('t', '1', 'label', 'supported', 'shop', 'b', 1, 0, 'anna', '2025-11-03T23:59Z', 'sql')
"""


def test_an_app_may_be_called_anything(unreviewed: str) -> None:
    rows(unreviewed, "UPDATE interactions SET app = %(app)s WHERE app = 'intranet'", app=HOSTILE)
    read = Page(written(unreviewed, app=HOSTILE))
    assert read.text("h1") == f"Audit of {HOSTILE}"
    assert not {tag for tag, _ in read.elements} & {"script", "img"}


def test_an_unknown_app_is_told_together_with_those_there_are(reviewed: str) -> None:
    with pytest.raises(WorkerError, match="nothing is stored of the app shop; the apps are: intranet, support-bot"):
        written(reviewed, app="shop")


def report(url: str, *arguments: str) -> tuple[int, str]:
    settings = {"GASP_DATABASE_URL": url, "GASP_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    done = CliRunner().invoke(command, ["report", *arguments], env=settings)
    return done.exit_code, done.output


def test_the_command_writes_the_page_and_replaces_the_one_before(reviewed: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("before", "utf-8")
    since = f"{datetime.now(UTC) - timedelta(days=10):%Y-%m-%d}"
    assert report(reviewed, "--app", APP, "--since", since, "--scorer", SCORER, "--html", str(file))[0] == 0
    assert f"<p>{since} 00:00 to " in file.read_text("utf-8")


@pytest.mark.parametrize("since", ["30", "0d", "9999d", "2999-01-01", "yesterday"])
def test_a_period_that_is_none_is_refused(reviewed: str, since: str, tmp_path: Path) -> None:
    status, said = report(reviewed, "--app", APP, "--since", since, "--html", str(tmp_path / "report.html"))
    assert (status, "Invalid value" in said) == (2, True)
