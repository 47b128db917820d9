"""The party's page in a real browser, with two real servers: what it sends, refuses, remembers and takes back."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from campaign.spec import to_base64url
from dealer.cli import main as dealer
from harness.browser import trusting
from harness.live import Pair, name
from tests.servers.waves import close
from tests.web.chromium import chromium
from tests.web.study import Study, give_file, ready, send
from tests.web.visiting import PHONE, ZOOMED, Visit
from web.page import party_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(pair: Pair, downloads: Path) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"], downloads) as started:
        yield started


@pytest.fixture
def study(pair: Pair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path)


def test_one_value_by_hand(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, PHONE)
    assert "token" not in driver.current_url
    assert study.campaign.question in visit.text("question")
    assert visit.fits()
    visit.look("party-1-start-phone")
    visit.find("value").send_keys("0.42")
    visit.choose("stratum", "yes")
    visit.run("document.querySelector('#one button').click()")
    visit.wait_shown("preview")
    assert "1 value:" in visit.text("counts")
    assert not visit.find("send").is_enabled()
    assert visit.fits()
    visit.look("party-2-preview-phone")
    assert study.stored() == [0, 0]
    send(visit)
    visit.wait_shown("done")
    assert study.stored() == [1, 1]
    assert visit.fits()
    visit.look("party-3-done-phone")


def test_a_file_is_counted_as_it_should(driver: Chrome, study: Study) -> None:
    path = study.csv(2500)
    path.write_text(path.read_text() + "x,,no\ny,7.5,yes\nz,-2,no\n")
    visit = study.visited(driver)
    give_file(visit, path)
    visit.wait(lambda: "2502 values" in visit.text("counts"), "the counts")
    assert "1 below and 1 above" in visit.text("counts")
    assert "1 empty rows" in visit.text("counts")
    assert visit.run("return document.querySelectorAll('#histogram rect.bar').length") > 20
    visit.look("party-4-file")
    send(visit)
    visit.wait_shown("done")
    assert study.stored() == [2502, 2502]
    study.pair.seal(study.campaign)
    study.pair.wait_ready(study.campaign)
    assert study.pair.status(study.campaign)["rejected"] == 0  # the servers have checked the page's proofs
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    for stratum in ("no", "yes"):
        answer = study.pair.ask(0, study.campaign, "curve", stratum=stratum)
        values = np.array([float(x) for _, x, s in rows if s == stratum and x])
        truth = np.array([(values <= t + 1e-12).sum() for t in answer["thresholds"]])
        truth[-1] = values.size  # beyond the grid is its end
        apart = np.abs(np.array(answer["counts"]) - truth) / np.maximum(np.array(answer["standard_errors"]), 1)
        assert apart.max() < 8  # of 202 noisy counts: false alarm below 1e-12


def test_keys_of_a_page_are_those_of_the_dealer(driver: Chrome, study: Study, downloads: Path, tmp_path: Path) -> None:
    """A receipt that was saved withdraws what was sent, with the other program."""
    visit = study.visited(driver)
    give_file(visit, study.csv(1500))
    send(visit)
    visit.wait_shown("done")
    visit.click("save")
    saved = downloads / f"{name(study.campaign)}.receipt.json"
    visit.wait(saved.exists, "the receipt is saved")
    (tmp_path / "token").write_text(study.token)
    urls = [f"{study.pair.url(role)}/v1/campaigns/{name(study.campaign)}" for role in (0, 1)]
    about = ["--campaign", *urls, "--token-file", str(tmp_path / "token"), "--ca", str(study.pair.folder / "ca.pem")]
    sent = ["upload", *about, "--receipt", str(saved), "--yes", "--stratum-column", "event", "--column", "score"]
    digest = f"--digest={to_base64url(study.campaign.digest)}"
    assert dealer([*sent, "--csv", str(study.csv(1500)), digest]) == 0
    assert study.stored() == [1500, 1500]  # the same values once more: nothing is sent twice
    assert dealer(["withdraw", *about, "--receipt", str(saved)]) == 0
    assert study.stored() == [0, 0]


def test_withdrawing_and_sending_others(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(1200))
    send(visit)
    visit.wait_shown("done")
    visit.click("withdraw")
    visit.wait_shown("sure")
    visit.look("party-5-sure")
    visit.click("yes")
    visit.wait(lambda: "erased 1200" in visit.text("done-text"), "it is withdrawn")
    visit.look("party-6-withdrawn")
    assert study.stored() == [0, 0]
    give_file(visit, study.csv(700, seed=1))
    send(visit)
    visit.wait(lambda: "stored 700" in visit.text("done-text"), "others are sent")
    assert study.stored() == [700, 700]


def test_a_reload_goes_on(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(12_000))
    send(visit)
    visit.wait(lambda: sum(study.stored()) >= 2000, "something is stored")
    visit.look("party-7-sending")
    driver.refresh()
    assert visit.wait(lambda: min(study.stored()), "there") <= 12_000
    visit.wait_shown("done", 120)
    assert study.stored() == [12_000, 12_000]
    driver.refresh()  # and what is complete is shown as that, and is not sent again
    visit.wait_shown("done")
    assert "12000" in visit.text("done-text")
    assert study.stored() == [12_000, 12_000]


def test_a_server_that_goes_away(driver: Chrome, study: Study) -> None:
    """Half-way is taken back, or remembered until it can be; each value counts once."""
    visit = study.visited(driver)
    give_file(visit, study.csv(15_000))
    send(visit)
    visit.wait(lambda: study.stored()[1] >= 2000, "something is stored")
    study.pair.stop(1)
    try:
        visit.wait_shown("problem", 120)
        assert "Server 1 cannot be reached" in visit.text("problem")
        assert "could not be withdrawn yet" in visit.text("problem")
        visit.look("party-8-away")
    finally:
        study.pair.start(1)
    driver.refresh()
    visit.wait_shown("done", 120)
    assert study.stored() == [15_000, 15_000]


STALE = """
const real = window.fetch;
let left = 2;
window.fetch = async (url, how) => {
  const answer = await real(url, how);
  if (how.method !== "GET" || left === 0) return answer;
  left -= 1;
  return new Response((await answer.text()).replace('"wave":2', '"wave":1'), { status: 200 });
};
"""


def test_a_wave_that_closes_while_it_is_sent(driver: Chrome, pair: Pair, tmp_path: Path) -> None:
    """Both servers have said that wave 1 is open, and close it: new keys are sent for wave 2, and count once."""
    study = Study(pair, tmp_path, waves={"every": "by hand", "count": 3, "pooled": []})
    visit = study.visited(driver)
    visit.find("value").send_keys("0.42")
    visit.choose("stratum", "yes")
    visit.run("document.querySelector('#one button').click()")
    visit.wait_shown("preview")
    close(pair, study.campaign, 1)
    visit.run(STALE)
    send(visit)
    visit.wait_shown("done", 60)
    for role in (0, 1):
        assert [wave["count"] for wave in pair.status(study.campaign, role)["waves"]] == [0, 1]


def test_a_server_that_was_never_there(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(10))
    study.pair.stop(1)
    try:
        send(visit)
        visit.wait_shown("problem", 120)
        assert "Nothing was sent" in visit.text("problem")
        assert visit.find("send").is_displayed()
    finally:
        study.pair.start(1)
    assert study.stored() == [0, 0]
    visit.click("send")
    visit.wait_shown("done")
    assert study.stored() == [10, 10]


def test_a_batch_that_one_server_refuses_is_withdrawn_at_both(driver: Chrome, pair: Pair, tmp_path: Path) -> None:
    study = Study(pair, tmp_path, max_uploads=1500)
    visit = study.visited(driver)
    give_file(visit, study.csv(2000))
    send(visit)
    visit.wait_shown("problem")
    assert "campaign-full" in visit.text("problem")
    assert "withdrawn at both servers" in visit.text("problem")
    assert study.stored()[0] == study.stored()[1]
    assert study.stored()[0] % 1000 == 0


def test_bad_tokens_and_bad_values(driver: Chrome, study: Study) -> None:
    visit = Visit(driver)
    visit.open(f"{study.file.as_uri()}#token=fss-up-wrong")
    ready(visit)
    bad = study.csv(3)
    bad.write_text("score,event\n0.5,yes\nmuch,no\n")
    visit.run("document.querySelector('input[value=file]').click()")
    visit.find("file").send_keys(str(bad))
    visit.wait_shown("error")
    assert "Row 3: “much” is not a number" in visit.text("error")
    visit.look("party-9-bad-value")
    give_file(visit, study.csv(5))
    send(visit)
    visit.wait_shown("problem")
    assert "not-authenticated" in visit.text("problem")
    assert study.stored() == [0, 0]


def test_the_page_speaks_german(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, PHONE)
    visit.choose("language", "de")
    assert visit.run("return document.documentElement.lang") == "de"
    visit.find("value").send_keys("0.3")
    visit.run("document.querySelector('#one button').click()")
    visit.wait_shown("preview")
    assert "Was gesendet würde" in visit.text("preview")
    assert visit.fits()
    visit.look("party-11-german-phone")


def test_by_the_keyboard_alone_at_400_percent(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, ZOOMED)
    assert visit.fits()
    visit.tab_to("value")
    visit.press("0.5", Keys.ENTER)
    visit.wait_shown("preview")
    assert visit.fits()
    visit.tab_to("agree")
    visit.press(Keys.SPACE)
    visit.tab_to("send")
    visit.press(Keys.ENTER)
    visit.wait_shown("done")
    assert visit.run("return document.activeElement.id") == "done-head"
    assert study.stored() == [1, 1]
    visit.look("party-12-done-zoomed")


def test_a_second_tab_waits(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(40))
    lock = f"fss-ecdf {name(study.campaign)}"
    visit.run("navigator.locks.request(arguments[0], () => new Promise((done) => (window.release = done)))", lock)
    send(visit)
    visit.wait_shown("problem")
    assert "Another tab" in visit.text("problem")
    assert study.stored() == [0, 0]
    visit.run("window.release()")
    visit.wait(lambda: visit.find("send").is_enabled(), "it can be sent")
    visit.click("send")
    visit.wait_shown("done")
    assert study.stored() == [40, 40]


def test_the_languages_say_the_same_things() -> None:
    """Every text in every language, with the same blanks, and no text that nobody shows."""
    folder = Path(party_page.__code__.co_filename).parent / "party"
    texts = (folder / "texts.js").read_text()
    languages = {lang: _texts(texts, lang) for lang in ("en", "de")}
    assert len(languages["en"]) > 80
    assert list(languages["en"]) == list(languages["de"])
    for key, text in languages["en"].items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", languages["de"][key])), key
    used = "".join(path.read_text() for path in [*folder.glob("*.js"), *folder.glob("*.html")])
    for key in re.findall(r'data-text="(\w+)"|(?:say|note|Refusal)\("(\w+)"', used):
        assert "".join(key) in languages["en"], key


def _texts(source: str, language: str) -> dict[str, str]:
    part = source.split(f"  {language}: {{\n")[1].split("\n  },\n")[0]
    return dict(re.findall(r'^    "?([\w-]+)"?:\s+"(.*)",$', part, re.MULTILINE))


def test_the_same_campaign_has_the_same_page(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = Study(pair, tmp_path)
    first = study.file.read_bytes()
    assert hashlib.sha256(first).hexdigest() in capsys.readouterr().out
    urls = [f"{pair.url(role)}/v1/campaigns/{name(study.campaign)}" for role in (0, 1)]
    assert party_page(study.campaign, urls).encode() == first
