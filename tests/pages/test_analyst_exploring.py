"""Reading a chart of the analyst's console: crosshair, legend, zoom, the back button; by pointer and by keyboard."""

from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.pages.opened import Opened
from tests.pages.visiting import DESK, PHONE, Visit

pytestmark = pytest.mark.browser

VIEWS = ["distribution", "histogram", "comparison", "roc", "calibration", "decision", "plan"]


def start(opened: Opened, fragment: str) -> None:
    opened.visit.open(f"http://127.0.0.1:{opened.console.port}/#{fragment}")
    opened.settle(fragment.partition("view=")[2].partition("&")[0])


def chart(opened: Opened) -> WebElement:
    found = opened.visit.driver.find_element(By.CSS_SELECTOR, "#pictures .cross")
    opened.visit.run("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def hashed(opened: Opened) -> str:
    return str(opened.visit.run("return decodeURIComponent(location.hash)"))


def read(opened: Opened) -> str:
    return opened.visit.driver.find_element(By.CSS_SELECTOR, ".readout").text


def test_the_crosshair_reads_all_curves_with_their_intervals(opened: Opened, driver: Chrome) -> None:
    start(opened, "view=distribution&at=0.3&level=0.25")
    ActionChains(driver).move_to_element_with_offset(chart(opened), 90, -40).perform()
    index = int(chart(opened).get_attribute("aria-valuenow") or "")
    assert index > 55
    for name in ("no", "yes"):
        curve = opened.client.curve(name)
        low, high = curve.band(0.95)
        wanted = [f"{100 * x[index]:.4g}".removesuffix(".0") for x in (curve.fractions, low, high)]
        assert f"{name} {wanted[0]} % ({wanted[1]} % to {wanted[2]} %)" in read(opened)
    assert str(opened.client.curve("no").columns()["threshold"][index]) in read(opened)
    assert chart(opened).get_attribute("aria-valuetext") == "; ".join(read(opened).splitlines())


def test_the_crosshair_by_the_keyboard(opened: Opened) -> None:
    start(opened, "view=distribution&at=0.3&level=0.25")
    opened.visit.run("arguments[0].focus()", chart(opened))
    assert chart(opened).get_attribute("aria-valuenow") == "30"
    opened.visit.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.PAGE_UP)
    assert chart(opened).get_attribute("aria-valuenow") == "41"
    opened.visit.press(Keys.ENTER)
    opened.visit.wait(lambda: "at=0.41" in hashed(opened), "what is read is chosen")
    opened.settle("distribution")
    opened.visit.press("+")
    opened.visit.wait(lambda: "zoom=" in hashed(opened), "it is zoomed")
    opened.settle("distribution")
    assert opened.visit.run("return document.activeElement.matches('.cross')")
    opened.visit.press(Keys.ESCAPE)
    opened.visit.wait(lambda: "zoom=" not in hashed(opened), "the whole range is shown")
    opened.settle("distribution")


def test_a_range_is_brushed_and_the_back_button_undoes_it(opened: Opened, driver: Chrome) -> None:
    start(opened, "view=distribution&at=0.1&level=0.1")
    whole = _ticks(opened)
    chain = ActionChains(driver).move_to_element_with_offset(chart(opened), 20, -60).click_and_hold()
    chain.move_by_offset(80, 0).move_by_offset(60, 0).release().perform()
    opened.visit.wait(lambda: "zoom=" in hashed(opened), "the range is in the address")
    opened.settle("distribution")
    part = _ticks(opened)
    assert 0.4 < part[0] < part[-1] < 0.85
    opened.visit.look("analyst-12-zoomed-in")
    driver.back()
    opened.visit.wait(lambda: _ticks(opened) == whole, "the whole range is back")
    driver.forward()
    opened.visit.wait(lambda: _ticks(opened) == part, "and the part again")
    opened.visit.run("document.querySelector('.whole').click()")
    opened.visit.wait(lambda: _ticks(opened) == whole, "the button shows the whole range")


def _ticks(opened: Opened) -> list[float]:
    script = (
        "return [...document.querySelectorAll('#pictures svg > text:not(.axis-label)')].map((t) => t.textContent)"
        ".filter((t) => !t.includes('%')).map(Number)"
    )
    return list(opened.visit.run(script))


def test_the_back_button_goes_through_views(opened: Opened, driver: Chrome) -> None:
    start(opened, "view=distribution&at=0.3")
    opened.show("roc")
    opened.show("histogram")
    driver.back()
    opened.settle("roc")
    driver.back()
    opened.settle("distribution")


def test_the_legend_hides_a_curve(opened: Opened, driver: Chrome) -> None:
    start(opened, "view=distribution&at=0.3")
    drawn = "return [0, 1].map((s) => document.querySelectorAll(`#pictures path.line.s${s}`).length)"
    assert opened.visit.run(drawn) == [1, 1]
    driver.find_element(By.CSS_SELECTOR, ".legend [data-series='0']").click()
    opened.visit.wait(lambda: opened.visit.run(drawn) == [0, 1], "the first curve is hidden")
    opened.settle("distribution")
    pressed = driver.find_element(By.CSS_SELECTOR, ".legend [data-series='0']")
    assert pressed.get_attribute("aria-pressed") == "false"
    assert opened.visit.run("return document.activeElement === arguments[0]", pressed)
    assert "no " not in read(opened)
    driver.back()
    opened.visit.wait(lambda: opened.visit.run(drawn) == [1, 1], "it is back")


# Texts of the pictures that lie on each other, and those that reach beyond their picture.
OVERLAPPING = """
  const texts = (where) => [...where.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()])
    .filter(([text, box]) => text && box.width);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const boxes = texts(document.getElementById("pictures"));
  const outside = [...document.querySelectorAll("#pictures svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    const leaves = ([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1;
    return texts(svg).filter(leaves).map(([text]) => text);
  });
  const pairs = boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([, y]) => meet(x, y)).map(([b]) => [a, b]));
  return [pairs, outside];
"""


@pytest.mark.parametrize("view", VIEWS)
def test_axes_have_names_and_units_and_no_labels_overlap(opened: Opened, driver: Chrome, view: str) -> None:
    for size in (DESK, PHONE):
        visit = Visit(driver, size)
        start(opened, f"view={view}")
        names: list[Any] = visit.run("return [...document.querySelectorAll('.axis-label')].map((t) => t.textContent)")
        assert all(names)
        assert len(names) == 2
        if view in ("distribution", "histogram", "comparison"):
            assert names[0].endswith("(probability)")
        assert visit.run(OVERLAPPING) == [[], []]
        assert visit.fits()
        visit.look(f"analyst-{view}-{'phone' if size == PHONE else 'desk'}", strict=True)
    visit.forced_colours(f"analyst-{view}-forced")
    Visit(driver, DESK)
