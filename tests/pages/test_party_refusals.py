"""What a party's page refuses before anything is sent, and what its policy lets it reach."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidCampaign
from fss_ecdf.pages.party_page import party_page
from tests.harness.browser import trusting
from tests.harness.server_pair import LivePair
from tests.pages.chromium import chromium
from tests.pages.study import Study, ready
from tests.pages.visiting import Visit

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def driver(pair: LivePair) -> Iterator[Chrome]:
    with chromium([trusting(pair), "--lang=en-US", "--accept-lang=en-US"]) as started:
        yield started


@pytest.fixture
def study(pair: LivePair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path)


def changed_page(study: Study, **about: Any) -> None:
    """The page with other facts in it; what it says of itself is not covered by its policy."""
    text = study.file.read_text()
    start = text.index('id="about">') + len('id="about">')
    end = text.index("</script>", start)
    study.file.write_text(text[:start] + json.dumps({**json.loads(text[start:end]), **about}) + text[end:])


def refused(driver: Chrome, study: Study, says: str) -> None:
    """The page says why and that nothing was sent, and offers no way to type or send a value."""
    visit = Visit(driver)
    visit.open(study.link)
    visit.wait_state("failed")
    assert says in visit.text("problem")
    assert "Nothing was sent" in visit.text("problem")
    assert not visit.run("return document.querySelectorAll('#screen input, #screen button').length")
    assert study.stored() == [0, 0]


def test_servers_in_the_wrong_order_are_refused(driver: Chrome, study: Study) -> None:
    urls = json.loads(study.file.read_text().split('id="about">')[1].split("</script>")[0])["urls"]
    changed_page(study, urls=urls[::-1])
    refused(driver, study, "wrong order")


def test_another_campaign_is_refused(driver: Chrome, study: Study) -> None:
    other = Campaign.from_dict({**study.campaign.model_dump(by_alias=True), "epsilon": 0.5})
    changed_page(study, campaign=other.canonical.decode(), digest=to_base64url(other.digest))
    refused(driver, study, "describes another study")


def test_a_page_that_contradicts_itself_is_refused(driver: Chrome, study: Study) -> None:
    changed_page(study, digest=to_base64url(bytes(32)))
    refused(driver, study, "digest")


def test_an_unknown_scheme_is_refused(driver: Chrome, study: Study) -> None:
    fields = json.loads(study.campaign.canonical)
    changed_page(study, campaign=json.dumps({**fields, "variables": [{**fields["variables"][0], "scheme": "dpf"}]}))
    refused(driver, study, "cannot make keys of kind")


def test_the_hybrid_kem_is_refused_with_the_reason(driver: Chrome, study: Study) -> None:
    fields = json.loads(study.campaign.canonical)
    changed_page(study, campaign=json.dumps({**fields, "kem": "mlkem768x25519"}))
    refused(driver, study, "withstands quantum computers (mlkem768x25519), and browsers do not have it")
    hybrid = study.campaign.model_copy(update={"kem": "mlkem768x25519"})
    with pytest.raises(InvalidCampaign, match="browsers cannot encrypt with mlkem768x25519"):
        party_page(hybrid, [])


def test_a_browser_without_x25519_says_so_before_anything_is_typed(driver: Chrome, study: Study) -> None:
    """As older ones do: their WebCrypto does not know the name."""
    lacking = """
        const known = SubtleCrypto.prototype.generateKey;
        SubtleCrypto.prototype.generateKey = function (kind, ...more) {
          if (kind === "X25519") return Promise.reject(new DOMException("unknown", "NotSupportedError"));
          return known.call(this, kind, ...more);
        };"""
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": lacking})
    try:
        refused(driver, study, "This browser is too old: it lacks the encryption (X25519)")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


OUTSIDE = """
const done = arguments[arguments.length - 1], violations = [];
document.addEventListener("securitypolicyviolation", (e) => violations.push(e.effectiveDirective));
const tried = [];
const attempt = async (name, what) => { try { await what(); tried.push(name); } catch {} };
(async () => {
  await attempt("fetch", () => fetch("https://elsewhere.example/"));
  await attempt("socket", () => new Promise((ok, no) =>
    Object.assign(new WebSocket("wss://elsewhere.example/"), { onopen: ok, onerror: no })));
  await attempt("image", () => new Promise((ok, no) =>
    Object.assign(new Image(), { onload: ok, onerror: no, src: "https://elsewhere.example/x.png" })));
  await attempt("inline", () => {
    document.body.append(Object.assign(document.createElement("script"), { textContent: "window.ran = 1" }));
    if (!window.ran) throw new Error("blocked");
  });
  document.body.append(Object.assign(document.createElement("iframe"), { src: "https://elsewhere.example/" }));
  navigator.sendBeacon("https://elsewhere.example/", "x");
  setTimeout(() => done([tried, violations]), 2000);
})();
"""


def test_nothing_but_the_two_servers_can_be_reached(driver: Chrome, study: Study) -> None:
    visit = Visit(driver)
    visit.open(study.link)
    ready(visit)
    tried, violations = driver.execute_async_script(OUTSIDE)
    assert tried == []
    assert {"connect-src", "img-src", "script-src-elem", "frame-src"} <= set(violations)
    assert violations.count("connect-src") >= 3  # fetch, socket, beacon
