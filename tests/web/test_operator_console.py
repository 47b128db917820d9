"""The operator's console in a real browser: what both servers say, what to do next, and doing it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from campaign.spec import Campaign
from harness.live import Pair, envelopes, name
from operators.console import Watch
from operators.console_acts import Servers
from tests.servers.conftest import filled, new_campaign
from tests.web.visiting import DESK, PHONE, ZOOMED, Visit
from web.console import console_page
from web.local import Console, Query

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="module")
def watch(pair: Pair, folder: Path) -> Iterator[Watch]:
    with Servers.of(pair.folder / "operator.toml") as servers:
        yield Watch(servers, folder, time.time)


@pytest.fixture(scope="module")
def campaign(pair: Pair) -> Campaign:
    made, _ = filled(pair, 60)
    return made


@pytest.fixture(scope="module")
def hospitals(pair: Pair) -> Campaign:
    made = new_campaign(title="Length of stay", admission="sites", min_uploads=20)
    pair.create(made)
    return made


@pytest.fixture(scope="module")
def console(watch: Watch) -> Iterator[Console]:
    made = Console(console_page("operator"), watch.routes())
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def visit(driver: Chrome, console: Console, campaign: Campaign) -> Visit:
    made = Visit(driver)
    made.open(console.link)
    made.wait(lambda: name(campaign) in made.run("return document.body.innerHTML"), "the campaign is listed")
    return made


def opened(visit: Visit, campaign: Campaign) -> None:
    visit.wait(lambda: visit.run("return document.querySelector(arguments[0])", at(campaign)), "it is listed")
    visit.wait(lambda: _click(visit, at(campaign)), "it can be opened")
    visit.wait(
        lambda: visit.shown("campaign") and visit.text("campaign-head") == campaign.title, "the campaign is open"
    )


def _click(visit: Visit, selector: str) -> bool:
    visit.run("arguments[0].scrollIntoView({block: 'center'})", visit.driver.find_element(By.CSS_SELECTOR, selector))
    visit.driver.find_element(By.CSS_SELECTOR, selector).click()
    return True


def at(campaign: Campaign) -> str:
    return f"[data-id='{name(campaign)}']"


def row(visit: Visit, key: str) -> list[str]:
    return [e.text for e in visit.driver.find_elements(By.CSS_SELECTOR, f"#states [data-state={key}]")]


def card(visit: Visit, role: int) -> str:
    return visit.driver.find_element(By.CSS_SELECTOR, f"[data-server='{role}']").text


def next_in_the_list(visit: Visit, campaign: Campaign) -> str:
    script = "return document.querySelector(arguments[0]).closest('tr').lastElementChild.textContent"
    return str(visit.run(script, at(campaign)))


def test_both_servers_at_a_glance(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    for role in (0, 1):
        text = card(visit, role)
        assert pair.url(role) in text
        assert "ready" in text
        assert "in 364 days" in text
    opened(visit, campaign)
    assert row(visit, "uploads") == [str(pair.status(campaign, role)["uploads"]) for role in (0, 1)] == ["63", "62"]
    assert row(visit, "state") == ["open", "open"]
    assert "press “Seal”, by both operators" in visit.text("next")
    assert next_in_the_list(visit, campaign) == visit.text("next").removeprefix("Next: ")
    assert "0 of 1 spent, 1 left" in visit.text("facts")
    visit.look("operator-1-open")


def test_no_operators_token_reaches_the_page(visit: Visit, watch: Watch, pair: Pair, campaign: Campaign) -> None:
    about = Query({"id": [name(campaign)]})
    answers = [watch.overview(Query({})), watch.campaign(about), watch.actions(Query({}))]
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
        assert "cannot be asked now" in visit.text("next")
        visit.wait(lambda: "unknown" in card(visit, 1), "the list knows it too, at the latest when it is asked again")
        assert not visit.find("seal").is_enabled()
        cells = visit.run(
            "return [...document.querySelector(arguments[0]).closest('tr').children].map((e) => e.textContent)",
            at(campaign),
        )
        assert cells[2:] == ["unknown", "server 1 cannot be asked: find out why"]
        assert "server 1: unknown" in visit.text("facts")
        visit.choose("log-server", "1")
        visit.wait(lambda: "Server 1: unknown" in visit.text("log-whole"), "its log is unknown")
        visit.look("operator-2-unknown")
    finally:
        pair.start(1)
    visit.wait(lambda: row(visit, "uploads") == ["63", "62"], "it is back", 60)
    visit.choose("log-server", "0")


def test_a_word_is_taken_back_and_a_freeze_undone(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    opened(visit, campaign)
    assert not visit.find("retract").is_enabled()
    pair.agree(campaign, 0)
    visit.wait(lambda: row(visit, "agreed") == ["given", "not yet"], "the word is shown")
    visit.click("retract")
    visit.click("yes")
    visit.wait(lambda: row(visit, "agreed") == ["not yet", "not yet"], "it is taken back")
    assert pair.status(campaign)["agreed"] is False
    pair.agree(campaign, 1)
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    with pair.client(1, token) as client:  # a sealing that comes half-way
        assert client.post(f"/v1/peer/campaigns/{name(campaign)}/freeze").is_success
    visit.wait(lambda: row(visit, "state") == ["open", "frozen"], "the freeze is shown")
    visit.wait(lambda: "or undo it: press “Reopen”" in visit.text("next"), "it says what to do")
    visit.look("operator-6-frozen")
    visit.click("reopen")
    visit.click("yes")
    visit.wait(lambda: row(visit, "state") == ["open", "open"], "uploads go on")
    assert pair.status(campaign, 1)["state"] == "open"
    visit.wait(lambda: "reopened" in visit.text("done"), "it is noted")


def test_sealing_needs_the_title(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    opened(visit, campaign)
    visit.click("seal")
    visit.find("sure-typed").send_keys("yes")
    visit.look("operator-3-sure")
    visit.click("yes")
    visit.wait(lambda: "title" in visit.text("sure-problem"), "it says what is missing")
    assert pair.status(campaign)["state"] == "open"
    visit.find("sure-typed").send_keys(Keys.CONTROL, "a")
    visit.find("sure-typed").send_keys(campaign.title)
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


def test_what_operators_did(visit: Visit, pair: Pair, campaign: Campaign) -> None:
    visit.click("log-ask")
    visit.wait(lambda: "the log holds together" in visit.text("log-whole"), "the log is shown")
    with pair.operator(0) as client:
        kept = client.get("/v1/actions").json()["actions"]
    assert kept[-1]["link"] in visit.text("log-whole")
    cells = visit.run(
        "return [...document.querySelectorAll('#log tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
    )
    assert [c[:3] for c in cells] == [[str(a["number"]), a["at"], a["action"]] for a in reversed(kept)]
    mine = [c[2] for c in cells if c[3] == name(campaign)[:8]]
    assert mine == ["confirm", "seal", "reopen", "retract", "seal", "create"]


def admitted(visit: Visit, labels: str, quota: str) -> None:
    visit.click("admit")
    visit.find("sure-labels").send_keys(labels)
    visit.find("sure-quota").send_keys(Keys.CONTROL, "a")
    visit.find("sure-quota").send_keys(quota)
    visit.click("yes")


def press(visit: Visit, label: str) -> None:
    visit.wait(lambda: _click(visit, f"[aria-label='{label}']"), f"{label} can be pressed")


def site(visit: Visit, label: str) -> list[str]:
    script = (
        "const r = [...document.querySelectorAll('#sites tbody tr')].find((r) => r.firstElementChild.textContent"
        " === arguments[0]); return r ? [...r.children].slice(1, 5).map((c) => c.textContent) : []"
    )
    return list(visit.run(script, label))


def send(pair: Pair, campaign: Campaign, token: str, count: int, role: int | None = None) -> list[int]:
    data = envelopes(campaign, np.arange(count))
    return [pair.upload(r, campaign, data[r], token).status_code for r in (0, 1) if role in (None, r)]


def test_sites_their_quotas_states_and_tokens(
    visit: Visit, pair: Pair, hospitals: Campaign, watch: Watch, folder: Path
) -> None:
    opened(visit, hospitals)
    assert "0 sites; uploads: 0 at server 0, 0 at server 1; at least 20" in visit.text("sites-sum")
    admitted(visit, "North\nSouth\nNorth", "10")
    visit.wait(lambda: "'North' is named twice" in visit.text("sure-problem"), "a mistake is named")
    visit.find("sure-labels").clear()
    visit.find("sure-labels").send_keys("North\nSouth")
    visit.look("operator-7-admit")
    visit.click("yes")
    visit.wait_shown("secret")
    tokens = [e.text for e in visit.driver.find_elements(By.CSS_SELECTOR, "#secret .token")]
    assert [token.startswith("fss-") for token in tokens] == [True, True]
    (sheet,) = folder.glob(f"sites-{name(hospitals)[:8]}/north-*.md")
    assert tokens[0] in sheet.read_text()
    visit.look("operator-8-shown-once")
    visit.click("forget")
    visit.wait(lambda: site(visit, "North") == ["active", "0 of 10", "0 of 10", "10"], "it is listed")
    seen = visit.run("return document.documentElement.outerHTML") + json.dumps(watch.overview(Query({})))
    assert not any(token in seen for token in tokens)

    assert send(pair, hospitals, tokens[0], 8) == [200, 200]
    assert send(pair, hospitals, tokens[1], 3, role=0) == [200]
    visit.wait(lambda: site(visit, "North")[1:3] == ["8 of 10", "8 of 10"], "its uploads are seen")
    visit.wait(lambda: site(visit, "South")[1:3] == ["3 of 10", "0 of 10"], "what reached one server only, too")
    assert "11 at server 0, 8 at server 1" in visit.text("sites-sum")

    press(visit, "Quota of North")
    visit.find("sure-quota").send_keys(Keys.CONTROL, "a")
    visit.find("sure-quota").send_keys("25")
    visit.click("yes")
    visit.wait(lambda: site(visit, "North")[3] == "25", "its quota is another")
    press(visit, "Pause North")
    visit.click("yes")
    visit.wait(lambda: site(visit, "North")[0] == "paused", "it is paused")
    assert send(pair, hospitals, tokens[0], 1) == [403, 403]
    press(visit, "Resume North")
    visit.click("yes")
    visit.wait(lambda: site(visit, "North")[0] == "active", "it is resumed")

    press(visit, "New token for North")
    visit.click("yes")
    visit.wait_shown("secret")
    new = visit.driver.find_element(By.CSS_SELECTOR, "#secret .token").text
    visit.click("forget")
    assert new not in tokens
    assert new in sheet.read_text()
    assert send(pair, hospitals, tokens[0], 1) == [401, 401]
    assert send(pair, hospitals, new, 14) == [200, 200]
    visit.wait(lambda: site(visit, "North")[1:3] == ["22 of 25", "22 of 25"], "its uploads are its own still")
    visit.look("operator-9-sites")

    press(visit, "Erase what was sent by South")
    visit.find("sure-typed").send_keys("North")
    visit.click("yes")
    visit.wait(lambda: "type the site's label" in visit.text("sure-problem"), "the label is needed")
    visit.find("sure-typed").send_keys(Keys.CONTROL, "a")
    visit.find("sure-typed").send_keys("South")
    visit.click("yes")
    visit.wait(lambda: site(visit, "South")[:3] == ["revoked", "0 of 10", "0 of 10"], "it is erased")
    assert send(pair, hospitals, tokens[1], 1) == [403, 403]


def test_by_the_keyboard_alone_at_400_percent(visit: Visit, driver: Chrome, hospitals: Campaign, pair: Pair) -> None:
    """From the top of the page to a site's pause; what is asked anew every few seconds takes no focus away."""
    Visit(driver, ZOOMED)
    driver.refresh()
    visit.wait(lambda: visit.run("return document.querySelector(arguments[0])", at(hospitals)), "it is listed")
    assert visit.fits()
    by_key = "return document.activeElement.dataset.key ?? ''"

    def tab_to(key: str) -> None:
        for _ in range(80):
            visit.press(Keys.TAB)
            if visit.run(by_key) == key:
                return
        raise AssertionError(f"the keyboard does not reach {key}")

    tab_to(name(hospitals))
    visit.press(Keys.ENTER)
    visit.wait(lambda: visit.run("return document.activeElement.id") == "campaign-head", "the campaign has the focus")
    (north,) = (s for s in pair.status(hospitals)["sites"] if s["label"] == "North")
    tab_to(f"{north['id']} token")
    with pair.operator(0) as client:
        path = f"/v1/campaigns/{name(hospitals)}/sites/{north['id']}"
        assert client.patch(path, json={"quota": 30}).is_success
    visit.wait(lambda: site(visit, "North")[3] == "30 / 25", "the table is another")
    assert visit.run(by_key) == f"{north['id']} token"
    visit.press(Keys.SHIFT, Keys.TAB)
    visit.press(Keys.SHIFT, Keys.TAB)
    tab_to(f"{north['id']} quota")
    visit.press(Keys.ENTER)
    visit.wait(lambda: visit.run("return document.activeElement.id") == "sure-quota", "the window has the focus")
    assert visit.fits()
    visit.look("operator-10-sure-zoomed")
    visit.press(Keys.ESCAPE)
    visit.wait(lambda: not visit.shown("sure"), "it is closed")
    assert visit.run(by_key) == f"{north['id']} quota"
    assert visit.fits()
    Visit(driver, DESK)


