"""The review page over HTTP: who gets in, what is shown, and what becomes of labels."""

from __future__ import annotations

import html
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from tests.integration.page_examples import PASSAGES, PASSWORD, Site, accounts, ask, log_in, say, served, token_of
from tests.integration.store_examples import rows
from tests.waiting import wait_until
from worker.cli import app
from worker.errors import SettingsError
from worker.page.accounts import read_accounts
from worker.page.guidelines import MAX_BYTES, read_guidelines
from worker.page.reviewer import ProxyIdentity, Reviewer, Role
from worker.page.serve import identity_of
from worker.settings.page import PageChoice
from worker.store.store import Store, open_store

HEADER = "X-Forwarded-User"
HERE = ip_network("127.0.0.0/8")
LABELS = "SELECT reviewer, tool, source, action, label, detail, note FROM review_labels ORDER BY id"
ANSWERS = ("It opens at ten.", "A ticket costs 12 euros.", "Tours start at noon.")


@pytest.fixture
def site(store: Store) -> Iterator[Site]:
    """The page behind a proxy on this machine, whom it trusts."""
    with served(store, ProxyIdentity(HEADER, [HERE], frozenset({"lea"}))) as site:
        yield site


@pytest.fixture
def login_site(store: Store, tmp_path: Path) -> Iterator[Site]:
    """The page with logins of its own."""
    with served(store, accounts(tmp_path, "ada", "bob")) as site:
        yield site


# --- who gets in ---


def test_a_header_from_elsewhere_is_believed_of_nobody(store: Store) -> None:
    with served(store, ProxyIdentity(HEADER, [ip_network("10.0.0.0/8")], frozenset())) as site, site.client() as client:
        assert client.get("/next", headers={HEADER: "ada"}).status_code == 403


@pytest.mark.parametrize("values", [[], ["ada", "bob"], [""], ["a\u202eda"], ["a" * 201]])
def test_a_header_that_names_nobody_clearly_is_refused(site: Site, values: list[str]) -> None:
    with site.client() as client:
        answer = client.get("/next", headers=[(HEADER.encode(), value.encode()) for value in values])
        assert answer.status_code == 403


def test_a_name_in_any_script_is_read(site: Site, store: Store) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER.encode(): "Zoë 李".encode()}) as client:
        assert "Zoë 李" in client.get("/next").text


def test_a_login_is_wanted_and_lets_in(login_site: Site, store: Store) -> None:
    ask(store, ANSWERS)
    with login_site.client() as client:
        assert client.get("/next").url.path == "/login"
        assert log_in(client, "ada", "wrong").status_code == 403
        assert log_in(client, "nobody").status_code == 403
        assert log_in(client, "ada").url.path.startswith("/tasks/")


def test_a_changed_password_ends_the_sessions_of_before(store: Store, tmp_path: Path) -> None:
    identity = accounts(tmp_path, "ada")
    with served(store, identity) as site, site.client() as client:
        log_in(client, "ada")
        assert client.get("/next").url.path == "/next"
        kept = dict(client.cookies)
    with served(store, accounts(tmp_path, "ada")) as site, site.client(cookies=kept) as client:
        assert client.get("/next").url.path == "/login"


def test_the_cookie_is_for_the_browser_alone_and_for_https_unless_on_this_machine(store: Store, tmp_path: Path) -> None:
    for is_secure in (False, True):
        with served(store, accounts(tmp_path, "ada"), is_secure=is_secure) as site, site.client() as client:
            cookie = client.get("/login").headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert ("secure" in cookie) == is_secure


def test_leads_are_told_from_reviewers() -> None:
    from starlette.requests import Request

    identity = ProxyIdentity(HEADER, [HERE], frozenset({"lea"}))
    for name, role in (("lea", Role.LEAD), ("ada", Role.REVIEWER)):
        scope = {"type": "http", "client": ("127.0.0.1", 1), "headers": [(HEADER.lower().encode(), name.encode())]}
        found = identity.reviewer(Request(scope))
        assert found is not None
        assert (found.name, found.role) == (name, role)


# --- the commands ---


def test_the_command_serves_until_it_is_told_to_stop(database_url: str, tmp_path: Path) -> None:
    accounts(tmp_path, "ada")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        "GASP_DATABASE_URL": database_url.replace("+psycopg", "", 1),
        "GASP_REVIEW_PAGE_ACCOUNTS": str(tmp_path / "accounts"),
        "GASP_REVIEW_PAGE_PORT": str(port),
    }
    command = [sys.executable, "-c", "from worker.start import main; main()", "review", "serve"]
    process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: is_alive(f"http://127.0.0.1:{port}"), what="the page answers")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True) as client:
            assert "Nothing waits" in log_in(client, "ada").text
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"http://127.0.0.1:{port}/" in said


