"""The review page in a real Chromium, by its keys alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.integration.page_examples import PASSWORD, Site, accounts, ask, served
from tests.integration.store_examples import rows
from worker.page.reviewer import ProxyIdentity, Reviewer, Role
from worker.page.saying import label_of
from worker.store.store import Store

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)")

ANSWERS = [f"Tour number {number} starts at noon and takes 90 minutes." for number in range(10)]
HELD = "SELECT label, detail, note FROM v_review_labels ORDER BY time"
PHONE = ViewportSize(width=390, height=844)
LARGE = 200_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def site(store: Store, tmp_path: Path) -> Iterator[Site]:
    with served(store, accounts(tmp_path, "ada")) as site:
        yield site


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page on which nothing is refused and no script fails, from the login on."""
    wrong: list[str] = []
    with browser.new_context(color_scheme="light") as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(site.url)
        expect(page.get_by_label("Name")).to_be_focused()
        page.keyboard.type("ada")
        page.keyboard.press("Tab")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/next")
        yield page
    assert wrong == []


def begin(page: Page) -> None:
    page.goto("/".join(page.url.split("/")[:3]))
    page.wait_for_url("**/tasks/**")


def press(page: Page, key: str) -> None:
    """Press a key that leads to another screen, and wait for that."""
    before = page.url
    page.keyboard.press(key)
    page.wait_for_url(lambda url: url != before)


def shown(page: Page, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("GASP_TEST_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_ten_tasks_are_labelled_by_keys_alone(page: Page, store: Store, database_url: str) -> None:
    ask(store, ANSWERS)
    begin(page)
    shown(page, "task")
    for keys in ("1", "2b", "c", "3", "4", "5", "p", "34"):
        for key in keys:
            page.keyboard.press(key)
        press(page, "Enter")
    for _ in range(2):
        page.keyboard.press("n")
        page.keyboard.type("seen, 1 of 2")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    expect(page.get_by_role("main")).to_contain_text("10 sentences today")
    held = [tuple(row.values()) for row in rows(database_url, HELD)]
    assert held == [
        ("supported", None, None),
        ("unsupported", "baseless", None),
        ("unsupported", "conflict", None),
        ("partly", None, None),
        ("not_a_claim", None, None),
        ("cant_tell", None, None),
        ("cant_tell", None, "[passages wrong or unreadable]"),
        ("not_a_claim", None, None),
        *[("supported", None, "seen, 1 of 2")] * 2,
    ]


def test_the_last_label_is_taken_back_by_a_key(page: Page, store: Store, database_url: str) -> None:
    ask(store, ANSWERS[:2])
    begin(page)
    first = page.url
    page.keyboard.press("1")
    press(page, "Enter")
    press(page, "u")
    assert page.url == first
    assert rows(database_url, HELD) == []
    expect(page.locator("[name=label]:checked")).to_have_count(0)


def test_a_skipped_task_makes_room_for_the_next(page: Page, store: Store) -> None:
    ask(store, ANSWERS[:2])
    begin(page)
    press(page, "s")
    assert "/tasks/" in page.url
    press(page, "s")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")


def test_a_draft_survives_a_reload_and_is_gone_when_it_is_stored(page: Page, store: Store) -> None:
    ask(store, ANSWERS[:2])
    begin(page)
    page.keyboard.press("c")
    page.keyboard.press("n")
    page.keyboard.type("half a thought")
    page.reload()
    expect(page.locator("[name=label]:checked")).to_have_value("unsupported")
    expect(page.locator("[name=detail]:checked")).to_have_value("conflict")
    expect(page.locator("[name=note]")).to_have_value("half a thought")
    press(page, "Enter")
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_help_opens_and_closes_by_keys(page: Page, store: Store) -> None:
    ask(store, ANSWERS[:1])
    begin(page)
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    page.keyboard.press("g")
    expect(page.locator(".guidelines dl")).to_be_visible()


def test_enter_without_a_choice_stores_nothing(page: Page, store: Store, database_url: str) -> None:
    ask(store, ANSWERS[:1])
    begin(page)
    page.keyboard.press("Enter")
    expect(page.locator("[name=label]:invalid")).to_have_count(5)
    assert rows(database_url, "SELECT id FROM review_labels") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_one_column_without_a_scroll_to_the_side(page: Page, store: Store, scheme: str) -> None:
    ask(store, ANSWERS[:1])
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of its words
    begin(page)
    shown(page, f"phone-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    columns = [page.locator(part).bounding_box() for part in (".asked", ".passages", "form.label")]
    assert len({round(box["x"]) for box in columns if box}) == 1


def test_the_lists_fit_a_phone(browser: Browser, store: Store) -> None:
    ask(store, ANSWERS[:2], reviewers=2)
    queue, everybody = store.review_queue, ProxyIdentity("X-User", [ip_network("127.0.0.1")], frozenset({"lea"}))
    for who, word in (("ada", "supported"), ("lea", "unsupported")):
        for _ in range(2):
            asked = queue.take(who, 60)
            assert asked is not None
            task = store.review_tasks.by_id(asked.task_id)
            assert task is not None
            said = label_of(task, asked.sentence_index, Reviewer(who, Role.LEAD), {"label": word, "note": "x" * 300})
            assert store.labels.add([said], "page") == ["stored"]
    with (
        served(store, everybody) as site,
        browser.new_context(extra_http_headers={"X-User": "lea"}, viewport=PHONE) as context,
    ):
        page = context.new_page()
        for name in ("own", "apps", "agreement", "disputes"):
            page.goto(f"{site.url}/{name}")
            shown(page, f"phone-{name}")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        expect(page.locator(".side")).to_have_count(4)


def test_every_control_has_a_name_and_every_part_a_place(page: Page, store: Store) -> None:
    ask(store, ANSWERS[:1])
    begin(page)
    for control in page.get_by_role("radio").all() + page.get_by_role("button").all():
        assert control.evaluate("element => element.labels?.length || element.textContent.trim()")
    expect(page.get_by_role("group", name="Do the passages support the marked sentence?")).to_be_visible()
    for region in ("Question and answer", "Passages"):
        expect(page.get_by_role("region", name=region)).to_be_visible()
    expect(page.get_by_role("textbox", name="Note")).to_be_visible()


def test_a_hostile_answer_is_shown_and_labelled(page: Page, store: Store, database_url: str) -> None:
    markup = "</mark></div><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    hostile = f"{markup} \u202e\u2067 مرحبا {'W' * 2000} " + "تذكرة 12 € " * (LARGE // 12)
    ask(store, [hostile], passages=[hostile, markup], question=markup)
    page.set_viewport_size(PHONE)
    begin(page)
    assert page.title() == "shop · Review"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert len(page.locator("#sentence").inner_text()) > LARGE / 2
    page.keyboard.press("2")
    press(page, "Enter")
    assert [row["label"] for row in rows(database_url, HELD)] == ["unsupported"]
