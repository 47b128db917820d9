"""Whoever ends TLS for both servers and confirms what neither of them did: nobody counts twice by it."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dealer
from fss_ecdf.campaign.campaign import Positions, to_base64url
from fss_ecdf.campaign.confirmations import confirmation, is_confirmed
from fss_ecdf.campaign.errors import DigestNeeded, NotAuthenticated, PeerUnavailable, Problem
from fss_ecdf.net.server_identity import Identity
from fss_ecdf.net.tokens import new_token
from tests.chaos.liar import Liar
from tests.harness.server_pair import IDENTITIES, LivePair, name
from tests.servers.conftest import new_campaign

Fronts = tuple[Liar, Liar]


@pytest.fixture
def fronts(pair: LivePair) -> Iterator[Fronts]:
    with Liar(pair, 0, signs=False) as first, Liar(pair, 1, signs=False) as second:
        yield first, second


def says(fronts: Fronts, *lies: str) -> None:
    for front in fronts:
        left = list(lies)
        front.choose = lambda left=left: left.pop(0) if left else "honest"  # type: ignore[misc]


@pytest.mark.parametrize("word", ["closed", "withdrawn", "conflict"])
def test_a_front_end_of_both_servers_makes_nobody_count_twice(
    pair: LivePair, fronts: Fronts, tmp_path: Path, word: str
) -> None:
    """It passes the upload on, calls it late, and confirms for both that it does not count."""
    campaign, path = new_campaign(min_uploads=1), tmp_path / "r.json"
    pair.create(campaign)
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    about = urls, pair.upload_tokens[campaign.id], pair.folder / "ca.pem"
    placed = Positions(np.array([3]), 0, 0)
    with dealer.ServerPair(*about, digest=campaign.digest, attempts=1) as at:
        says(fronts, word, *["forget"] * 10)
        with pytest.raises(PeerUnavailable, match="without the signature that confirms it"):
            dealer.upload(placed, campaign, at, receipt=path)
        assert json.loads(path.read_text())["parts"]["0"][0] == 0  # no other ids, no other keys
        stored = [pair.status(campaign, role)["uploads"] for role in (0, 1)]
        assert stored == ([0, 0] if word == "conflict" else [1, 1])
        says(fronts)
        assert dealer.upload(placed, campaign, at, receipt=path).sent == 1
        assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [1, 1]
        says(fronts, *["forget"] * 10)
        with pytest.raises(PeerUnavailable, match="without the signature"):
            dealer.withdraw(at, receipt=path)
        says(fronts)
        assert dealer.withdraw(at, receipt=path) == 1
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [0, 0]
    with dealer.ServerPair(*about) as at, pytest.raises(DigestNeeded):
        dealer.withdraw(at, receipt=path)


@pytest.mark.parametrize("values", [[3], [4]])
def test_a_front_end_that_calls_a_token_unknown_makes_nobody_count_twice(
    pair: LivePair, fronts: Fronts, tmp_path: Path, values: list[int]
) -> None:
    """It passes the upload on and says for both that the token is not known; the party is given another invitation."""
    campaign, path = new_campaign(min_uploads=1, admission="invited", max_values_per_person=2), tmp_path / "r.json"
    first, second = new_token("invite"), new_token("invite")
    pair.create(campaign, [first, second])
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    about: dict[str, Any] = {"ca": pair.folder / "ca.pem", "digest": campaign.digest, "attempts": 1}
    with dealer.ServerPair(urls, first, **about) as at:
        says(fronts, "unknown", "away")
        with pytest.raises(NotAuthenticated):
            dealer.upload(Positions(np.array([3, 3]), 0, 0), campaign, at, receipt=path)
    says(fronts)
    with dealer.ServerPair(urls, second, **about) as at, suppress(Problem):
        dealer.upload(Positions(np.array(values), 0, 0), campaign, at, receipt=path)
    stored = [pair.status(campaign, role)["uploads"] for role in (0, 1)]
    assert max(stored) <= 2, "a person of two values counts three times"
    with dealer.ServerPair(urls, first, **about) as at:  # the token was good, and goes on
        assert dealer.upload(Positions(np.array(values), 0, 0), campaign, at, receipt=path).sent == len(values)
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [len(values)] * 2


@pytest.mark.parametrize("count", [1, 3])
def test_what_a_front_end_kept_is_withdrawn_before_others_are_sent(
    pair: LivePair, fronts: Fronts, tmp_path: Path, count: int
) -> None:
    """The same with one token: the party corrects its values, and what was stored of the first ones does not count."""
    campaign, path = new_campaign(min_uploads=1), tmp_path / "r.json"
    pair.create(campaign)
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    about = urls, pair.upload_tokens[campaign.id], pair.folder / "ca.pem"
    with dealer.ServerPair(*about, digest=campaign.digest, attempts=1) as at:
        says(fronts, "unknown", "away")
        with pytest.raises(NotAuthenticated):
            dealer.upload(Positions(np.array([3, 4]), 0, 0), campaign, at, receipt=path)
        says(fronts)
        assert dealer.upload(Positions(np.full(count, 5), 0, 0), campaign, at, receipt=path).sent == count
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [count, count]


def test_a_confirmation_is_of_one_server_one_campaign_and_these_ids() -> None:
    campaign, other, ids = new_campaign(), new_campaign(), bytes(range(32))
    signer = Identity(IDENTITIES[1], 1)

    def signed(message: bytes) -> str:
        return to_base64url(signer.sign(message))

    good = signed(confirmation(campaign.digest, 1, ids))
    assert is_confirmed(campaign, 1, ids, good)
    wrong = [confirmation(campaign.digest, 0, ids), confirmation(other.digest, 1, ids), campaign.digest + ids]
    wrong += [confirmation(campaign.digest, 1, ids[:16]), b""]
    for given in [*map(signed, wrong), good[:-4] + "AAAA", good[:-1], "", None, 7, [good]]:
        assert not is_confirmed(campaign, 1, ids, given)
    assert not is_confirmed(campaign, 0, ids, good)
    assert not is_confirmed(other, 1, ids, good)
    assert not is_confirmed(campaign, 1, ids[::-1], good)
