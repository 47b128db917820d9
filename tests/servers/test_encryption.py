"""Only the server that an upload is for can read it: attackers on the path, played to their end.

The front ends of these tests end TLS for both servers with certificates that parties trust, record everything and pass
it on: whoever holds one server's CA and sits on the network path, or a load balancer in front of both.
"""

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dealer
from fss import dcf, field
from fss_ecdf.campaign.binary_messages import UPLOAD_HEADER_BYTES, decode_uploads, upload_bytes
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import DigestMismatch, Problem
from fss_ecdf.campaign.hpke import ENCAPSULATED_BYTES
from fss_ecdf.campaign.sealed_uploads import open_upload, seal_upload, token_digest
from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import Identity
from tests.chaos.liar import Liar, Reply, Request
from tests.harness.server_pair import IDENTITIES, SALT, LivePair, commitments, envelopes, name, sealed_envelopes
from tests.servers.conftest import new_campaign

HEADER = UPLOAD_HEADER_BYTES


class FrontEnd(Liar):
    """Ends TLS for one server, and writes everything down. `rewrite` may change what parties are told."""

    def __init__(self, pair: LivePair, role: int) -> None:
        super().__init__(pair, role)
        self.seen = list[tuple[Request, Reply]]()
        self.rewrite: dict[bytes, bytes] = {}

    def answer(self, request: Request) -> Reply:
        status, content = super().answer(request)
        self.seen.append((request, (status, content)))
        for old, new in self.rewrite.items():
            content = content.replace(old, new)
        return status, content

    def uploads(self) -> list[bytes]:
        return [request[3] for request, _ in self.seen if request[1].endswith("/uploads")]


@pytest.fixture
def fronts(pair: LivePair) -> Iterator[list[FrontEnd]]:
    with FrontEnd(pair, 0) as first, FrontEnd(pair, 1) as second:
        yield [first, second]


def party(pair: LivePair, campaign: Campaign, fronts: list[FrontEnd]) -> dealer.ServerPair:
    urls = [f"{front.url}/v1/campaigns/{name(campaign)}" for front in fronts]
    token, ca = pair.upload_tokens[campaign.id], pair.folder / "ca.pem"
    return dealer.ServerPair(urls, token, ca, digest=campaign.digest, attempts=1)


def key_of(campaign: Campaign, role: int) -> HpkeKey:
    return Identity(IDENTITIES[role], role).hpke_key(campaign.id, campaign.kem, SALT)


def values_from(campaign: Campaign, both: list[bytes]) -> list[int]:
    """What whoever has both envelopes computes: the first threshold at which the shares add up to one."""
    read = [decode_uploads(data, campaign, server) for server, data in enumerate(both)]
    points, found = np.arange(1 << campaign.bits), []
    for i in range(len(read[0].ids)):
        shares = [dcf.sum_at_points(uploads.keys[i : i + 1], points) for uploads in read]
        total = field.add(*shares)
        found.append(int(np.argmax(total == 1)))
    return found


def guesses(campaign: Campaign, body: bytes, token: str, known: list[HpkeKey]) -> Iterator[bytes]:
    """Envelopes that an attacker may take for the one inside a recorded body."""
    header, size = body[:HEADER], upload_bytes(campaign, int.from_bytes(body[44:48], "little"))
    for skip in (HEADER, HEADER + ENCAPSULATED_BYTES[campaign.kem], len(body) - size + HEADER):
        yield header + body[skip:][: size - HEADER]
    swapped = header[:5] + bytes([1 - header[5]]) + header[6:]
    for key, head in itertools.product(known, (header, swapped)):
        with suppress(Problem):
            yield open_upload(head + body[HEADER:], campaign, head[5], token_digest(token), key.open)


