"""The operator's console in a real browser: what both servers say, what to do next, and doing it."""

import json

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.operators.console import Watch
from fss_ecdf.pages.local_server import Console, Query
from tests.harness.server_pair import LivePair, envelopes, name
from tests.pages.operating import at, card, opened, row
from tests.pages.visiting import DESK, PHONE, Visit
from tests.servers.conftest import filled, new_campaign
from tests.servers.waves import wave_campaign

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def campaign(pair: LivePair) -> Campaign:
    made, _ = filled(pair, 60)
    return made


@pytest.fixture(scope="module")
def visit(driver: Chrome, console: Console, campaign: Campaign) -> Visit:
    made = Visit(driver)
    made.open(console.link)
    made.wait(lambda: name(campaign) in made.run("return document.body.innerHTML"), "the campaign is listed")
    return made


def next_in_the_list(visit: Visit, campaign: Campaign) -> str:
    script = "return document.querySelector(arguments[0]).closest('tr').lastElementChild.textContent"
    return str(visit.run(script, at(campaign)))


def test_both_servers_at_a_glance(visit: Visit, pair: LivePair, campaign: Campaign) -> None:
    for role in (0, 1):
        text = card(visit, role)
        assert pair.url(role) in text
        assert "ready" in text
        assert "in 364 days" in text
    opened(visit, campaign)
    assert row(visit, "uploads") == [str(pair.status(campaign, role)["uploads"]) for role in (0, 1)] == ["63", "62"]
    assert row(visit, "state") == ["open", "open"]
    assert "press “Agree to seal”, by both operators" in visit.text("next")
    assert next_in_the_list(visit, campaign) == visit.text("next").removeprefix("Next: ")
    assert "0 of 1 spent, 1 left" in visit.text("facts")
    visit.look("operator-1-open")


def test_no_operators_token_reaches_the_page(visit: Visit, watch: Watch, pair: LivePair, campaign: Campaign) -> None:
    about = Query({"id": [name(campaign)]})
    answers = [watch.overview(Query({})), watch.campaign(about), watch.actions(Query({}))]
    seen = visit.run("return document.documentElement.outerHTML") + json.dumps(answers)
    for role in (0, 1):
        assert pair.servers[role].operator not in seen
        assert pair.servers[role].analyst not in seen
    assert pair.upload_tokens[campaign.id] not in seen


def test_a_server_that_is_away_is_unknown_and_not_0(visit: Visit, pair: LivePair, campaign: Campaign) -> None:
    opened(visit, campaign)
    pair.stop(1)
    try:
        visit.wait(lambda: row(visit, "uploads") == ["63", "unknown"], "it is unknown", 60)
        visit.wait(lambda: "cannot be asked now" in visit.text("next"), "so is what to do next")
        visit.wait(lambda: "unknown" in card(visit, 1), "the list knows it too, at the latest when it is asked again")
        visit.wait(lambda: not visit.find("seal").is_enabled(), "it cannot be sealed")
        cells = "return [...document.querySelector(arguments[0]).closest('tr').children].map((e) => e.textContent)"
        told = ["unknown", "server 1 cannot be asked: find out why"]
        visit.wait(lambda: visit.run(cells, at(campaign))[2:] == told, "the list says so")
        visit.wait(lambda: "server 1: unknown" in visit.text("facts"), "so is what it has spent")
        visit.choose("log-server", "1")
        visit.wait(lambda: "Server 1: unknown" in visit.text("log-whole"), "its log is unknown")
        visit.look("operator-2-unknown")
    finally:
        pair.start(1)
    visit.wait(lambda: row(visit, "uploads") == ["63", "62"], "it is back", 60)
    visit.choose("log-server", "0")


def test_a_word_is_taken_back_and_a_freeze_undone(visit: Visit, pair: LivePair, campaign: Campaign) -> None:
    opened(visit, campaign)
    assert not visit.find("retract").is_enabled()
    pair.agree(campaign, 0)
    visit.wait(lambda: row(visit, "operator_agreed") == ["yes", "not yet"], "the word is shown")
    visit.click("retract")
    visit.click("yes")
    visit.wait(lambda: row(visit, "operator_agreed") == ["not yet", "not yet"], "it is taken back")
    assert pair.status(campaign)["operator_agreed"] is False
    pair.agree(campaign, 1)
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    with pair.client(1, token) as client:  # a sealing that comes half-way
        assert client.post(f"/v1/peer/campaigns/{name(campaign)}/freeze").is_success
    visit.wait(lambda: row(visit, "state") == ["open", "frozen"], "the freeze is shown")
    visit.wait(lambda: "or undo it: press “Unfreeze”" in visit.text("next"), "it says what to do")
    visit.look("operator-6-frozen")
    visit.click("reopen")
    visit.click("yes")
    visit.wait(lambda: row(visit, "state") == ["open", "open"], "uploads go on")
    assert pair.status(campaign, 1)["state"] == "open"
    visit.wait(lambda: "unfroze" in visit.text("done"), "it is noted")


