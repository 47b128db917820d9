"""The analyst's console in a real browser: every number on it is the Python API's, and the token is nowhere."""

import json

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import Problem
from fss_ecdf.pages.local_server import Download, Query
from tests.harness.server_pair import LivePair
from tests.pages.opened import Opened, fill, same, same_table
from tests.servers.conftest import new_campaign, values
from tests.servers.waves import close, until_released, wave_campaign

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def trial(pair: LivePair) -> Campaign:
    strata = [f"{arm}: {end}" for arm in ("drug", "placebo") for end in ("event", "censored")]
    grid = {"kind": "linear", "values": "integer", "from": 0, "to": 120, "step": 1}
    made = new_campaign(kind="survival", grid=grid, strata=strata, unit="days")
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 3000)
    times = np.minimum(rng.exponential(np.where(arms, 40, 60)), 120).round().astype(int)
    labels = [strata[2 * a + int(flag)] for a, flag in zip(arms, rng.random(3000) < 0.3, strict=True)]
    fill(pair, made, made.to_positions(times, labels).positions)
    return made


def test_the_token_is_nowhere(opened: Opened) -> None:
    page = opened.visit.run(
        "return document.documentElement.outerHTML + JSON.stringify([document.cookie, localStorage])"
    )
    assert opened.token not in page
    assert "fss-console" not in opened.visit.run("return document.cookie")
    refused = 0
    for answer in opened.console.routes.get.values():
        try:
            found = answer(Query({}))
            text = found.data.decode() if isinstance(found, Download) else json.dumps(found)
        except Problem as problem:  # of other campaigns, or without what it needs
            text, refused = problem.detail, refused + 1
        assert opened.token not in text
    assert len(opened.console.routes.get) > refused + 8


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
        share, place = curve.at([0.3]).columns(), curve.quantile([0.25]).columns()
        said = opened.visit.driver.find_element(By.CSS_SELECTOR, f"[data-stratum='{curve.stratum}'] strong").text
        assert said == f"{100 * share['fraction'][0]:.4g} %"
        said = opened.visit.driver.find_element(By.CSS_SELECTOR, f"[data-quantile='{curve.stratum}'] strong").text
        assert said == f"{place['threshold'][0]} probability"
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
    opened.visit.run("location.hash = 'view=comparison'")
    opened.settle("comparison")
    same_table(opened.table("Comparison"), opened.client.compare("no", "yes"))
    shown = opened.table("Numbers of both curves")
    for curve in (opened.client.curve("no"), opened.client.curve("yes")):
        same(shown[curve.stratum], curve.fractions)
        same(shown[f"{curve.stratum}: band from"], curve.band(0.95)[0])
    opened.visit.look("analyst-3-comparison")


def test_roc(opened: Opened) -> None:
    opened.visit.run("location.hash = 'view=roc&cut=70'")
    opened.settle("roc")
    made = opened.client.roc()
    same_table(opened.table("Numbers of the ROC curve"), made)
    assert f"\n{made.auc:.4g}\n" in opened.visit.text("auc")
    assert opened.visit.text("operating").endswith(f"\n{100 * made.true_positive_rate[70]:.4g} %")
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
    model = opened.client.performance()
    same_table(opened.table("Numbers of the decision curve"), model.decision_curve())
    same_table(opened.table("Performance, called positive above 30 %"), model.performance(0.3))
    opened.visit.look("analyst-6-decision")


def test_planning(opened: Opened) -> None:
    from fss_ecdf.campaign.noise.planning import expected_errors

    opened.visit.run("location.hash = 'view=plan&n=2000&epsilon=0.5'")
    opened.settle("plan")
    shown = opened.table("Expected errors")
    grid = opened.client.campaign().variable.grid
    errors = [expected_errors(n=n, thresholds=grid.size, strata=2, epsilon=0.5) for n in shown["n"]]
    same(shown["point error"], [e.point for e in errors])
    same(shown["band 95"], [e.band for e in errors])
    here = expected_errors(n=2000, thresholds=grid.size, strata=2, epsilon=0.5)
    assert f"off by\n{100 * here.point:.4g} %" in opened.visit.text("reading")
    opened.visit.look("analyst-7-plan")


def test_survival(pair: LivePair, driver: Chrome, trial: Campaign) -> None:
    made = Opened(pair, driver, trial)
    same_table(made.table("Survival and number at risk"), made.client.survival())
    same_table(made.table("Medians, restricted means, tests"), made.client.survival_summary())
    made.visit.look("analyst-8-survival")
    made.close()


def test_waves_over_time(pair: LivePair, driver: Chrome) -> None:
    made = wave_campaign(count=2, pooled=[], strata=["no", "yes"])
    pair.create(made)
    for wave in (1, 2):
        x = values(300, seed=wave)
        pair.upload_values(made, made.to_positions(x, ["yes" if y > 0.3 else "no" for y in x]).positions)
        close(pair, made, wave)
    until_released(pair, made, "wave 2")
    one = Opened(pair, driver, made)
    one.show("trend")
    found = one.client.waves()
    same_table(one.table("Quantiles of every wave"), found.quantiles())
    same_table(one.table("Each wave against the one before it"), found.changes())
    one.visit.look("analyst-9-trend")
    one.close()
