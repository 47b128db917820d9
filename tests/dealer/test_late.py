"""A party that sends while a wave closes: it counts once, in one wave, whatever one server says about being late."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dealer
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import CampaignSealed, PeerUnavailable, Problem, UploadUndecided
from tests.chaos.liar import Liar, Reply, Request
from tests.dealer.helpers import DAYS, sites
from tests.dealer.test_receipt import place, says
from tests.harness.server_pair import LivePair
from tests.servers.waves import close, wave_campaign


def made(pair: LivePair, **changes: Any) -> Campaign:
    campaign = wave_campaign(count=4, pooled=[], grid=DAYS, **{"min_uploads": 1, **changes})
    pair.create(campaign)
    return campaign


def counted(pair: LivePair, campaign: Campaign) -> list[int]:
    """How many uploads each wave has, which both servers say."""
    both = [[wave["uploads"] for wave in pair.status(campaign, role)["waves"]] for role in (0, 1)]
    assert both[0] == both[1]
    return both[0]


def states(receipt: Path) -> list[tuple[int, str, int]]:
    return [tuple(part[:3]) for _, part in sorted(json.loads(receipt.read_text())["parts"].items())]


Hook = Callable[[int, str], Awaitable[None]]


def before_each_call(at: dealer.ServerPair, hook: Hook) -> None:
    """Something happens before a server is asked, or a problem comes instead of its answer."""
    call = at.call

    async def hooked(server: int, method: str, path: str = "", **more: Any) -> bytes:
        await hook(server, path)
        return await call(server, method, path, **more)

    at.call = hooked  # type: ignore[method-assign]


def close_before(pair: LivePair, campaign: Campaign, at: dealer.ServerPair, late: int) -> None:
    """Wave 1 closes when one server has what is sent, before the other one gets it."""
    waiting = [1]

    async def hook(server: int, path: str) -> None:
        if path == "/uploads" and server == late and waiting:
            async with asyncio.timeout(60):
                while not pair.status(campaign, 1 - late)["uploads"]:
                    await asyncio.sleep(0.05)
            waiting.pop()
            close(pair, campaign, 1)

    before_each_call(at, hook)


def test_a_wave_that_closed_since_the_campaign_was_read(pair: LivePair, tmp_path: Path) -> None:
    campaign, path = made(pair), tmp_path / "r.json"
    at = sites(pair, campaign)
    assert at.fetch_campaign() == campaign
    assert at.wave == 1
    close(pair, campaign, 1)
    assert dealer.upload(place(campaign, 5, 6), campaign, at, receipt=path).sent == 2
    assert states(path) == [(1, "done", 2)]  # new ids and keys, for the wave that is open now
    assert counted(pair, campaign) == [0, 2]
    assert dealer.upload(place(campaign, 5, 6), campaign, at, receipt=path).sent == 0


@pytest.mark.parametrize("late", [0, 1])
def test_a_wave_that_closes_while_only_one_server_has_it(pair: LivePair, tmp_path: Path, late: int) -> None:
    """The one that has it excludes it; the party is told at once by the other, and counts in the next wave, once."""
    campaign, path = made(pair), tmp_path / "r.json"
    at = sites(pair, campaign)  # which wave is open is asked with the upload
    close_before(pair, campaign, at, late)
    assert dealer.upload(place(campaign, 5, 6, 7), campaign, at, receipt=path).sent == 3
    assert states(path) == [(1, "done", 2)]
    assert counted(pair, campaign) == [0, 3]
    assert close(pair, campaign, 2)["count"] == 3


def test_until_it_is_decided_the_receipt_says_pending(pair: LivePair, tmp_path: Path) -> None:
    campaign, path = made(pair), tmp_path / "r.json"
    at = sites(pair, campaign)
    at.fetch_campaign()

    undecided = True

    async def hook(server: int, path: str) -> None:
        if path == "/uploads/withdraw" and server == 0 and undecided:
            raise UploadUndecided("uploads are frozen")

    close_before(pair, campaign, at, 1)
    before_each_call(at, hook)
    with pytest.raises(UploadUndecided, match="receipt says pending"):
        dealer.upload(place(campaign, 5), campaign, at, receipt=path)
    assert states(path) == [(0, "pending", 1)]
    with pytest.raises(UploadUndecided, match="receipt says pending"):  # again: nothing is sent before that is decided
        dealer.upload(place(campaign, 5), campaign, at, receipt=path)
    assert counted(pair, campaign) == [0, 0]
    undecided = False
    at.fetch_campaign()
    assert dealer.upload(place(campaign, 5), campaign, at, receipt=path).sent == 1
    assert states(path) == [(1, "done", 2)]
    assert counted(pair, campaign) == [0, 1]


@pytest.fixture
def liar(pair: LivePair) -> Iterator[Liar]:
    with Liar(pair, 1) as started:
        yield started


def test_a_server_that_calls_what_it_has_late_makes_nobody_count_twice(
    pair: LivePair, liar: Liar, tmp_path: Path
) -> None:
    """It has stored the upload, says that the wave has closed, and closes it with the upload in it."""
    campaign, path = made(pair), tmp_path / "r.json"
    at = sites(pair, campaign, liar=liar)
    at.fetch_campaign()
    says(liar, "closed", "forget")  # and that it is withdrawn, which is a lie, too

    async def hook(server: int, path: str) -> None:
        """Before the honest server is asked to withdraw it, the wave is closed with it."""
        if path == "/uploads/withdraw" and server == 0 and len(counted(pair, campaign)) == 1:
            close(pair, campaign, 1)

    before_each_call(at, hook)
    with pytest.raises(CampaignSealed, match="receipt says pending"):
        dealer.upload(place(campaign, 5), campaign, at, receipt=path)
    assert states(path) == [(0, "pending", 1)]
    says(liar)
    for _ in range(2):
        with pytest.raises(Problem):
            dealer.upload(place(campaign, 5), campaign, at, receipt=path)
    assert counted(pair, campaign) == [1, 0]


@pytest.mark.parametrize("claimed", [-1, 5, 1 << 32, 10**30, "2", True, 1.5, None])
def test_a_server_that_claims_a_wave_that_the_campaign_does_not_have(
    pair: LivePair, liar: Liar, monkeypatch: pytest.MonkeyPatch, claimed: object
) -> None:
    """A clear problem before anything is made or sent."""
    campaign, answer = made(pair), liar.answer

    def claims(request: Request) -> Reply:
        status, content = answer(request)
        return status, json.dumps({**json.loads(content), "wave": claimed}).encode()

    monkeypatch.setattr(liar, "answer", claims)
    with pytest.raises(PeerUnavailable, match="server 1 did not send a campaign"):
        sites(pair, campaign, liar=liar).fetch_campaign()
