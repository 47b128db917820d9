"""Whoever ends TLS for both servers, and the party's page: nobody counts twice, and nobody is told of a made-up answer.

The front end is played in the browser: it sees each request after the page has made it, passes it on or not, and
answers what it likes. It cannot sign.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from fss_ecdf.net.tokens import new_token
from tests.harness.browser import trusting
from tests.harness.server_pair import LivePair
from tests.pages.chromium import chromium
from tests.pages.study import Study, send, type_value
from tests.pages.visiting import Visit

pytestmark = pytest.mark.browser

# The server stores the upload and the front end calls its token unknown; no withdrawal comes through.
UNKNOWN = """
const real = window.fetch;
window.fetch = async (url, how) => {
  if (how?.method !== "POST") return real(url, how);
  if (!url.endsWith("/withdraw")) await real(url, how);
  const problem = { type: "urn:fss-ecdf:problem:not-authenticated", status: 401, detail: "nobody knows this token" };
  return new Response(JSON.stringify(problem), { status: 401, headers: { "Content-Type": "application/json" } });
};
"""
# It drops everything and answers as a server that has done it.
DROPPED = """
const real = window.fetch;
window.fetch = async (url, how) => {
  if (how?.method !== "POST") return real(url, how);
  const signature = "A".repeat(86);
  return new Response(JSON.stringify({ failures: [], withdrawn: 1, signature }), { status: 200 });
};
"""


@pytest.fixture(scope="module")
def driver(pair: LivePair) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"]) as started:
        yield started


@pytest.fixture
def tokens() -> list[str]:
    return [new_token("invite") for _ in range(2)]


@pytest.fixture
def study(pair: LivePair, tmp_path: Path, tokens: list[str]) -> Study:
    return Study(pair, tmp_path, tokens, admission="invited")


def invited(driver: Chrome, study: Study, token: str) -> Visit:
    study.token = token
    visit = Visit(driver)
    visit.open(study.link)
    return visit


def tried(driver: Chrome, study: Study, token: str, front: str = "", value: str = "0.4") -> Visit:
    """The page up to the sending of one value."""
    visit = invited(driver, study, token)
    visit.wait_state("study")
    visit.run(front)
    type_value(visit, value)
    send(visit)
    return visit


def test_a_second_invitation_does_not_count_beside_the_first(driver: Chrome, study: Study, tokens: list[str]) -> None:
    """The upload is stored, says no one; the person is given another invitation and says so."""
    visit = tried(driver, study, tokens[0], UNKNOWN)
    visit.wait_state("failed")
    assert study.stored() == [1, 1]
    visit = tried(driver, study, tokens[1], value="0.6")
    visit.wait_state("earlier")
    visit.look("party-earlier", strict=True)
    visit.click("mine")
    visit.wait_state("failed")
    assert "only the invitation with which it was sent can withdraw it" in visit.text("problem")
    assert study.stored() == [1, 1]
    visit.click("resume")  # by no other button either
    visit.wait_state("earlier")
    assert study.stored() == [1, 1]
    visit = invited(driver, study, tokens[0])  # which resumes
    visit.wait_state("done")
    assert study.stored() == [1, 1]
    tried(driver, study, tokens[1]).wait_state("done")  # nothing is unfinished any more: this is somebody else
    assert study.stored() == [2, 2]


def test_what_never_arrived_is_withdrawn_by_the_second_invitation(
    driver: Chrome, study: Study, tokens: list[str]
) -> None:
    """The first token was wrong indeed. Both servers sign that its ids do not count, and take nothing under them."""
    visit = tried(driver, study, new_token("invite"))
    visit.wait_state("failed")
    assert study.stored() == [0, 0]
    visit = tried(driver, study, tokens[1])
    visit.wait_state("earlier")
    visit.click("mine")
    visit.wait_state("done")
    assert study.stored() == [1, 1]


def test_somebody_else_on_the_device_sends_at_once(driver: Chrome, study: Study, tokens: list[str]) -> None:
    visit = tried(driver, study, tokens[0], UNKNOWN)
    visit.wait_state("failed")
    visit = tried(driver, study, tokens[1])
    visit.wait_state("earlier")
    visit.click("others")
    visit.wait_state("done")
    assert study.stored() == [2, 2]
    invited(driver, study, tokens[0]).wait_state("done")  # the first person resumes, and is asked nothing
    assert study.stored() == [2, 2]


def test_what_was_dropped_is_not_called_stored(driver: Chrome, study: Study, tokens: list[str]) -> None:
    visit = tried(driver, study, tokens[0], DROPPED)
    visit.wait_state("failed")
    assert "has not confirmed this with its signature" in visit.text("problem")
    assert "could not be withdrawn yet" in visit.text("problem")
    assert study.stored() == [0, 0]
    invited(driver, study, tokens[0]).wait_state("done")
    assert study.stored() == [1, 1]