def is_alive(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/healthz").text == "ok\n"
    except httpx2.TransportError:
        return False


def test_the_command_makes_a_line_that_lets_in(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["review", "account", "Lea", "--lead"], input=f"{PASSWORD}\n{PASSWORD}\n")
    path = tmp_path / "accounts"
    path.write_text(made.stdout, "utf-8")
    account = read_accounts(path).admitted("Lea", PASSWORD)
    assert account is not None
    assert account.reviewer == Reviewer("Lea", Role.LEAD)
    assert PASSWORD not in made.output


@pytest.mark.parametrize(
    "line", ["ada", "ada:boss:scrypt$AA==$AA==", "ada:lead:md5$AA==$AA==", "a:lead:scrypt$!$!", ""]
)
def test_a_file_with_a_bad_line_is_refused_without_showing_it(tmp_path: Path, line: str) -> None:
    path = tmp_path / "accounts"
    path.write_text(f"{line}\n", "utf-8")
    with pytest.raises(SettingsError, match="GASP_REVIEW_PAGE_ACCOUNTS") as caught:
        read_accounts(path)
    assert not line or line not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{}, {"header": "X-User"}, {"header": "X-User", "trusted_proxies": "10.0.0.1", "accounts": "accounts"}]
)
def test_who_says_who_somebody_is_must_be_clear(wrong: dict[str, str]) -> None:
    names = {"header": "review_page_proxy_header"}
    settings = PageChoice.model_validate(
        {names.get(name, f"review_page_{name}"): value for name, value in wrong.items()}
    )
    with pytest.raises(SettingsError, match="GASP_REVIEW_PAGE_"):
        identity_of(settings)


# --- what guards it ---


def test_a_form_without_its_token_changes_nothing(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        page = client.get("/next")
        for path in (page.url.path, f"{page.url.path}/skip", "/undo"):
            for token in ("", "another"):
                assert client.post(path, data={"token": token, "label": "supported"}).status_code == 403
    with site.client(headers={HEADER: "bob"}) as other:
        # The token of somebody else's session.
        assert say(other, page, "supported").status_code == 403
    assert rows(database_url, LABELS) == []


def test_a_form_that_is_too_large_is_not_read(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        assert say(client, client.get("/next"), "supported", note="x" * 70_000).status_code == 413
    assert rows(database_url, LABELS) == []


def test_every_answer_forbids_scripts_that_are_not_its_own(site: Site, store: Store) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        for path in ("/next", "/static/page.js", "/static/page.css", "/none", "/tasks/1/2"):
            answer = client.get(path)
            assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=", answer.text) or path.endswith(".js")


def test_texts_are_shown_as_they_are_and_never_as_markup(site: Site, store: Store) -> None:
    hostile = "</div><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \u202eesrever."
    ask(store, [hostile], passages=[f"{hostile} {hostile}"], question=hostile)
    with site.client(headers={HEADER: "<b>ada</b>"}) as client:
        text = client.get("/next").text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<b>ada" not in text
    assert "{{ 7*7 }}" in text


# --- what is shown ---


def test_a_screen_has_everything_but_what_would_sway(site: Site, store: Store) -> None:
    ask(store, ["It opens at 10:00 on Tuesdays."])
    with site.client(headers={HEADER: "ada"}) as client:
        page = client.get("/next")
        assert "<bdi>It opens at 10:00 on Tuesdays.</bdi></mark> Enjoy your visit!" in page.text
        assert re.findall(r"<bdi>(doc-\d)</bdi>", page.text) == ["doc-0", "doc-1", "doc-2", "doc-3"]
        assert "<mark>opens</mark>" in page.text
        assert len(PASSAGES) == page.text.count("<article")
        assert "flagged" not in page.text
        assert "0.05" not in page.text
        address = page.url.path
        say(client, page, "supported")
        assert "The audit: score 0.050, flagged" in " ".join(client.get(address).text.split())


def test_the_guidelines_of_the_app_are_in_reach(store: Store, tmp_path: Path) -> None:
    ask(store, ANSWERS[:1])
    (tmp_path / "default.txt").write_text("for every other app", "utf-8")
    for text in ("for every other app", "<i>prices</i> must match"):
        with (
            served(store, ProxyIdentity(HEADER, [HERE], frozenset()), review_page_guidelines=tmp_path) as site,
            site.client(headers={HEADER: "ada"}) as client,
        ):
            assert html.escape(text) in client.get("/next").text
        (tmp_path / "shop.txt").write_text("<i>prices</i> must match", "utf-8")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (MAX_BYTES + 1)])