def test_whoever_ends_tls_for_both_servers_learns_nothing(
    pair: LivePair, fronts: list[FrontEnd], tmp_path: Path
) -> None:
    """Not even if it is one of the two servers, with its own keys: it reads its own half, and never the other one."""
    campaign, values = new_campaign(check_keys=True), [0, 7, 33, 100]
    pair.create(campaign)
    placed = campaign.to_positions([v / 100 for v in values])
    with party(pair, campaign, fronts) as sites:
        dealer.upload(placed, sites.fetch_campaign(), sites, receipt=tmp_path / "receipt.json")
    recorded = [front.uploads() for front in fronts]
    assert [len(bodies) for bodies in recorded] == [1, 1]
    token = pair.upload_tokens[campaign.id]  # whoever ends TLS has it
    sender = token_digest(token)
    plain = [open_upload(recorded[r][0], campaign, r, sender, key_of(campaign, r).open) for r in (0, 1)]
    assert values_from(campaign, plain) == placed.positions.tolist() == values  # the attack, against plain envelopes

    for corrupt in (0, 1):  # a server that is on the path, with the key of its own
        honest = 1 - corrupt
        known = [key_of(campaign, corrupt), HpkeKey("x25519", bytes(32))]
        assert plain[corrupt] in list(guesses(campaign, recorded[corrupt][0], token, known))
        for guess in guesses(campaign, recorded[honest][0], token, known):
            with pytest.raises(Problem):
                values_from(campaign, [guess, plain[corrupt]] if honest == 0 else [plain[corrupt], guess])

    traffic = b"".join(
        json.dumps(request[:3]).encode() + request[3] + reply[1] for front in fronts for request, reply in front.seen
    )
    for envelope in plain:  # no sixteen bytes of any id, key, proof or hash passed in plain view
        for at in range(HEADER, len(envelope) - 16, 8):
            piece = envelope[at : at + 16]
            assert piece == bytes(16) or piece not in traffic
    assert pair.status(campaign, 0)["uploads"] == pair.status(campaign, 1)["uploads"] == len(values)


def test_an_attacker_who_puts_its_own_keys_into_the_campaign_gets_nothing(
    pair: LivePair, fronts: list[FrontEnd], tmp_path: Path
) -> None:
    """Both front ends describe the same campaign, with keys that they can open; its digest is another one."""
    campaign = new_campaign()
    pair.create(campaign)
    assert campaign.server_commitments is not None
    mine = to_base64url(HpkeKey("x25519", bytes(32)).public_bytes).encode()
    fields = campaign.model_dump(mode="json", by_alias=True)
    forged = Campaign.from_dict(
        {**fields, "server_commitments": [{**p, "hpke_key": mine.decode()} for p in fields["server_commitments"]]}
    )
    for front in fronts:
        front.rewrite = {to_base64url(commitment.hpke_key).encode(): mine for commitment in campaign.server_commitments}
        front.rewrite[to_base64url(campaign.digest).encode()] = to_base64url(forged.digest).encode()
    with party(pair, campaign, fronts) as sites:
        with pytest.raises(DigestMismatch, match="nothing was sent"):
            sites.fetch_campaign()
        with pytest.raises(DigestMismatch, match="nothing was sent"):
            dealer.upload(forged.to_positions([0.5]), forged, sites, receipt=tmp_path / "receipt.json")
    assert [front.uploads() for front in fronts] == [[], []]


