"""Every state of the party's page, looked at: phone and desk, day and night, forced colours, 400 %, large letters."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.harness.browser import trusting
from tests.harness.server_pair import LivePair
from tests.pages.chromium import chromium
from tests.pages.study import Study, choose_file, give_file, send, type_value
from tests.pages.visiting import DESK, PHONE, ZOOMED, Visit

pytestmark = pytest.mark.browser

HOLD = "window.fetch = () => new Promise(() => {})"


@pytest.fixture(scope="module")
def driver(pair: LivePair) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"]) as started:
        yield started


@pytest.fixture
def study(pair: LivePair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path, organiser="Institute of Waiting", contact="waiting@institute.example")


def show_loading(visit: Visit, study: Study) -> None:
    visit.run(HOLD)
    visit.run("location.hash = 'token=fss-up-other'")
    visit.wait_state("loading")


def show_closed(visit: Visit, study: Study) -> None:
    visit.run("window.Date.now = () => 5e12")
    visit.run("location.hash = 'token=fss-up-other'")
    visit.wait_state("closed")


def show_enter(visit: Visit, study: Study) -> None:
    visit.click("begin")


def show_error(visit: Visit, study: Study) -> None:
    type_value(visit, "7.5")
    visit.wait_shown("value-error")


def show_columns(visit: Visit, study: Study) -> None:
    choose_file(visit, study.csv(60))


def show_review(visit: Visit, study: Study) -> None:
    type_value(visit, "0.427")
    visit.wait_state("review")


def show_review_of_a_file(visit: Visit, study: Study) -> None:
    path = study.csv(400)
    path.write_text(path.read_text() + "x,,no\ny,7.5,yes\n")
    give_file(visit, path)


def show_sending(visit: Visit, study: Study) -> None:
    show_review(visit, study)
    visit.run(HOLD)
    send(visit)
    visit.wait_state("sending")


def show_failed(visit: Visit, study: Study) -> None:
    visit.run("location.hash = 'token=fss-up-wrong'")
    visit.wait(lambda: "study" in visit.run("return document.body.dataset.move"), "the token is taken")
    visit.wait_state("study")
    show_review(visit, study)
    send(visit)
    visit.wait_state("failed")


def show_done(visit: Visit, study: Study) -> None:
    show_review(visit, study)
    send(visit)
    visit.wait_state("done")


def show_withdrawing(visit: Visit, study: Study) -> None:
    show_done(visit, study)
    visit.click("withdraw")


def show_withdrawn(visit: Visit, study: Study) -> None:
    show_withdrawing(visit, study)
    visit.click("yes")
    visit.wait_shown("again")


SHOWN: dict[str, Callable[[Visit, Study], None]] = {
    "loading": show_loading,
    "closed": show_closed,
    "study": lambda visit, study: None,
    "enter": show_enter,
    "enter-error": show_error,
    "enter-file": show_columns,
    "review": show_review,
    "review-file": show_review_of_a_file,
    "sending": show_sending,
    "failed": show_failed,
    "done": show_done,
    "withdrawing": show_withdrawing,
    "done-withdrawn": show_withdrawn,
}


@pytest.mark.parametrize("name", SHOWN)
def test_every_state_is_accessible(driver: Chrome, pair: LivePair, tmp_path: Path, name: str) -> None:
    """axe-core finds nothing at all, and nothing is cut off: by day, by night, in forced colours, zoomed."""
    study = Study(pair, tmp_path, closes="2099-01-01T00:00:00Z")
    visit = study.visited(driver)
    SHOWN[name](visit, study)
    visit.look(f"party-{name}-desk", strict=True)
    visit.forced_colours(f"party-{name}-forced")
    for size, kind in ((ZOOMED, "zoomed"), (PHONE, "phone")):
        visit.resize(size)
        assert visit.fits(), kind
        visit.look(f"party-{name}-{kind}", strict=True)
    small = visit.run("""
      return [...document.querySelectorAll("button, .button, .card, select")].filter((e) => e.offsetHeight < 52)
        .map((e) => e.outerHTML.slice(0, 80))""")
    assert small == []
    visit.resize(DESK)


def test_letters_are_as_large_as_the_reader_wants(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, PHONE)
    before = visit.run("return parseFloat(getComputedStyle(document.getElementById('question')).fontSize)")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    visit.run("document.documentElement.style.setProperty('font-size', '200%')")  # as a reader's own style sheet does
    after = visit.run("return parseFloat(getComputedStyle(document.getElementById('question')).fontSize)")
    assert after == 2 * before
    assert visit.fits()
    visit.look("party-study-large-letters", strict=True)


def test_by_the_keyboard_alone_at_400_percent(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, ZOOMED)
    visit.tab_to("begin")
    visit.press(Keys.ENTER)
    visit.press("0.5")
    visit.tab_to("stratum-0")
    visit.press(Keys.SPACE)
    visit.tab_to("review-button")
    visit.press(Keys.ENTER)
    visit.wait_state("review")
    assert visit.run("return document.activeElement.id") == "screen-head"
    visit.tab_to("agree")
    visit.press(Keys.SPACE)
    visit.tab_to("send")
    visit.press(Keys.ENTER)
    visit.wait_state("done")
    assert visit.run("return document.activeElement.id") == "screen-head"
    assert study.stored() == [1, 1]


@pytest.mark.parametrize(("language", "says"), [("de", "Stimmt das?"), ("fr", "Est-ce correct")])
def test_the_page_speaks_other_languages(driver: Chrome, study: Study, language: str, says: str) -> None:
    visit = study.visited(driver, PHONE)
    visit.choose("language", language)
    assert visit.run("return document.documentElement.lang") == language
    visit.look(f"party-study-{language}", strict=True)
    type_value(visit, "0,30")
    visit.wait_state("review")
    assert says in visit.text("screen-head")
    assert "0,3 %" in visit.text("you-send")
    assert visit.fits()
    visit.look(f"party-review-{language}", strict=True)


def test_the_organiser_is_named(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    assert visit.text("organiser") == "Institute of Waiting"
    assert visit.text("contact") == "waiting@institute.example"


def test_text_from_right_to_left_keeps_to_itself(driver: Chrome, pair: LivePair, tmp_path: Path) -> None:
    study = Study(pair, tmp_path, title="זמן המתנה", question="כמה ימים חיכית?", strata=["כן", "לא"])
    visit = study.visited(driver, PHONE)
    assert visit.run("return getComputedStyle(document.getElementById('question')).direction") == "rtl"
    type_value(visit, "0.5")
    visit.wait_state("review")
    assert "\u2068לא\u2069" in visit.text("you-send")
    visit.look("party-review-right-to-left", strict=True)