def test_guidelines_that_cannot_be_shown_stop_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a%2Fb.txt").write_bytes(b"of an app with a stroke")
    assert read_guidelines(tmp_path).of("a/b") == "of an app with a stroke"
    (tmp_path / "shop.txt").write_bytes(content)
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(SettingsError, match="GASP_REVIEW_PAGE_GUIDELINES"):
            read_guidelines(folder)


# --- labels ---


def test_a_label_is_the_same_row_as_of_every_other_way_in(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        page = say(client, client.get("/next"), "unsupported", detail="conflict", note="page 4")
        page = say(client, page, "supported", detail="conflict")
        page = client.post(page.url.path, data={"token": token_of(page), "broken": "yes"})
        assert "Nothing waits for you" in page.text
        assert "3 sentences today" in page.text
    expected = [
        ("unsupported", "conflict", "page 4"),
        ("supported", None, None),
        ("cant_tell", None, "[passages wrong or unreadable]"),
    ]
    ours = ("ada", "page", "page", "label")
    assert [tuple(row.values()) for row in rows(database_url, LABELS)] == [(*ours, *said) for said in expected]
    assert {row["state"] for row in rows(database_url, "SELECT state FROM review_tasks")} == {"labelled"}


@pytest.mark.parametrize("fields", [{"label": ""}, {"label": "maybe"}, {"label": "unsupported", "detail": "odd"}])
def test_what_is_no_label_is_refused(site: Site, store: Store, database_url: str, fields: dict[str, str]) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        assert say(client, client.get("/next"), **fields).status_code == 400
    assert rows(database_url, LABELS) == []


def test_a_label_is_taken_back_and_said_again(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as client:
        first = client.get("/next")
        second = say(client, first, "supported")
        back = client.post("/undo", data={"token": token_of(second)})
        assert back.url.path == first.url.path
        say(client, back, "partly")
    assert [(row["action"], row["label"]) for row in rows(database_url, LABELS)] == [
        ("label", "supported"),
        ("withdraw", None),
        ("label", "partly"),
    ]
    assert rows(database_url, "SELECT label FROM v_review_labels") == [{"label": "partly"}]


# --- several reviewers ---


def test_two_reviewers_never_have_the_same_task_open(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    with site.client(headers={HEADER: "ada"}) as ada, site.client(headers={HEADER: "bob"}) as bob:
        ours, theirs = ada.get("/next"), bob.get("/next")
        assert ours.url.path != theirs.url.path
        assert ada.get("/next").url.path == ours.url.path
        last = say(ada, ours, "supported")
        assert last.url.path not in {ours.url.path, theirs.url.path}
        assert "Nothing waits" in say(bob, theirs, "supported").text
        rows(database_url, "UPDATE review_leases SET leased_until = now()")
        assert bob.get("/next").url.path == last.url.path


def test_reviewers_who_ask_at_the_same_moment_get_different_tasks(site: Site, store: Store) -> None:
    ask(store, [f"Tour {number} starts at noon." for number in range(12)])
    names = [f"reviewer {number}" for number in range(12)]

    def ask_next(name: str) -> str:
        with site.client(headers={HEADER: name}) as client:
            return client.get("/next").url.path

    with ThreadPoolExecutor(len(names)) as everybody:
        assert len(set(everybody.map(ask_next, names))) == len(names)


def test_a_skipped_task_goes_to_others(site: Site, store: Store) -> None:
    ask(store, ANSWERS[:1])
    with site.client(headers={HEADER: "ada"}) as ada, site.client(headers={HEADER: "bob"}) as bob:
        page = ada.get("/next")
        assert "Nothing waits" in bob.get("/next").text
        assert "Nothing waits" in ada.post(f"{page.url.path}/skip", data={"token": token_of(page)}).text
        assert bob.get("/next").url.path == page.url.path


def test_reviewers_are_blind_to_each_other_and_a_third_is_asked_where_they_differ(site: Site, store: Store) -> None:
    ask(store, ANSWERS[:1], reviewers=2)
    names = ("ada", "bob", "cy", "dan")
    ada, bob, cy, dan = (site.client(headers={HEADER: name}) for name in names)
    with ada, bob, cy, dan:
        page, other = ada.get("/next"), bob.get("/next")
        assert page.url.path == other.url.path
        assert "Nothing waits" in cy.get("/next").text
        say(ada, page, "supported", note="my own note")
        assert "my own note" not in bob.get(other.url.path).text
        assert "Nothing waits" in cy.get("/next").text
        say(bob, other, "unsupported")
        third = cy.get("/next")
        assert third.url.path == page.url.path
        assert "Nothing waits" in dan.get("/next").text
        say(cy, third, "partly")
        assert "Nothing waits" in dan.get("/next").text


# --- lists ---


def test_own_labels_are_listed_corrected_and_taken_back(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS[:2])
    with site.client(headers={HEADER: "ada"}) as client:
        first = client.get("/next")
        say(client, say(client, first, "supported", note="<b>sure</b>"), "not_a_claim")
        own = client.get("/own")
        assert [label for label in ("supported", "not a claim") if f"<td>{label}</td>" in own.text] == [
            "supported",
            "not a claim",
        ]
        assert "&lt;b&gt;sure" in own.text
        say(client, client.get(first.url.path), "partly")
        client.post(f"{first.url.path}/withdraw", data={"token": token_of(own)})
    assert rows(database_url, "SELECT label FROM v_review_labels") == [{"label": "not_a_claim"}]
    assert [row["action"] for row in rows(database_url, LABELS)] == ["label", "label", "label", "withdraw"]
    with site.client(headers={HEADER: "bob"}) as other:
        assert "None yet" in other.get("/own").text


def test_nobody_takes_back_what_another_said(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS[:1])
    with site.client(headers={HEADER: "ada"}) as ada, site.client(headers={HEADER: "bob"}) as bob:
        page = ada.get("/next")
        say(ada, page, "supported")
        bob.post(f"{page.url.path}/withdraw", data={"token": token_of(bob.get("/next"))})
    assert [row["action"] for row in rows(database_url, LABELS)] == ["label"]


def test_a_lead_sees_both_sides_of_a_dispute_and_decides_it(site: Site, store: Store, database_url: str) -> None:
    ask(store, ANSWERS[:1], reviewers=2)
    with site.client(headers={HEADER: "ada"}) as ada, site.client(headers={HEADER: "bob"}) as bob:
        for client, label in ((ada, "supported"), (bob, "unsupported")):
            say(client, client.get("/next"), label, note=f"says {label}")
        assert [ada.get(path).status_code for path in ("/disputes", "/agreement")] == [403, 403]
    with site.client(headers={HEADER: "lea"}) as lead:
        shown = lead.get("/disputes")
        assert [side in shown.text for side in ("says supported", "says unsupported", ANSWERS[0])] == [True] * 3
        assert "<td>0 of 1</td>" in lead.get("/agreement").text
        address = re.findall(r'href="(/tasks/[^"]+)"', shown.text)
        say(lead, lead.get(address[0]), "supported")
        assert "They do not." in lead.get("/disputes").text
    assert rows(database_url, "SELECT state FROM review_tasks") == [{"state": "labelled"}]
    assert rows(database_url, "SELECT unsupported FROM v_review_consensus") == [{"unsupported": False}]


def test_a_lead_looks_at_one_exchange_by_its_address(site: Site, store: Store) -> None:
    ask(store, ["A <b>ticket</b> costs 20 euros."])
    address = "/interaction?app=shop&id=id-0"
    with site.client(headers={HEADER: "lea"}) as lead:
        shown = lead.get(address).text
        assert "<bdi>A &lt;b&gt;ticket&lt;/b&gt; costs 20 euros.</bdi></mark>" in shown
        assert "<td>0.050</td>" in shown
        assert shown.count("<article") == len(PASSAGES)
        assert lead.get(f"{address}&revision=1").status_code == 200
        for other in ("&revision=2", "&revision=x", "&revision=99999999999999", "0", "%00"):
            assert lead.get(address + other).status_code == 404
    with site.client(headers={HEADER: "ada"}) as reviewer:
        assert reviewer.get(address).status_code == 403


def test_one_app_can_be_chosen_and_left(site: Site, store: Store) -> None:
    ask(store, ANSWERS[:1])
    with site.client(headers={HEADER: "ada"}) as client:
        assert "<td>1</td>" in client.get("/apps").text
        assert "Nothing waits for you in <bdi>desk &amp; co</bdi>" in client.get("/next?app=desk+%26+co").text
        assert "Nothing waits" in client.get("/next").text
        assert client.get("/next?app=%00%ff").status_code == 200
        assert client.get("/next?app=shop").url.path.startswith("/tasks/")
        assert client.get("/next?app=").url.path.startswith("/tasks/")


def test_while_the_database_is_away_people_are_told_and_nothing_breaks() -> None:
    with (
        open_store("postgresql+psycopg://nobody@127.0.0.1:1/none", application_name="gasp-test") as away,
        served(away, ProxyIdentity(HEADER, [HERE], frozenset())) as site,
        site.client(headers={HEADER: "ada"}) as client,
    ):
        answer = client.get("/next")
        assert answer.status_code == 503
        assert "kept on this device" in answer.text
        assert client.get("/healthz").status_code == 200
