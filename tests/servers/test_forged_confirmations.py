"""Whoever ends TLS for both servers and confirms what neither of them did: nobody counts twice by it."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dealer
from dealer.key_pairs import make_keys
from dealer.receipt import open_receipt
from dealer.upload_client import BATCH
from fss_ecdf.campaign import confirmations
from fss_ecdf.campaign.campaign import Positions, to_base64url
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


def says(fronts: Sequence[Liar], *lies: str) -> None:
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


def test_a_front_end_cannot_say_that_it_stored_what_it_dropped(pair: LivePair, fronts: Fronts, tmp_path: Path) -> None:
    """It answers an upload as a server would, for one server or both; the party is not told that it is stored."""
    campaign, path = new_campaign(min_uploads=1), tmp_path / "r.json"
    pair.create(campaign)
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    about = urls, pair.upload_tokens[campaign.id], pair.folder / "ca.pem"
    placed = Positions(np.array([3, 5]), 0, 0)
    with dealer.ServerPair(*about, digest=campaign.digest, attempts=1) as at:
        for liars in (fronts, fronts[:1], fronts[1:]):
            says(fronts)
            says(liars, "forget", "away")
            with pytest.raises(PeerUnavailable, match="without the signature that confirms it"):
                dealer.upload(placed, campaign, at, receipt=path)
            assert json.loads(path.read_text())["parts"]["0"][1] == "withdrawing"
        says(fronts)
        assert dealer.upload(placed, campaign, at, receipt=path).sent == 2
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [2, 2]


def test_the_receipt_keeps_what_both_servers_signed(pair: LivePair, tmp_path: Path) -> None:
    """Of every batch; with the values it proves that a server had stored it. A replay says so once more."""
    campaign, path = new_campaign(min_uploads=1), tmp_path / "r.json"
    pair.create(campaign)
    urls = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    token = pair.upload_tokens[campaign.id]
    positions = np.arange(BATCH + 1) % 10
    with dealer.ServerPair(urls, token, pair.folder / "ca.pem", digest=campaign.digest) as at:
        dealer.upload(Positions(positions, 0, 0), campaign, at, receipt=path)
    with open_receipt(path, name(campaign), token, os.urandom) as kept:
        for number, part in kept.parts.items():
            made = kept.source.make_keys(number, part.attempt, positions[kept.within(number)], campaign, 0)
            for server, signature in enumerate(part.signatures):
                message = confirmations.stored(campaign.digest, server, 0, made.leaves())
                assert confirmations.is_confirmed(campaign, server, message, signature)
                assert pair.upload(server, campaign, made.envelope(server)).json()["signature"] == signature
        assert sorted(kept.parts) == [0, 1]


def test_what_is_refused_is_not_signed(pair: LivePair) -> None:
    """Not even together with what is stored: a signature is of the whole request."""
    campaign = new_campaign(min_uploads=1)
    pair.create(campaign)
    first, second = (make_keys([0.1, 0.2], campaign) for _ in range(2))
    assert pair.upload(0, campaign, first.envelope(0, slice(0, 1))).json()["failures"] == []
    ids = np.concatenate([first.ids[:1], second.ids[1:]])  # other keys under an id that is stored
    answer = pair.upload(0, campaign, replace(second, ids=ids).envelope(0)).json()
    assert [one["code"] for one in answer["failures"]] == ["upload-conflict"]
    assert "signature" not in answer


def test_a_confirmation_is_of_one_server_one_campaign_and_these_ids() -> None:
    campaign, other, ids = new_campaign(), new_campaign(), bytes(range(32))
    signer = Identity(IDENTITIES[1], 1)

    def signed(message: bytes) -> str:
        return to_base64url(signer.sign(message))

    makers = confirmations.withdrawn, (lambda digest, server, leaves: confirmations.stored(digest, server, 3, leaves))
    for maker, another in (makers, makers[::-1]):
        message = maker(campaign.digest, 1, ids)
        good = signed(message)
        assert confirmations.is_confirmed(campaign, 1, message, good)
        wrong = [maker(campaign.digest, 0, ids), maker(other.digest, 1, ids), maker(campaign.digest, 1, ids[:16])]
        wrong += [another(campaign.digest, 1, ids), campaign.digest + ids, b""]
        for given in [*map(signed, wrong), good[:-4] + "AAAA", good[:-1], "", None, 7, [good]]:
            assert not confirmations.is_confirmed(campaign, 1, message, given)
        assert not confirmations.is_confirmed(campaign, 0, message, good)  # by another server's key
    assert confirmations.stored(campaign.digest, 1, 3, ids) != confirmations.stored(campaign.digest, 1, 4, ids)