def test_a_recorded_upload_is_good_for_its_own_server_campaign_and_wave(pair: LivePair) -> None:
    """Replayed elsewhere, with the header that would be right there."""
    about = {"waves": {"every": "manual", "count": 3, "pooled": []}}
    campaign, other = new_campaign(**about), new_campaign(**about)
    for one in (campaign, other):
        pair.create(one)
    token = pair.upload_tokens[campaign.id]
    sealed = sealed_envelopes(campaign, np.arange(3), token)

    def send(role: int, to: Campaign, data: bytes) -> str:
        answer = pair.upload_sealed(role, to, data)
        return "stored" if answer.json().get("failures") == [] else str(answer.json()["type"]).rpartition(":")[2]

    first = sealed[0]
    plain = open_upload(first, campaign, 0, token_digest(token), key_of(campaign, 0).open)
    assert send(1, campaign, first) == "invalid-upload"  # its header names the other server
    assert send(1, campaign, first[:5] + b"\1" + first[6:]) == "unreadable-upload"
    assert send(0, other, first) == "digest-mismatch"
    assert send(0, other, first[:8] + other.digest + first[40:]) == "unreadable-upload"
    assert send(0, campaign, first[:40] + b"\2" + first[41:]) == "unreadable-upload"  # for the next wave
    assert send(0, campaign, first[:6] + b"\1" + first[7:]) == "invalid-upload"  # of another kind
    assert send(0, campaign, first[:-1] + bytes([first[-1] ^ 1])) == "unreadable-upload"
    assert send(0, campaign, plain) == "invalid-upload"
    assert [pair.status(c, r)["uploads"] for c in (campaign, other) for r in (0, 1)] == [0, 0, 0, 0]
    assert [send(role, campaign, sealed[role]) for role in (0, 1)] == ["stored", "stored"]
    assert send(0, campaign, first) == "stored"  # a replay in its own place is a retry
    assert pair.status(campaign, 0)["uploads"] == 3


def test_a_retry_is_known_by_what_it_decrypts_to(pair: LivePair) -> None:
    campaign = new_campaign()
    pair.create(campaign)
    plain, another = envelopes(campaign, np.arange(3))[0], envelopes(campaign, np.arange(3))[0]
    bodies = [seal_upload(campaign, 0, plain, pair.upload_tokens[campaign.id]) for _ in range(3)]
    assert len(set(bodies)) == 3
    for body in bodies:
        assert pair.upload_sealed(0, campaign, body).json()["failures"] == []
    assert pair.status(campaign, 0)["uploads"] == 3
    row = (len(plain) - HEADER) // 3
    mixed = another[:HEADER] + plain[HEADER : HEADER + 16] + another[HEADER + 16 :]
    failed = pair.upload(0, campaign, mixed).json()["failures"]
    assert [failure["code"] for failure in failed] == ["upload-conflict"]
    assert pair.status(campaign, 0)["uploads"] == 5
    assert len(plain) == HEADER + 3 * row


def test_bodies_of_many_parts_are_stored(pair: LivePair) -> None:
    """Of two parts, opened outside the event loop."""
    campaign = new_campaign(check_keys=True)
    pair.create(campaign)
    data = sealed_envelopes(campaign, np.arange(4000) % 50, pair.upload_tokens[campaign.id])[0]
    assert len(data) > 1 << 20
    assert pair.upload_sealed(0, campaign, data).json()["failures"] == []
    spliced = data[: HEADER + 100] + data[HEADER + 101 :] + b"\0"
    assert pair.upload_sealed(0, campaign, spliced).json()["type"].endswith("unreadable-upload")
    assert pair.status(campaign, 0)["uploads"] == 4000


def test_a_campaign_with_the_hybrid_kem(pair: LivePair, tmp_path: Path) -> None:
    """From the upload to the published curve; parties need one kilobyte more."""
    id = new_campaign().id
    campaign = new_campaign(
        id=id, kem="mlkem768x25519", server_commitments=commitments(id, "mlkem768x25519"), min_uploads=1
    )
    pair.create(campaign)
    urls = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    about: dict[str, Any] = {"digest": campaign.digest, "attempts": 1}
    with dealer.ServerPair(urls, pair.upload_tokens[campaign.id], pair.folder / "ca.pem", **about) as sites:
        sent = dealer.upload(
            campaign.to_positions([0.1, 0.5]), sites.fetch_campaign(), sites, receipt=tmp_path / "receipt.json"
        )
    assert sent.sent == 2
    pair.seal(campaign)
    pair.wait_ready(campaign)
    assert pair.ask(0, campaign, "curve")["n"] == 2
