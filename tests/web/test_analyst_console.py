"""The analyst's console in a real browser: every number on it is the Python API's, and the token is nowhere."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from analyst.client import Client
from analyst.console import routes
from analyst.table import plain
from campaign.spec import Campaign
from harness.live import Pair, name
from tests.servers.conftest import new_campaign, values
from tests.servers.waves import close, until_released, wave_campaign
from tests.web.chromium import chromium
from tests.web.visiting import DESK, PHONE, Visit
from web.console import console_page
from web.local import Console, Download, Query

pytestmark = pytest.mark.browser


def fill(pair: Pair, made: Campaign, positions: np.ndarray[Any, Any]) -> None:
    pair.create(made)
    pair.upload_values(made, positions)
    pair.seal(made)
    pair.wait_ready(made)


@pytest.fixture(scope="module")
def scores(pair: Pair) -> Campaign:
    made = new_campaign(strata=["no", "yes"], reserve=1.0, unit="probability")
    x = values(4000)
    labels = ["yes" if flag else "no" for flag in np.random.default_rng(1).random(4000) < x]
    fill(pair, made, made.place(x, labels).positions)
    return made


@pytest.fixture(scope="module")
def trial(pair: Pair) -> Campaign:
    strata = [f"{arm}: {end}" for arm in ("drug", "placebo") for end in ("event", "censored")]
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": 120, "step": 1}
    made = new_campaign(kind="survival", grid=grid, strata=strata, unit="days")
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 3000)
    times = np.minimum(rng.exponential(np.where(arms, 40, 60)), 120).round().astype(int)
    labels = [strata[2 * a + int(flag)] for a, flag in zip(arms, rng.random(3000) < 0.3, strict=True)]
    fill(pair, made, made.place(times, labels).positions)
    return made


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads: Path) -> Iterator[Chrome]:
    with chromium(downloads=downloads) as started:
        yield started


class Opened:
    """A console with its page in the browser, and a client of its own to compare with."""

    def __init__(self, pair: Pair, driver: Chrome, made: Campaign) -> None:
        self.token = pair.servers[0].analyst
        about = f"{pair.url(0)}/v1/campaigns/{name(made)}", self.token, pair.folder / "ca.pem"
        self.inside, self.client = Client(*about), Client(*about)
        self.console = Console(console_page("analyst"), routes(self.inside))
        self.console.start()
        self.visit = Visit(driver)
        self.visit.open(self.console.link)
        self.settle("distribution" if made.kind == "distribution" else "survival")

    def close(self) -> None:
        self.console.close()
        for client in (self.inside, self.client):
            client.__exit__(None, None, None)

    def settle(self, view: str) -> None:
        script = (
            "return document.querySelector(`[data-view=${arguments[0]}][aria-current]`)"
            " && document.querySelector('#pictures > *') && !document.querySelector('#pictures.busy')"
        )
        time.sleep(0.3)  # of a slider's patience
        self.visit.wait(lambda: self.visit.run(script, view), f"the view {view} is drawn")
        assert not self.visit.shown("problem"), self.visit.text("problem")

    def show(self, view: str) -> None:
        self.visit.driver.find_element(By.CSS_SELECTOR, f"[data-view={view}]").click()
        self.settle(view)

    def table(self, title: str) -> dict[str, list[Any]]:
        """The columns of a table, each number as exactly as the page has it."""
        script = """
          const details = [...document.querySelectorAll("#pictures details")].find((d) => d.querySelector("summary").textContent === arguments[0]);
          const names = [...details.querySelectorAll("th")].map((th) => th.textContent);
          const rows = [...details.querySelectorAll("tbody tr")].map((tr) => [...tr.children].map((td) => td.dataset.value === undefined ? td.textContent : Number(td.dataset.value)));
          return [names, rows];"""  # noqa: E501
        names, rows = self.visit.run(script, title)
        return {n: [row[i] for row in rows] for i, n in enumerate(names)}


@pytest.fixture(scope="module")
def opened(pair: Pair, driver: Chrome, scores: Campaign) -> Iterator[Opened]:
    made = Opened(pair, driver, scores)
    yield made
    made.close()


def same(shown: list[Any], expected: Any) -> None:
    """Cells of a page and values of the API; what is not a number is an empty cell."""
    wanted = ["" if (v := plain(x)) is None else v for x in expected]
    wanted = [str(w).lower() if isinstance(w, bool) else w for w in wanted]
    assert shown == wanted


def same_table(shown: dict[str, list[Any]], made: Any) -> None:
    columns = made.columns()
    assert list(shown) == [column.replace("_", " ") for column in columns]
    for column, cells in columns.items():
        same(shown[column.replace("_", " ")], cells)


def test_the_token_is_nowhere(opened: Opened) -> None:
    page = opened.visit.run(
        "return document.documentElement.outerHTML + JSON.stringify([document.cookie, localStorage])"
    )
    assert opened.token not in page
    assert "fss-console" not in opened.visit.run("return document.cookie")
    for path, answer in opened.console.routes.get.items():
        if path == "/api/survival":
            continue
        found = answer(Query({}))
        text = found.data.decode() if isinstance(found, Download) else json.dumps(found)
        assert opened.token not in text


@pytest.mark.parametrize("pooled", [False, True])
def test_distribution(opened: Opened, pooled: bool) -> None:
    opened.show("distribution")
    opened.visit.run("location.hash = arguments[0]", f"view=distribution&pooled={int(pooled) or ''}&at=0.3&level=0.25")
    opened.settle("distribution")
    shown = opened.table("Numbers of the curves")
    curves = [opened.client.curve()] if pooled else [opened.client.curve(s) for s in ("no", "yes")]
    for curve in curves:
        low, high = curve.band(0.95)
        same(shown["threshold"], curve.columns()["threshold"])
        same(shown[curve.stratum], curve.fractions)
        same(shown[f"{curve.stratum}: band from"], low)
        same(shown[f"{curve.stratum}: band to"], high)
        same_table(opened.table(f"Summary: {curve.stratum}"), opened.client.summary(curve.strata))
        said = opened.visit.driver.find_element(By.CSS_SELECTOR, f"[data-stratum='{curve.stratum}']").text
        share, place = curve.at([0.3]).columns(), curve.quantile([0.25]).columns()
        assert f"{100 * share['fraction'][0]:.4g} %" in said.replace(".0 %", " %")
        assert f"are at most {place['threshold'][0]}" in said
    opened.visit.look(f"analyst-1-distribution{'-pooled' if pooled else ''}")


def test_histogram(opened: Opened) -> None:
    opened.visit.run("location.hash = 'view=histogram&bins=8&interval=noise'")
    opened.settle("histogram")
    shown = opened.table("Numbers of the histogram")
    for stratum in ("no", "yes"):
        columns = opened.client.histogram(8, stratum).columns()
        same(shown["up to"], columns["up_to"])
        same(shown[stratum], columns["share"])
        same(shown[f"{stratum}: from"], columns["noise_lower"])
        same(shown[f"{stratum}: to"], columns["noise_upper"])
    opened.visit.look("analyst-2-histogram")


def test_comparison(opened: Opened) -> None:
    opened.show("comparison")
    same_table(opened.table("Comparison"), opened.client.compare("no", "yes"))
    opened.visit.look("analyst-3-comparison")


def test_roc(opened: Opened) -> None:
    opened.visit.run("location.hash = 'view=roc&cut=70'")
    opened.settle("roc")
    made = opened.client.roc()
    same_table(opened.table("Numbers of the ROC curve"), made)
    assert f"AUC {made.auc:.4g}" in opened.visit.text("reading")
    assert f"sensitivity {100 * made.true_positive_rate[70]:.4g} %" in opened.visit.text("operating")
    opened.visit.look("analyst-4-roc")


def test_calibration(opened: Opened) -> None:
    opened.visit.run("location.hash = 'view=calibration&groups=6'")
    opened.settle("calibration")
    same_table(opened.table("Numbers of the groups"), opened.client.calibration(6))
    same_table(opened.table("Numbers of the smooth curve"), opened.client.calibration_curve())
    opened.visit.look("analyst-5-calibration")


def test_decision(opened: Opened) -> None:
    opened.visit.run("location.hash = 'view=decision&threshold=0.3'")
    opened.settle("decision")
    model = opened.client.model()
    same_table(opened.table("Numbers of the decision curve"), model.decision())
    same_table(opened.table("Performance, called positive above 30 %"), model.performance(0.3))
    opened.visit.look("analyst-6-decision")


def test_planning(opened: Opened) -> None:
    from campaign.noise.planning import expected_errors

    opened.visit.run("location.hash = 'view=plan&n=2000&epsilon=0.5'")
    opened.settle("plan")
    shown = opened.table("Expected errors")
    grid = opened.client.campaign().grid
    errors = [expected_errors(n=n, thresholds=grid.size, strata=2, epsilon=0.5) for n in shown["n"]]
    same(shown["point error"], [e.point for e in errors])
    same(shown["band 95"], [e.band for e in errors])
    here = expected_errors(n=2000, thresholds=grid.size, strata=2, epsilon=0.5)
    assert f"off by {100 * here.point:.4g} %" in opened.visit.text("reading")
    opened.visit.look("analyst-7-plan")


def test_survival(pair: Pair, driver: Chrome, trial: Campaign) -> None:
    made = Opened(pair, driver, trial)
    same_table(made.table("Survival and number at risk"), made.client.survival())
    same_table(made.table("Medians, restricted means, tests"), made.client.survival_summary())
    made.visit.look("analyst-8-survival")
    made.close()


def test_waves_over_time(pair: Pair, driver: Chrome) -> None:
    made = wave_campaign(count=2, pooled=[], strata=["no", "yes"])
    pair.create(made)
    for wave in (1, 2):
        x = values(300, seed=wave)
        pair.upload_values(made, made.place(x, ["yes" if y > 0.3 else "no" for y in x]).positions)
        close(pair, made, wave)
    until_released(pair, made, "wave 2")
    one = Opened(pair, driver, made)
    one.show("trend")
    found = one.client.trend()
    same_table(one.table("Quantiles of every wave"), found.quantiles())
    same_table(one.table("Each wave against the one before it"), found.changes())
    one.close()


def test_a_link_restores_the_view(pair: Pair, driver: Chrome, scores: Campaign) -> None:
    made = Opened(pair, driver, scores)
    made.show("histogram")
    slider = made.visit.driver.find_element(By.CSS_SELECTOR, "#controls input[type=range]")
    slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)  # by the keyboard
    made.settle("histogram")
    link = driver.current_url
    assert "bins=18" in link
    made.visit.open(link)
    made.settle("histogram")
    assert len(made.table("Numbers of the histogram")["up to"]) == 18
    made.close()


def test_a_threshold_can_be_dragged(pair: Pair, driver: Chrome, scores: Campaign) -> None:
    made = Opened(pair, driver, scores)
    made.show("distribution")
    before = made.visit.run("return location.hash")
    picture = driver.find_element(By.CSS_SELECTOR, "#pictures svg")
    from selenium.webdriver import ActionChains

    ActionChains(driver).move_to_element_with_offset(picture, 0, 0).click_and_hold().move_by_offset(
        60, 5
    ).release().perform()
    made.settle("distribution")
    assert made.visit.run("return location.hash") != before
    made.close()


def test_pictures_tables_and_the_report_can_be_saved(opened: Opened, downloads: Path) -> None:
    opened.visit.open(f"http://127.0.0.1:{opened.console.port}/#view=roc")
    opened.settle("roc")
    for kind in ("SVG", "PNG", "CSV"):
        opened.visit.run(
            f"[...document.querySelectorAll('.exports button')].find((b) => b.textContent === '{kind}').click()"
        )
        opened.visit.wait((downloads / f"roc.{kind.lower()}").exists, f"roc.{kind.lower()}")
    assert (downloads / "roc.svg").read_text().startswith("<svg")
    assert (downloads / "roc.png").read_bytes().startswith(b"\x89PNG")
    rows = [line.split(",") for line in (downloads / "roc.csv").read_text().splitlines()]
    assert [float(row[1]) for row in rows[1:]] == opened.client.roc().false_positive_rate.tolist()
    opened.visit.click("report")
    opened.visit.wait((downloads / "report.html").exists, "the report")


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
