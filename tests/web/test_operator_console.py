"""The operator's console in a real browser: what both servers say, what to do next, sealing with a typed title."""

import json
import time
from collections.abc import Iterator

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from campaign.spec import Campaign
from harness.live import Pair, envelopes, name
from operators.console import Watch, next_step
from operators.remotes import remotes_of
from tests.servers.conftest import filled, new_campaign
from tests.web.visiting import DESK, PHONE, Visit
from web.console import console_page
from web.local import Console, Query

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def watch(pair: Pair) -> Iterator[Watch]:
    file = pair.folder / "operator.toml"
    with remotes_of(file, timeout_s=5) as quick, remotes_of(file) as patient:
        yield Watch(quick, patient, time.time)


@pytest.fixture(scope="module")
def campaign(pair: Pair) -> Campaign:
    made, _ = filled(pair, 60)
    return made


@pytest.fixture(scope="module")
def visit(driver: Chrome, watch: Watch, campaign: Campaign) -> Iterator[Visit]:
    console = Console(console_page("operator"), watch.routes())
    console.start()
    made = Visit(driver)
    made.open(console.link)
    made.wait(lambda: name(campaign) in made.run("return document.body.innerHTML"), "the campaign is listed")
    yield made
    console.close()


def opened(visit: Visit, campaign: Campaign) -> None:
    visit.driver.find_element(By.CSS_SELECTOR, f"[data-id='{name(campaign)}']").click()
    visit.wait(
        lambda: visit.shown("campaign") and visit.text("campaign-head") == campaign.title, "the campaign is open"
    )


def row(visit: Visit, key: str) -> list[str]:
    return [e.text for e in visit.driver.find_elements(By.CSS_SELECTOR, f"#states [data-key={key}]")]


def card(visit: Visit, role: int) -> str:
    return visit.driver.find_element(By.CSS_SELECTOR, f"[data-server='{role}']").text


def test_both_servers_at_a_glance(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    for role in (0, 1):
        text = card(visit, role)
        assert pair.url(role) in text
        assert "ready" in text
        assert "in 364 days" in text
    opened(visit, campaign)
    assert row(visit, "uploads") == [str(pair.status(campaign, role)["uploads"]) for role in (0, 1)] == ["63", "62"]
    assert row(visit, "state") == ["open", "open"]
    assert "seal it when all have sent" in visit.text("next")
    visit.look("operator-1-open")


def test_no_token_reaches_the_page(visit: Visit, watch: Watch, pair: Pair, campaign: Campaign) -> None:
    answers = [watch.overview(Query({})), watch.campaign(Query({"id": [name(campaign)]}))]
    seen = visit.run("return document.documentElement.outerHTML") + json.dumps(answers)
    for role in (0, 1):
        assert pair.servers[role].operator not in seen
        assert pair.servers[role].analyst not in seen
    assert pair.upload_tokens[campaign.id] not in seen


def test_a_server_that_is_away_is_unknown_and_not_0(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    opened(visit, campaign)
    pair.stop(1)
    try:
        visit.wait(lambda: row(visit, "uploads") == ["63", "unknown"], "it is unknown", 60)
        assert "cannot be reached" in visit.text("next")
        visit.wait(lambda: "unknown" in card(visit, 1), "the list knows it too, at the latest when it is asked again")
        assert not visit.find("seal").is_enabled()
        assert (
            visit.run("return [...document.querySelectorAll('#campaigns td')].map((e) => e.textContent)")[2]
            == "unknown"
        )
        visit.look("operator-2-unknown")
    finally:
        pair.start(1)
    visit.wait(lambda: row(visit, "uploads") == ["63", "62"], "it is back", 60)


def test_sealing_needs_the_title(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    opened(visit, campaign)
    visit.click("seal")
    visit.find("typed").send_keys("yes")
    visit.look("operator-3-sure")
    visit.click("yes")
    visit.wait(lambda: "title" in visit.text("sure-problem"), "it says what is missing")
    assert pair.status(campaign)["state"] == "open"
    visit.click("seal")
    visit.find("typed").send_keys(campaign.title)
    visit.click("yes")
    visit.wait(lambda: row(visit, "state") == ["sealed", "sealed"], "it is sealed", 90)
    visit.wait(lambda: "analysts can ask" in visit.text("next"), "it is evaluated", 90)
    assert row(visit, "count") == ["60", "60"]
    assert row(visit, "orphans") == ["3", "2"]
    visit.wait(lambda: "sealed" in visit.text("done"), "it is noted")
    visit.click("confirm")
    visit.click("yes")
    visit.wait(lambda: row(visit, "kept") == ["0", "0"], "what was left out is erased")
    visit.look("operator-4-sealed")


def test_it_fits_a_phone(visit: Visit, driver: Chrome) -> None:
    phone = Visit(driver, PHONE)
    assert phone.fits()
    phone.look("operator-5-phone")
    Visit(driver, DESK)


def test_uploads_over_time(visit: Visit, pair: Pair) -> None:
    made = new_campaign(title="Another study", min_uploads=40)
    pair.create(made)
    visit.wait(lambda: name(made) in visit.run("return document.body.innerHTML"), "it is listed")
    opened(visit, made)
    assert "wait: 0 of at least 40" in visit.text("next")
    for role, data in enumerate(envelopes(made, np.arange(30))):
        pair.upload(role, made, data)
    visit.wait(lambda: "wait: 30 of at least 40" in visit.text("next"), "uploads are seen")
    path = visit.run("return document.querySelector('#uploads path.line').getAttribute('d')")
    assert path.count("L") >= 1


OPEN = {"state": "open", "uploads": 5, "min_uploads": 2}
READY = {"state": "sealed", "phase": "ready"}
HALF = {"state": "sealed", "phase": "evaluating", "progress": 0.25}
BOTH = [True, True]


@pytest.mark.parametrize(
    ("rows", "known", "says"),
    [
        ([None, OPEN], BOTH, "create it at server 0"),
        ([None, OPEN], [False, True], "server 0 cannot be reached"),
        ([{**OPEN, "state": "frozen"}, OPEN], BOTH, "repeat"),
        ([{**OPEN, "agreed": True}, OPEN], BOTH, "server 0 has"),
        ([OPEN, {**OPEN, "uploads": 1}], BOTH, "wait: 1 of at least 2"),
        ([HALF, {**HALF, "progress": 0.5}], BOTH, "25 %"),
        ([{**READY, "phase": "failed"}, READY], BOTH, "failed"),
        ([READY, READY], BOTH, "analysts can ask"),
    ],
)
def test_the_next_step(rows: list[dict[str, object] | None], known: list[bool], says: str) -> None:
    assert says in next_step(rows, known, sealing=False)
