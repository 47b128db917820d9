"""Using the analyst's console: links, dragging, saving, the keyboard alone, a phone; and that it spends nothing."""

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fss_ecdf.campaign.campaign import Campaign
from tests.harness.server_pair import LivePair
from tests.pages.opened import Opened
from tests.pages.visiting import DESK, PHONE, ZOOMED, Visit

pytestmark = pytest.mark.browser


def test_a_link_restores_the_view(pair: LivePair, driver: Chrome, scores: Campaign) -> None:
    made = Opened(pair, driver, scores)
    made.show("histogram")
    slider = made.visit.driver.find_element(By.CSS_SELECTOR, "#controls input[type=range]")
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)  # by the keyboard
    made.visit.wait(lambda: "bins=18" in driver.current_url, "the number of bins in the address")
    made.settle("histogram")
    link = driver.current_url
    made.visit.open(link)
    made.settle("histogram")
    assert len(made.table("Numbers of the histogram")["up to"]) == 18
    made.close()


def test_a_threshold_and_a_share_can_be_dragged(opened: Opened, driver: Chrome) -> None:
    """Whatever is nearer to where the drag begins moves; the other stays."""

    def dragged(x: float, y: float, by: tuple[int, int]) -> tuple[float, float]:
        opened.visit.open(f"http://127.0.0.1:{opened.console.port}/#view=distribution&at=0.3&level=0.25")
        opened.settle("distribution")
        picture = driver.find_element(By.CSS_SELECTOR, "#pictures svg")
        opened.visit.run("arguments[0].scrollIntoView({block: 'center'})", picture)
        size = picture.size  # offsets are from the middle of what is in view
        start = int((x - 0.5) * size["width"]), int((y - 0.5) * size["height"])
        chain = ActionChains(driver).move_to_element_with_offset(picture, *start).click_and_hold()
        before = opened.visit.run("return location.hash")
        chain.move_by_offset(*by).release().perform()
        opened.visit.wait(lambda: opened.visit.run("return location.hash") != before, "something was dragged")
        opened.settle("distribution")
        found = parse_qs(opened.visit.run("return location.hash.slice(1)"))
        return float(found["at"][0]), float(found["level"][0])

    at, level = dragged(0.35, 0.15, (90, 0))
    assert at > 0.36
    assert level == 0.25
    at, level = dragged(0.85, 0.68, (0, -80))
    assert at == 0.3
    assert level > 0.3


EXPORTED = {
    "distribution": ["distribution", "summary-no", "summary-yes"],
    "histogram": ["histogram"],
    "comparison": ["comparison", "compared"],
    "roc": ["roc"],
    "calibration": ["calibration", "calibration-curve"],
    "decision": ["decision", "performance"],
    "plan": ["plan"],
}


def _drawn(downloads: Path, names: list[str]) -> list[str]:
    return [file for file in names if (downloads / f"{file}.svg").exists()]


def _are_drawn(downloads: Path, names: list[str], count: int) -> bool:
    return len(_drawn(downloads, names)) == count


def test_every_picture_and_table_can_be_saved(opened: Opened, downloads: Path) -> None:
    """Pictures as SVG and PNG, and each table whole, with the digits that the page has."""
    for view, names in EXPORTED.items():
        opened.visit.open(f"http://127.0.0.1:{opened.console.port}/#view={view}")
        opened.settle(view)
        pictures = opened.visit.run("return document.querySelectorAll('#pictures svg').length")
        opened.visit.run("for (const b of document.querySelectorAll('.exports button')) b.click()")
        for file in names:
            opened.visit.wait((downloads / f"{file}.csv").exists, f"{file}.csv")
        assert pictures > 0
        opened.visit.wait(partial(_are_drawn, downloads, names, pictures), f"{pictures} pictures of {view}")
        for file in _drawn(downloads, names):
            assert (downloads / f"{file}.svg").read_text().startswith("<svg")
            opened.visit.wait((downloads / f"{file}.png").exists, f"{file}.png")
            assert (downloads / f"{file}.png").read_bytes().startswith(b"\x89PNG")
        titles = opened.visit.run(
            "return [...document.querySelectorAll('#pictures summary')].map((s) => s.textContent)"
        )
        assert len(titles) == len(names)
        saved = [_csv(downloads / f"{file}.csv") for file in names]
        assert all(list(opened.table(title).values()) in saved for title in titles), view
    opened.visit.click("report")
    opened.visit.wait((downloads / "report.html").exists, "the report")
    report = downloads / "report.html"
    text = report.read_text()
    assert "Calibration" in text
    check_policy(opened.visit, report.with_name("attacked.html"), text)


