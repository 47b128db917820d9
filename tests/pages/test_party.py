"""The party's page in a real browser, with two real servers: what it sends, refuses, remembers and takes back."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

from dealer.cli import main as dealer
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.pages.party_page import party_page
from tests.harness.browser import trusting
from tests.harness.server_pair import LivePair, name
from tests.pages.chromium import chromium
from tests.pages.study import Study, counts, give_file, send, type_value
from tests.pages.visiting import PHONE
from tests.servers.waves import close

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(pair: LivePair, downloads: Path) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"], downloads) as started:
        yield started


@pytest.fixture
def study(pair: LivePair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path)


def test_one_value_by_hand(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver, PHONE)
    assert "token" not in driver.current_url
    assert study.campaign.question in visit.text("question")
    visit.click("begin")
    assert visit.run("return document.activeElement.id") == "value"
    type_value(visit, "0.42")
    visit.wait_state("review")
    assert "You send 0.42 %, group “yes”" in visit.text("you-send")
    assert study.stored() == [0, 0]
    send(visit)
    visit.wait_state("done")
    assert "1 value" in visit.text("done-text")
    assert study.stored() == [1, 1]


def test_a_file_is_counted_as_it_should(driver: Chrome, study: Study) -> None:
    path = study.csv(2500)
    path.write_text(path.read_text() + "x,,no\ny,7.5,yes\nz,-2,no\n")
    visit = study.visited(driver)
    give_file(visit, path)
    assert counts(visit) == ["2,503", "1", "2", "2,502"]
    assert "row 2503: 7.5; row 2504: -2" in visit.text("off")
    assert visit.run("return document.querySelectorAll('#histogram rect.bar').length") > 20
    send(visit)
    visit.wait_state("done")
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
    visit.wait_state("done")
    visit.click("save")
    saved = downloads / f"{name(study.campaign)}.receipt.json"
    visit.wait(saved.exists, "the receipt is saved")
    (tmp_path / "token").write_text(study.token)
    urls = [f"{study.pair.url(role)}/v1/campaigns/{name(study.campaign)}" for role in (0, 1)]
    about = ["--campaign", *urls, "--token-file", str(tmp_path / "token"), "--ca", str(study.pair.folder / "ca.pem")]
    sent = ["upload", *about, "--receipt", str(saved), "--yes", "--stratum-column", "event", "--column", "score"]
    digest = f"--digest={to_base64url(study.campaign.digest)}"
    assert dealer([*sent, "--file", str(study.csv(1500)), digest]) == 0
    assert study.stored() == [1500, 1500]  # the same values once more: nothing is sent twice
    assert dealer(["withdraw", *about, "--receipt", str(saved), digest]) == 0
    assert study.stored() == [0, 0]


def test_withdrawing_and_sending_others(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(1200))
    send(visit)
    visit.wait_state("done")
    visit.click("withdraw")
    visit.click("no")
    visit.wait_state("done")
    visit.click("withdraw")
    visit.click("yes")
    visit.wait(lambda: "erased 1,200" in visit.text("done-text"), "it is withdrawn")
    assert study.stored() == [0, 0]
    visit.click("again")
    give_file(visit, study.csv(700, seed=1))
    send(visit)
    visit.wait(lambda: "stored 700" in visit.text("done-text"), "others are sent")
    assert study.stored() == [700, 700]


def test_a_reload_goes_on(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(12_000))
    send(visit)
    visit.wait(lambda: sum(study.stored()) >= 2000, "something is stored")
    driver.refresh()
    assert visit.wait(lambda: min(study.stored()), "there") <= 12_000
    visit.wait_state("done", 120)
    assert study.stored() == [12_000, 12_000]
    driver.refresh()  # and what is complete is shown as that, and is not sent again
    visit.wait_state("done")
    assert "12,000" in visit.text("done-text")
    assert study.stored() == [12_000, 12_000]


def test_a_server_that_goes_away(driver: Chrome, study: Study) -> None:
    """Half-way is taken back, or remembered until it can be; each value counts once."""
    visit = study.visited(driver)
    give_file(visit, study.csv(15_000))
    send(visit)
    visit.wait(lambda: study.stored()[1] >= 2000, "something is stored")
    study.pair.stop(1)
    try:
        visit.wait_state("failed", 120)
        assert "Server 1 cannot be reached" in visit.text("problem")
        assert re.search(r"of 15,000 values are stored|could not be withdrawn yet", visit.text("problem"))
        assert visit.shown("resume")
        assert visit.shown("withdraw")
    finally:
        study.pair.start(1)
    driver.refresh()
    visit.wait_state("done", 120)
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


def test_a_wave_that_closes_while_it_is_sent(driver: Chrome, pair: LivePair, tmp_path: Path) -> None:
    """Both servers have said that wave 1 is open, and close it: new keys are sent for wave 2, and count once."""
    study = Study(pair, tmp_path, waves={"every": "manual", "count": 3, "pooled": []})
    visit = study.visited(driver)
    type_value(visit, "0.42")
    visit.wait_state("review")
    close(pair, study.campaign, 1)
    visit.run(STALE)
    send(visit)
    visit.wait_state("done", 60)
    for role in (0, 1):
        assert [wave["uploads"] for wave in pair.status(study.campaign, role)["waves"]] == [0, 1]


def test_a_server_that_was_never_there(driver: Chrome, study: Study) -> None:
    visit = study.visited(driver)
    give_file(visit, study.csv(10))
    study.pair.stop(1)
    try:
        send(visit)
        visit.wait_state("failed", 120)
        assert "Nothing was sent" in visit.text("problem")
        assert visit.shown("edit")
    finally:
        study.pair.start(1)
    assert study.stored() == [0, 0]
    visit.click("resume")
    visit.wait_state("done")
    assert study.stored() == [10, 10]


FORGED = """
const real = window.fetch;
window.fetch = async (url, how) => {
  if (!String(url).endsWith("/withdraw")) return real(url, how);
  return new Response(JSON.stringify({ withdrawn: how.body.length / 16, failures: [], signature: "A".repeat(86) }));
};
window.honest = () => (window.fetch = real);
"""


def test_a_withdrawal_that_no_server_signed_is_not_believed(driver: Chrome, study: Study) -> None:
    """As whoever ends TLS for both servers would confirm it: with new keys the party would count twice."""
    visit = study.visited(driver)
    give_file(visit, study.csv(30))
    send(visit)
    visit.wait_state("done")
    visit.run(FORGED)
    visit.click("withdraw")
    visit.click("yes")
    visit.wait_state("failed", 120)
    assert "has not confirmed this with its signature" in visit.text("problem")
    assert study.stored() == [30, 30]
    visit.run("window.honest()")


def test_a_batch_that_one_server_refuses_is_withdrawn_at_both(driver: Chrome, pair: LivePair, tmp_path: Path) -> None:
    study = Study(pair, tmp_path, max_uploads=1500)
    visit = study.visited(driver)
    give_file(visit, study.csv(2000))
    send(visit)
    visit.wait_state("failed")
    assert "campaign-full" in visit.text("problem")
    assert "1,000 of 2,000 values are stored at both servers" in visit.text("problem")
    assert study.stored()[0] == study.stored()[1]
    assert study.stored()[0] % 1000 == 0


def test_the_same_campaign_has_the_same_page(
    pair: LivePair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study(pair, tmp_path)
    first = study.file.read_bytes()
    assert hashlib.sha256(first).hexdigest() in capsys.readouterr().out
    urls = [f"{pair.url(role)}/v1/campaigns/{name(study.campaign)}" for role in (0, 1)]
    assert party_page(study.campaign, urls).encode() == first