def test_sealing_needs_the_title(visit: Visit, pair: LivePair, campaign: Campaign) -> None:
    opened(visit, campaign)
    visit.click("seal")
    assert "You operate both servers, so you agree for both" in visit.text("sure-text")
    visit.find("sure-typed").send_keys("yes")
    visit.look("operator-3-sure")
    visit.click("yes")
    visit.wait(lambda: "title" in visit.text("sure-problem"), "it says what is missing")
    assert visit.find("sure-typed").get_attribute("aria-invalid") == "true"
    assert visit.run("return document.activeElement.id") == "sure-typed"
    visit.check_access("a wrong title", strict=True)
    assert pair.status(campaign)["state"] == "open"
    visit.find("sure-typed").send_keys(Keys.CONTROL, "a")
    visit.find("sure-typed").send_keys(campaign.title)
    visit.click("yes")
    visit.wait(lambda: row(visit, "state") == ["sealed", "sealed"], "it is sealed", 90)
    visit.wait(lambda: "analysts can ask" in visit.text("next"), "it is evaluated", 90)
    assert row(visit, "sealed_uploads") == ["60", "60"]
    assert row(visit, "unmatched") == ["3", "2"]
    visit.wait(lambda: "sealed" in visit.text("done"), "it is noted")
    visit.click("confirm")
    visit.click("yes")
    visit.wait(lambda: row(visit, "excluded_stored") == ["0", "0"], "what was left out is erased")
    visit.look("operator-4-sealed")


def test_what_operators_did(visit: Visit, pair: LivePair, campaign: Campaign) -> None:
    with pair.operator(0) as client:
        kept = client.get("/v1/actions").json()["actions"]
    visit.click("log-ask")
    visit.wait(lambda: kept[-1]["digest"] in visit.text("log-whole"), "the log is shown")
    assert "the log holds together" in visit.text("log-whole")
    cells = visit.run(
        "return [...document.querySelectorAll('#log tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
    )
    assert [c[:3] for c in cells] == [[str(a["number"]), a["at"], a["action"]] for a in reversed(kept)]
    mine = [c[2] for c in cells if c[3] == name(campaign)[:8]]
    assert mine == ["discard-excluded", "seal", "unfreeze", "cancel-seal", "seal", "create"]


def test_nothing_moves_for_those_who_ask_for_less(visit: Visit) -> None:
    visit.still()


def test_it_fits_a_phone(visit: Visit, driver: Chrome) -> None:
    phone = Visit(driver, PHONE)
    driver.refresh()
    phone.wait_shown("campaign")
    assert phone.fits()
    phone.look("operator-5-phone")
    Visit(driver, DESK)


def test_uploads_over_time(visit: Visit, pair: LivePair) -> None:
    made = new_campaign(title="Another study", min_uploads=40)
    pair.create(made)
    opened(visit, made)
    assert "wait for uploads: at least 40" in visit.text("next")
    for role, data in enumerate(envelopes(made, np.arange(30))):
        pair.upload(role, made, data)
    visit.wait(lambda: row(visit, "uploads") == ["30", "30"], "uploads are seen")
    path = "return document.querySelector('#uploads path.line').getAttribute('d')"
    visit.wait(lambda: visit.run(path).count("L") >= 1, "they are drawn")


def test_a_campaign_of_waves_and_the_back_button(visit: Visit, pair: LivePair, driver: Chrome) -> None:
    made, other = wave_campaign(count=3, pooled=[], title="Weekly waiting times"), new_campaign(title="No waves")
    for one in (made, other):
        pair.create(one)
    opened(visit, other)
    assert not visit.shown("waves-part")
    opened(visit, made)
    cells = "return [...document.querySelectorAll('#waves td')].map((c) => c.textContent)"
    visit.wait(lambda: visit.run(cells) == ["open, 0 uploads", "open, 0 uploads"], "its first wave is shown")
    visit.look("operator-15-waves", strict=True)
    driver.back()
    visit.wait(lambda: visit.text("campaign-head") == "No waves", "the one before is shown")
    visit.click("all-campaigns")
    visit.wait(lambda: not visit.shown("campaign"), "none is shown")
    visit.find("campaigns-filter").send_keys("weekly")
    listed = "return [...document.querySelectorAll('#campaigns tbody tr')].map((r) => r.firstElementChild.textContent)"
    visit.wait(lambda: visit.run(listed) == ["Weekly waiting times"], "only what fits is listed")
    visit.find("campaigns-filter").send_keys(Keys.CONTROL, "a")
    visit.find("campaigns-filter").send_keys(Keys.DELETE)
    visit.look("operator-16-list", strict=True)
    visit.forced_colours("operator-16-list-forced")
