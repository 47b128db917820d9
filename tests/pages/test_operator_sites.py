"""Sites in the operator's console: uploads against quotas, states, tokens shown once; the keyboard; one server."""

import json
import time
import zipfile
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.operators.console import Watch
from fss_ecdf.operators.console_actions import Servers
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Console, Query
from tests.harness.server_pair import LivePair, name
from tests.pages.operating import admitted, at, card, opened, press, row, send, site
from tests.pages.visiting import DESK, ZOOMED, Visit
from tests.servers.conftest import new_campaign

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def hospitals(pair: LivePair) -> Campaign:
    made = new_campaign(title="Length of stay", admission="sites", min_uploads=20)
    pair.create(made)
    return made


@pytest.fixture(scope="module")
def visit(driver: Chrome, console: Console, hospitals: Campaign) -> Visit:
    made = Visit(driver)
    made.open(console.link)
    opened(made, hospitals)
    return made


def test_sites_their_quotas_states_and_tokens(
    visit: Visit, pair: LivePair, hospitals: Campaign, watch: Watch, folder: Path, downloads: Path
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
    visit.look("operator-8-shown-once", strict=True)
    visit.click("all-sheets")
    visit.wait((downloads / "joining-sheets.zip").exists, "all sheets are saved")
    with zipfile.ZipFile(downloads / "joining-sheets.zip") as archive:
        assert archive.testzip() is None
        names = sorted(archive.namelist())
        assert [n.partition("-")[0] for n in names] == ["ca0.pem", "ca1.pem", "north", "south"]
        assert archive.read(sheet.name).decode() == sheet.read_text()
        assert tokens[1] in archive.read(names[3]).decode()
        assert archive.read("ca0.pem") == (pair.folder / "ca.pem").read_bytes()
    visit.click("forget")
    visit.wait(lambda: site(visit, "North") == ["active", "0 of 10"], "it is listed")
    seen = visit.run("return document.documentElement.outerHTML") + json.dumps(watch.overview(Query({})))
    assert not any(token in seen for token in tokens)

    assert send(pair, hospitals, tokens[0], 8) == [200, 200]
    assert send(pair, hospitals, tokens[1], 3, role=0) == [200]
    visit.wait(lambda: site(visit, "North")[1] == "8 of 10", "its uploads are seen")
    visit.wait(lambda: site(visit, "South")[1] == "3 / 0 of 10", "what reached one server only, too")
    assert "11 at server 0, 8 at server 1" in visit.text("sites-sum")

    press(visit, "Quota of North")
    visit.find("sure-quota").send_keys(Keys.CONTROL, "a")
    visit.find("sure-quota").send_keys("25")
    visit.click("yes")
    visit.wait(lambda: site(visit, "North")[1] == "8 of 25", "its quota is another")
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
    visit.wait(lambda: site(visit, "North")[1] == "22 of 25", "its uploads are its own still")
    visit.look("operator-9-sites")

    press(visit, "Erase what was sent by South")
    visit.find("sure-typed").send_keys("North")
    visit.click("yes")
    visit.wait(lambda: "type the site's label" in visit.text("sure-problem"), "the label is needed")
    visit.find("sure-typed").send_keys(Keys.CONTROL, "a")
    visit.find("sure-typed").send_keys("South")
    visit.click("yes")
    visit.wait(lambda: site(visit, "South") == ["revoked", "0 of 10"], "it is erased")
    assert send(pair, hospitals, tokens[1], 1) == [403, 403]


def labels(visit: Visit) -> list[str]:
    script = "return [...document.querySelectorAll('#sites tbody tr')].map((r) => r.firstElementChild.textContent)"
    return list(visit.run(script))


def test_sites_are_filtered_and_sorted_and_those_that_need_attention_come_first(
    visit: Visit, pair: LivePair, hospitals: Campaign
) -> None:
    long = "Zentrum für Herz- und Gefäßkrankheiten am Klinikum der Landeshauptstadt, Abteilung für Notfälle"
    admitted(visit, f"Academy\n{long}", "2")
    visit.wait_shown("secret")
    tokens = [e.text for e in visit.driver.find_elements(By.CSS_SELECTOR, "#secret .token")]
    visit.click("forget")
    assert send(pair, hospitals, tokens[1], 2, role=0) == [200]  # at one server only
    visit.wait(lambda: site(visit, long) == ["active", "2 / 0 of 2"], "its uploads are seen")
    visit.wait(lambda: labels(visit) == [long, "Academy", "North", "South"], "it comes first")
    bar = visit.driver.find_element(By.CSS_SELECTOR, "#sites .bar-both")
    assert bar.get_attribute("aria-label") == f"{long}: 2 at server 0, 0 at server 1, quota 2"
    name = visit.driver.find_element(By.CSS_SELECTOR, "#sites .short")
    cut = "const e = arguments[0]; return e.scrollWidth > e.clientWidth"
    assert visit.run(cut, name)
    visit.run("arguments[0].focus()", name)
    assert not visit.run(cut, name)
    for _ in range(2):
        visit.run("document.querySelector('#sites [data-key=\"sort sites Uploads\"]').click()")
    visit.wait(lambda: labels(visit)[0] == "North", "the one with most uploads is first")
    assert visit.run("return document.querySelector('#sites [aria-sort=descending]').textContent") == "Uploads ↓"
    visit.find("sites-filter").send_keys("revoked")
    visit.wait(lambda: labels(visit) == ["South"], "only what fits is shown")
    assert "1 of 4 shown" in visit.text("sites-count")
    visit.look("operator-13-filtered", strict=True)
    visit.find("sites-filter").send_keys(Keys.CONTROL, "a")
    visit.find("sites-filter").send_keys(Keys.DELETE)
    visit.run("document.querySelector('#sites [data-key=\"sort sites Site\"]').click()")
    visit.wait(lambda: labels(visit) == ["Academy", "North", "South", long], "all are back, by their labels")
    visit.look("operator-9b-sites", strict=True)


def test_by_the_keyboard_alone_at_400_percent(
    visit: Visit, driver: Chrome, hospitals: Campaign, pair: LivePair
) -> None:
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
    tab_to(f"{north['id']} menu")
    with pair.operator(0) as client:
        path = f"/v1/campaigns/{name(hospitals)}/sites/{north['id']}"
        assert client.patch(path, json={"quota": 30}).is_success
    visit.wait(lambda: site(visit, "North")[1] == "22 of 30 / 25", "the table is another")
    assert visit.run(by_key) == f"{north['id']} menu"
    visit.press(Keys.ENTER)
    tab_to(f"{north['id']} quota")
    assert visit.fits()
    visit.look("operator-12-menu-zoomed", strict=True)
    visit.press(Keys.ENTER)
    visit.wait(lambda: visit.run("return document.activeElement.id") == "sure-quota", "the window has the focus")
    assert visit.fits()
    visit.look("operator-10-sure-zoomed")
    visit.press(Keys.ESCAPE)
    visit.wait(lambda: not visit.shown("sure"), "it is closed")
    assert visit.run(by_key) == f"{north['id']} menu"
    assert visit.fits()
    Visit(driver, DESK)


def test_an_operator_of_one_server(driver: Chrome, pair: LivePair, hospitals: Campaign, tmp_path: Path) -> None:
    """Of the other organisation's server: what everybody sees, and what the own one is told."""
    file = pair.folder / "one.toml"
    file.write_text(
        f'[[server]]\nserver = 1\nurl = "{pair.url(1)}"\nca = "ca.pem"\ntoken_file = "server1/operator.token"\n'
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
        assert site(visit, "North") == ["active", "22 of 25"]  # at its own server
        assert not visit.shown("page")
        visit.click("seal")
        assert "Your agreement is recorded at server 1; nothing is sealed yet" in visit.text("sure-text")
        assert "you can withdraw your agreement" in visit.text("sure-text")
        visit.look("operator-14-agreement", strict=True)
        visit.click("no")
        press(visit, "Pause North")
        visit.click("yes")
        visit.wait_shown("secret")
        assert "sites apply FILE" in visit.text("secret-file")
        (travelling,) = tmp_path.rglob("north-pause.json")
        assert json.loads(travelling.read_text())["changes"][0]["state"] == "paused"
        assert {s["state"] for s in pair.status(hospitals, 0)["sites"] if s["label"] == "North"} == {"active"}
        visit.look("operator-11-one-server")
        visit.click("forget")
        console.close()
