"""What can go wrong around the party's page: each shows what is wrong and what to do, and every statement is true."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from fss_ecdf.pages.party_page import MOST_BYTES, PARTY
from tests.harness.browser import trusting
from tests.harness.server_pair import LivePair
from tests.pages.chromium import chromium
from tests.pages.study import Study, choose_file, counts, give_file, send, type_value
from tests.pages.visiting import Visit

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def driver(pair: LivePair) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"]) as started:
        yield started


@pytest.fixture
def study(pair: LivePair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path)


@contextmanager
def before_each_page(driver: Chrome, script: str) -> Iterator[None]:
    """A browser in which something is otherwise, before the page's script runs."""
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def fails(driver: Chrome, study: Study, says: str, seconds: float = 60) -> None:
    visit = Visit(driver)
    visit.open(study.link)
    visit.wait_state("failed", seconds)
    assert says in visit.text("problem")
    assert "Nothing was sent" in visit.text("problem")
    assert visit.shown("retry")


BLOCKED = """
const blocked = () => { throw new DOMException("blocked", "SecurityError"); };
for (const name of ["indexedDB", "sessionStorage"]) Object.defineProperty(window, name, { get: blocked });
"""


def test_blocked_storage(driver: Chrome, study: Study) -> None:
    with before_each_page(driver, BLOCKED):
        fails(driver, study, "does not let the page keep a receipt")


def test_a_worker_that_cannot_be_made(driver: Chrome, study: Study) -> None:
    with before_each_page(driver, "window.Worker = class { constructor() { throw new Error('no'); } };"):
        fails(driver, study, "makes the keys did not start")


def test_a_worker_that_ends_at_once(driver: Chrome, study: Study) -> None:
    script = "const W = Worker; window.Worker = class extends W { constructor() { super('blob:nowhere'); } };"
    with before_each_page(driver, script):
        fails(driver, study, "makes the keys did not start")


def test_a_server_that_accepts_and_never_answers(driver: Chrome, study: Study) -> None:
    """Its process is stopped: the system still takes connections for it."""
    process = study.pair.processes[1]
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        fails(driver, study, "Server 1 did not answer in time", 90)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    visit = Visit(driver)
    visit.click("retry")
    visit.wait_state("study")
    assert study.stored() == [0, 0]


def test_a_full_storage(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    type_value(visit, "0.4")
    visit.wait_state("review")
    visit.run("IDBObjectStore.prototype.put = () => { throw new DOMException('', 'QuotaExceededError'); }")
    send(visit)
    visit.wait_state("failed")
    assert "no space left for the receipt" in visit.text("problem")
    assert "Nothing was sent" in visit.text("problem")
    assert study.stored() == [0, 0]


def test_an_old_browser_shows_the_text_of_the_file(driver: Chrome, study: Study) -> None:
    """As one whose JavaScript lacks something does: the script does not run at all."""
    text = study.file.read_text()
    study.file.write_text(text.replace("(() => {", "(() => { class { old: syntax", 1))
    visit = Visit(driver)
    visit.open(study.link)
    assert visit.state() == "static"
    for part in ("this browser is too old", "ist dieser Browser zu alt", "est trop ancien"):
        assert part in visit.text("screen")


def test_an_edit_leaves_the_review(driver: Chrome, study: Study) -> None:
    """What is sent is what was shown last: the old value cannot be sent after an edit."""
    visit = study.visited(driver)
    type_value(visit, "0.1", 0)
    visit.wait_state("review")
    visit.click("edit")
    visit.wait_state("enter")
    assert not visit.shown("send")
    type_value(visit, "0.9", 1)
    visit.wait_state("review")
    assert "0.9 %, group “yes”" in visit.text("you-send")
    send(visit)
    visit.wait_state("done")
    study.pair.seal(study.campaign)
    study.pair.wait_ready(study.campaign)
    answer = study.pair.ask(0, study.campaign, "curve", stratum="no")
    assert abs(answer["counts"][-1]) < 8 * max(1, answer["standard_errors"][-1])


def test_nothing_is_chosen_for_the_person(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    type_value(visit, "0.1", None)
    visit.wait_shown("stratum-error")
    assert "Choose your group" in visit.text("stratum-error")
    visit.click("way-file")
    choose_file(visit, study.csv(30))
    assert visit.run("return document.querySelectorAll('#screen input[type=radio]:checked').length") == 0
    visit.click("review-button")
    visit.wait_shown("error")
    assert "Choose the column with the values" in visit.text("error")


def test_values_off_the_scale_are_questioned(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    type_value(visit, "7.5")
    visit.wait_shown("value-error")
    assert visit.find("value").get_attribute("aria-invalid") == "true"
    visit.click("use-end")
    visit.wait_state("review")
    assert "You send 1 %" in visit.text("you-send")


def test_files_are_questioned_as_on_the_command_line(driver: Chrome, study: Study) -> None:
    path = study.csv(3)
    path.write_text("score,event\n0.5,yes\nmuch,no\n0.4,maybe\n")
    visit = study.visited(driver)
    choose_file(visit, path)
    visit.click("column-0")
    visit.click("group-column-1")
    visit.click("review-button")
    visit.wait_shown("error")
    told = visit.text("screen")
    assert "2 of 3 rows cannot be used" in told
    assert "Row 3: “much” is not a number" in told
    assert "Row 4: “maybe” is not one of the study’s groups" in told
    path.write_text("50,yes\n40,no\n0.4,no\n")  # the same name, corrected but in another unit and without a header
    choose_file(visit, path)
    visit.wait(lambda: "3 rows" in visit.text("file-read"), "the first row is a row")
    visit.click("column-0")
    visit.click("group-column-1")
    visit.click("review-button")
    visit.wait_shown("allow")
    assert "2 of 3 values lie outside the scale" in visit.text("error")
    visit.click("allow")
    visit.click("review-button")
    visit.wait_state("review")
    assert counts(visit) == ["3", "0", "2", "3"]


def test_a_second_tab_waits(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(40))
    lock = f"fss-ecdf {study.file.read_text().split('/v1/campaigns/')[1][:43]}"
    visit.run("navigator.locks.request(arguments[0], () => new Promise((done) => (window.release = done)))", lock)
    send(visit)
    visit.wait_state("failed")
    assert "Another tab" in visit.text("problem")
    assert study.stored() == [0, 0]
    visit.run("window.release()")
    visit.click("resume")
    visit.wait_state("done")
    assert study.stored() == [40, 40]


def test_the_page_stays_small(study: Study) -> None:
    assert study.file.stat().st_size <= MOST_BYTES


def test_the_languages_say_the_same_things() -> None:
    """Every text in three languages with the same blanks, and no text that nobody shows."""
    rows: dict[str, list[str]] = {}
    for name in ("texts.js", "problem_texts.js"):
        for key, body in re.findall(
            r'^  "?([\w-]+)"?: \[(.*?)\],$', (PARTY / name).read_text(), re.MULTILINE | re.DOTALL
        ):
            rows[key] = re.findall(r'"((?:[^"\\]|\\.)*)"', body)
    assert len(rows) > 150
    for key, texts in rows.items():
        assert len(texts) == 3, key
        assert len({frozenset(re.findall(r"\{\w+\}", text)) for text in texts}) == 1, key
    code = "".join(path.read_text() for path in PARTY.glob("*.js") if not path.name.endswith("texts.js"))
    for key in re.findall(r'(?:say|Refusal)\("([\w-]+)"', code):
        assert key in rows or key in ("noCampaign", "otherToken", "earlier"), key  # states of their own
