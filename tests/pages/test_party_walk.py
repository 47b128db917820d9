"""Every transition of the party's page, made by clicks, keys, invitations and real servers, in three engines."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.engines import ENGINES, missing
from tests.harness.server_pair import LivePair
from tests.pages.chromium import skip_or_fail
from tests.pages.study import Study
from tests.pages.walking import Walk, transitions

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=ENGINES)
def walk(request: pytest.FixtureRequest, pair: LivePair) -> Iterator[Walk]:
    """One for all tests of an engine: the last of them looks at all transitions that were made."""
    if lacking := missing(request.param):
        skip_or_fail(lacking)
    with ENGINES[request.param](pair) as tab:
        yield Walk(tab)


@pytest.fixture
def study(pair: LivePair, tmp_path: Path) -> Study:
    return Study(pair, tmp_path)


def test_sending_noticing_and_withdrawing(walk: Walk, study: Study) -> None:
    """Somebody sends a value, notices that it is wrong, withdraws it and sends another."""
    walk.open(study.link)
    walk.at("study")
    walk.click("begin")
    walk.click("back")
    walk.at("study")
    walk.click("begin")
    walk.click("review-button")
    assert "Enter a value" in walk.text("#value-error")
    walk.enter("0,4")
    walk.at("review")
    walk.click("send")
    assert "Tick the box" in walk.text("#agree-error")
    walk.click("edit")
    walk.enter("0.41")
    assert "0.41 %" in walk.text("#you-send")
    walk.send()
    walk.at("done")
    assert study.stored() == [1, 1]
    walk.click("withdraw")
    walk.click("no")
    walk.at("done")
    walk.click("withdraw")
    walk.click("yes")
    walk.wait(lambda: "erased 1 value" in walk.text("#done-text"), "it is erased")
    assert study.stored() == [0, 0]
    walk.click("again")
    walk.enter("0.5")
    walk.send()
    walk.at("done")
    assert study.stored() == [1, 1]


def test_somebody_else_and_earlier_contributions(walk: Walk, study: Study) -> None:
    """Everybody has the same token here: each person has a receipt, and none is lost."""
    walk.open(study.link)
    walk.at("study")
    walk.enter("0.1")
    walk.send()
    walk.at("done")
    walk.click("another")
    walk.at("study")
    walk.open(study.link)  # and a reload does not tell the second person of the first
    walk.at("study")
    walk.enter("0.9")
    walk.send()
    walk.at("done")
    assert study.stored() == [2, 2]
    walk.click("another")
    walk.at("study")
    walk.click("recall-0")
    walk.at("done")
    walk.click("withdraw")
    walk.click("yes")
    walk.wait(lambda: "erased 1 value" in walk.text("#done-text"), "the first is erased")
    assert study.stored() == [1, 1]
    walk.open(study.link)
    walk.at("study")
    walk.click("recall-1")
    walk.at("done")
    walk.click("forget")
    walk.at("study")
    assert study.stored() == [1, 1]


def test_invitations_in_an_open_tab(walk: Walk, pair: LivePair, tmp_path: Path) -> None:
    """Each person has an invitation: the tab takes the newest, and shows what belongs to it."""
    tokens = [f"fss-up-{'abcdefgh'[i] * 40}" for i in range(6)]
    study = Study(pair, tmp_path, admission="invited", invitations=tokens)
    page = study.file.as_uri()
    walk.open(page)
    walk.at("study")
    walk.invite(tokens[0])
    walk.at("study")
    walk.enter("0.2")
    walk.at("review")
    walk.invite(tokens[1])
    walk.at("study")
    walk.click("begin")
    walk.invite(tokens[0])
    walk.at("study")
    walk.enter("0.2")
    walk.send()
    walk.at("done")
    walk.invite(tokens[1])  # the second person is not told of the first
    walk.at("study")
    walk.enter("0.3")
    walk.send()
    walk.at("done")
    walk.click("another")
    walk.at("study")
    assert "Both servers have stored" not in walk.text("body")
    walk.enter("0.7")
    walk.at("review")
    walk.type("token", tokens[0])
    walk.click("agree")
    walk.click("send")
    walk.at("done")  # with this invitation a value was sent already
    assert study.stored() == [2, 2]
    walk.click("another")
    walk.at("study")
    walk.unfold("before")
    walk.type("token", tokens[1])
    walk.click("recall")
    walk.at("done")
    walk.open(f"{page}#token=fss-up-wrong")
    walk.at("study")
    walk.enter("0.7")
    walk.send()
    walk.at("failed")
    walk.type("token", tokens[0])
    walk.click("resume")
    walk.at("done")
    assert study.stored() == [2, 2]


def test_refused_tokens_and_another_try(walk: Walk, study: Study) -> None:
    walk.open(f"{study.file.as_uri()}#token=fss-up-wrong")
    walk.at("study")
    walk.enter("0.6")
    walk.send()
    walk.at("failed")
    assert "do not know your token" in walk.text("#problem")
    assert "withdrawn before anything is sent with another token" in walk.text("#problem")
    walk.click("edit")
    walk.enter("0.61")
    walk.at("review")
    walk.type("token", "fss-up-wrong")
    walk.click("agree")
    walk.click("send")
    walk.at("failed")
    walk.type("token", study.token)
    walk.click("resume")
    walk.at("done")
    assert study.stored() == [1, 1]


def test_an_earlier_upload_of_the_same_device(walk: Walk, pair: LivePair, tmp_path: Path) -> None:
    """Begun with one invitation, of which the servers say nothing; then come others."""
    tokens = [f"fss-up-{'rstu'[i] * 40}" for i in range(4)]
    study = Study(pair, tmp_path, admission="invited", invitations=tokens[1:])
    walk.open(f"{study.file.as_uri()}#token={tokens[0]}")  # which is not known
    walk.at("study")
    walk.enter("0.2")
    walk.send()
    walk.at("failed")
    for token, answer in ((tokens[1], ""), (tokens[2], "others"), (tokens[3], "mine")):
        walk.invite(token)
        walk.at("study")
        walk.enter("0.3")
        walk.send()
        walk.at("earlier")
        if answer:
            walk.click(answer)
            walk.at("done")
    assert study.stored() == [2, 2]


# The batch of a thousand arrives before that of a hundred, for which there is no room.
IN_TURN = """
const real = window.fetch;
window.fetch = async (url, how) => {
  if (url.endsWith("/uploads")) await new Promise((go) => setTimeout(go, how.body.length < 150000 ? 2500 : 0));
  return real.call(window, url, how);
};
"""


def test_a_part_is_stored_and_the_rest_refused(walk: Walk, pair: LivePair, tmp_path: Path) -> None:
    """What is on the screen is true, and the next step is there: also after a reload."""
    study = Study(pair, tmp_path, max_uploads=1050)
    walk.open(study.link)
    walk.at("study")
    walk.give(study.csv(1100))
    walk.tab.run(IN_TURN)
    walk.send()
    walk.at("failed")
    assert "1,000 of 1,100 values are stored at both servers" in walk.text("#problem")
    walk.click("withdraw")
    walk.click("no")
    walk.at("failed")
    walk.open(study.link)  # resumes by itself
    walk.at("failed")
    assert study.stored() == [1000, 1000]
    walk.click("resume")
    walk.at("failed")
    walk.click("withdraw")
    walk.click("yes")
    walk.at("done")
    assert study.stored() == [0, 0]


LATER = datetime.now(UTC) + timedelta(hours=1)
OFFLINE = """
window.real ??= [window.fetch, window.setTimeout];
const lost = arguments[0], offline = () => Promise.reject(new TypeError("offline"));
window.fetch = (url, how) => (url.endsWith(lost) ? offline() : real[0].call(window, url, how));
window.setTimeout = (what, time) => real[1].call(window, what, Math.min(time, 20));
"""
ONLINE = "[window.fetch, window.setTimeout] = window.real"


def test_a_campaign_that_closes(walk: Walk, pair: LivePair, tmp_path: Path) -> None:
    """By this device's clock; the servers' may differ, so what was begun can still be finished or withdrawn."""
    study = Study(pair, tmp_path, max_uploads=1050, closes=LATER.strftime("%Y-%m-%dT%H:%M:%SZ"))
    walk.open(study.link)
    walk.at("study")
    walk.give(study.csv(1100))
    walk.tab.run(IN_TURN)
    walk.send()
    walk.at("failed")
    walk.tab.run("window.Date.now = () => 4e12")
    walk.invite("fss-up-somebody-else")
    walk.at("closed")
    assert "It closed on" in walk.text("#screen")
    assert "Nothing was sent" in walk.text("#screen")
    walk.invite(study.token)
    walk.wait(lambda: "not finished" in walk.text("#screen"), "it is not finished")
    walk.click("withdraw")
    walk.click("no")
    walk.at("closed")
    walk.click("retry")
    walk.wait(lambda: "not finished" in walk.text("#screen"), "it is not finished")
    walk.click("resume")
    walk.at("failed")
    assert "as many values as it takes" in walk.text("#problem")


def test_a_campaign_that_is_sealed(walk: Walk, pair: LivePair, study: Study) -> None:
    walk.open(study.link)
    walk.at("study")
    walk.enter("0.3")
    walk.send()
    walk.at("done")
    walk.click("withdraw")
    pair.seal(study.campaign)
    walk.open(study.link)
    walk.wait(lambda: "can no longer be withdrawn" in walk.text("#screen"), "the page has learnt it")
    assert not walk.has("withdraw")


def test_a_withdrawal_that_comes_too_late(walk: Walk, pair: LivePair, study: Study) -> None:
    walk.open(study.link)
    walk.at("study")
    walk.enter("0.3")
    walk.send()
    walk.at("done")
    walk.click("withdraw")
    pair.seal(study.campaign)
    walk.click("yes")
    walk.at("failed")
    assert "nothing can be added or withdrawn any more" in walk.text("#problem")
    walk.click("retry")
    walk.at("closed")
    assert "nothing can be added or withdrawn" in walk.text("#screen")
    assert "Nothing was sent" not in walk.text("#screen")


def test_a_device_that_goes_offline(walk: Walk, study: Study) -> None:
    walk.open(study.link)
    walk.at("study")
    walk.tab.run(OFFLINE, "")
    walk.invite("fss-up-somebody-else")
    walk.at("failed")
    assert "cannot be reached" in walk.text("#problem")
    walk.click("retry")
    walk.at("failed")
    walk.tab.run(ONLINE)
    walk.invite(study.token)
    walk.at("study")
    walk.enter("0.3")
    walk.send()
    walk.at("done")
    walk.tab.run(OFFLINE, "/uploads/withdraw")
    walk.click("withdraw")
    walk.click("yes")
    walk.at("failed")
    walk.open(study.link)
    walk.at("failed")
    assert "A withdrawal is not finished" in walk.text("#problem")
    walk.click("withdraw")
    walk.click("yes")
    walk.at("done")
    assert study.stored() == [0, 0]


def test_a_storage_that_fails_when_the_token_is_typed(walk: Walk, study: Study) -> None:
    walk.open(study.file.as_uri())
    walk.tab.run("sessionStorage.clear()")
    walk.open(study.file.as_uri())
    walk.at("study")
    walk.enter("0.3")
    walk.at("review")
    walk.tab.run("IDBObjectStore.prototype.getAllKeys = () => { throw new DOMException('', 'UnknownError'); }")
    walk.type("token", study.token)
    walk.click("agree")
    walk.click("send")
    walk.at("failed")
    assert "Nothing was sent" in walk.text("#problem")
    assert study.stored() == [0, 0]


def test_all_transitions_were_made(walk: Walk) -> None:
    walk.gather()
    assert walk.moves <= transitions()
    assert sorted(transitions() - walk.moves) == []