def _csv(path: Path) -> list[list[Any]]:
    """Columns of a file: numbers where they are numbers."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [[_number(cell) for cell in column] for column in zip(*rows, strict=True)]


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def check_policy(visit: Visit, file: Path, report: str) -> None:
    """A report is drawn as it should, and whatever gets into one runs nothing and loads nothing."""
    bad = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'><iframe src='https://elsewhere.example'></iframe>"
    file.write_text(report.replace("<main>", f"<main>{bad}", 1))
    console = visit.driver.current_window_handle
    visit.driver.switch_to.new_window("tab")
    visit.driver.get(file.as_uri())
    assert visit.run("return window.ran ?? null") is None
    assert visit.run("return document.querySelectorAll('svg path').length") > 10
    assert visit.run("return getComputedStyle(document.querySelector('.summary')).borderLeftWidth") == "3px"
    visit.driver.close()
    visit.driver.switch_to.window(console)


def test_the_console_spends_nothing(opened: Opened) -> None:
    """The curve was paid for when it was sealed; the reserve is left alone, whatever is looked at."""
    for view in EXPORTED:
        opened.show(view)
    assert opened.client.budget().spent == opened.client.campaign().epsilon
    assert not opened.console.routes.post


def test_by_the_keyboard_alone_at_400_percent(opened: Opened, driver: Chrome) -> None:
    visit = Visit(driver, ZOOMED)
    visit.open(f"http://127.0.0.1:{opened.console.port}/#view=distribution")
    opened.settle("distribution")
    assert visit.fits()

    def tab_to(what: str) -> None:
        for _ in range(60):
            visit.press(Keys.TAB)
            if visit.run("return document.activeElement.matches(arguments[0])", what):
                return
        raise AssertionError(f"the keyboard does not reach {what}")

    tab_to("[data-view=roc]")
    visit.press(Keys.ENTER)
    opened.settle("roc")
    assert visit.run("return document.activeElement.id") == "view-title"
    tab_to("#controls input[type=range]")
    before = visit.text("operating")
    visit.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    visit.wait(lambda: visit.text("operating") != before, "the threshold has moved")
    opened.settle("roc")
    assert visit.run("return document.activeElement.matches('#controls input[type=range]')")
    tab_to("#pictures summary")
    visit.press(Keys.ENTER)
    assert visit.run("return document.querySelector('#pictures details').open")
    tab_to("#report")
    for view in EXPORTED:
        visit.run("location.hash = arguments[0]", f"view={view}")
        opened.settle(view)
        assert visit.fits(), view
    visit.look("analyst-11-zoomed")
    Visit(driver, DESK)


def test_nothing_moves_for_those_who_ask_for_less(opened: Opened) -> None:
    opened.visit.still()


def test_it_fits_a_phone_and_says_what_is_wrong(opened: Opened, driver: Chrome) -> None:
    visit = Visit(driver, PHONE)
    strata = quote(json.dumps(["yes"]))
    visit.open(f"http://127.0.0.1:{opened.console.port}/#view=distribution&strata={strata}")
    opened.settle("distribution")
    assert visit.fits()
    visit.look("analyst-9-phone")
    visit.run("location.hash = 'view=histogram&bins=many'")
    visit.wait_shown("problem")
    assert "bins must be a number" in visit.text("problem")
    visit.look("analyst-10-problem-phone")
    Visit(driver, DESK)