def test_nothing_moves_for_those_who_ask_for_less(visit: Visit) -> None:
    visit.still()


def test_it_fits_a_phone(visit: Visit, driver: Chrome) -> None:
    phone = Visit(driver, PHONE)
    driver.refresh()
    phone.wait_shown("campaign")
    assert phone.fits()
    phone.look("operator-5-phone")
    Visit(driver, DESK)


def test_uploads_over_time(visit: Visit, pair: Pair) -> None:
    made = new_campaign(title="Another study", min_uploads=40)
    pair.create(made)
    opened(visit, made)
    assert "wait for uploads: at least 40" in visit.text("next")
    for role, data in enumerate(envelopes(made, np.arange(30))):
        pair.upload(role, made, data)
    visit.wait(lambda: row(visit, "uploads") == ["30", "30"], "uploads are seen")
    path = "return document.querySelector('#uploads path.line').getAttribute('d')"
    visit.wait(lambda: visit.run(path).count("L") >= 1, "they are drawn")


def test_an_operator_of_one_server(driver: Chrome, pair: Pair, hospitals: Campaign, tmp_path: Path) -> None:
    """Of the other organisation's server: what everybody sees, and what the own one is told."""
    file = pair.folder / "one.toml"
    file.write_text(
        f'[[server]]\nrole = 1\nurl = "{pair.url(1)}"\nca = "ca.pem"\ntoken_file = "server1/operator.token"\n'
        f'[peer]\nurl = "{pair.url(0)}"\nca = "ca.pem"\n'
    )
    with Servers.of(file) as servers:
        console = Console(console_page("operator"), Watch(servers, tmp_path, time.time).routes())
        console.start()
        visit = Visit(driver)
        visit.open(console.link)
        opened(visit, hospitals)
        assert "Server 0, of the other organisation" in card(visit, 0)
        assert "ready" in card(visit, 0)
        assert "in 364 days" in card(visit, 0)
        assert row(visit, "uploads") == [str(pair.status(hospitals, r)["uploads"]) for r in (0, 1)]
        assert len(site(visit, "North")) == 4  # its own server's uploads, and the buttons
        assert not visit.shown("page")
        press(visit, "Pause North")
        visit.click("yes")
        visit.wait_shown("secret")
        assert "sites accept FILE" in visit.text("secret-file")
        (travelling,) = tmp_path.rglob("north-pause.json")
        assert json.loads(travelling.read_text())["changes"][0]["state"] == "paused"
        assert {s["state"] for s in pair.status(hospitals, 0)["sites"] if s["label"] == "North"} == {"active"}
        visit.look("operator-11-one-server")
        visit.click("forget")
        console.close()
