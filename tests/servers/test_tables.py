"""Tables of sites, at two live servers: counted in people, exact with keys, and rejected where they are none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dealer.cli import main as dealer
from fss import table
from fss.field import P
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.tables import real_positions, table_shape, to_histogram
from servers.release.noise import NoiseTree
from tests.commands import Done, call
from tests.fss.table_attacks import beaver_forgery, of
from tests.fss.table_attacks import forgeries as table_forgeries
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.sites_tables import (
    Counts,
    SiteToken,
    add_sites,
    honest,
    send_table,
    shared,
    some_positions,
    stored,
    table_campaign,
)
from tests.servers.test_uploads import code


def exact_counts(pair: LivePair, campaign: Campaign) -> Counts:
    """The released number at each real position or below, without both servers' noise."""
    parts = [
        np.array(pair.ask(0, campaign, "curve", stratum=stratum)["counts"], np.int64) for stratum in campaign.strata
    ]
    noise = np.zeros(1 << campaign.bits, np.int64)
    for role in (0, 1):
        seed, covered = pair.noise_secrets(role, campaign)
        noise += NoiseTree(seed, server=role, covers=covered, mechanism=campaign.noise).curve()
    out = []
    for number, counts in enumerate(parts):
        start = campaign.position(number, 0)
        before = noise[start - 1] if start else 0
        out.append(counts - noise[start : start + counts.size] + before)
    return np.concatenate(out)


def true_counts(campaign: Campaign, positions: Counts) -> Counts:
    """How many of each stratum are at or below each threshold."""
    cells = to_histogram(campaign, positions).reshape(len(campaign.strata), -1)
    return np.cumsum(cells, axis=1).ravel()


def sealed(pair: LivePair, campaign: Campaign) -> list[dict[str, Any]]:
    pair.seal(campaign)
    both = pair.wait_checked(campaign)
    pair.wait_ready(campaign)
    return both


@pytest.mark.parametrize("scheme", ["dcf", "dpf"])
def test_tables_and_keys_are_exact_together_and_counted_in_people(pair: LivePair, scheme: str) -> None:
    campaign = table_campaign(scheme=scheme, min_uploads=1000)
    pair.create(campaign)
    sites = add_sites(pair, campaign, [500, 900, 50])
    sent = [some_positions(campaign, count, seed) for seed, count in enumerate((500, 480, 400))]
    stored(pair, honest(campaign, sent[0]), sites[0].token)
    stored(pair, honest(campaign, sent[1]), sites[1].token)
    stored(pair, honest(campaign, sent[2]), sites[1].token)
    keys = some_positions(campaign, 40, 9)
    for role, data in enumerate(envelopes(campaign, keys)):
        assert pair.upload(role, campaign, data, sites[2].token).json()["failures"] == []
    status = pair.status(campaign)
    assert status["uploads"] == 1420
    assert {site["label"]: site["uploads"] for site in status["sites"]} == {
        "Hospital 0": 500,
        "Hospital 1": 880,
        "Hospital 2": 40,
    }
    # A site's quota is of people, and so is the campaign's minimum.
    for answer in send_table(pair, honest(campaign, some_positions(campaign, 21)), sites[1].token):
        assert code(answer) == "site-quota-exceeded"
    for both in sealed(pair, campaign):
        assert (both["state"], both["sealed_uploads"], both["rejected"]) == ("sealed", 1420, 0)
    whole = np.concatenate([*sent, keys])
    assert np.array_equal(exact_counts(pair, campaign), true_counts(campaign, whole))
    assert pair.ask(0, campaign, "curve", stratum="no")["n"] == 1420


def test_fewer_people_than_the_minimum_are_not_sealed(pair: LivePair) -> None:
    campaign = table_campaign(min_uploads=101)
    pair.create(campaign)
    (site,) = add_sites(pair, campaign, [1000])
    stored(pair, honest(campaign, some_positions(campaign, 100)), site.token)
    assert code(pair.agree(campaign, 1)) == "agreement-pending"
    assert code(pair.agree(campaign, 0)) == "too-few-uploads"
    stored(pair, honest(campaign, some_positions(campaign, 30)), site.token)
    assert sealed(pair, campaign)[0]["sealed_uploads"] == 130


def rejected(status: dict[str, Any]) -> dict[str, int]:
    """Of each site, people of its tables that were rejected, as its operator sees it."""
    return {site["id"]: site["rejected"] for site in status["sites"] if site["rejected"]}


def forgeries(campaign: Campaign, people: int) -> dict[str, list[int]]:
    """Words that a check without one detail would accept, and others that are no table."""
    shape = table_shape(campaign, people)
    oracle = of(shape.positions, people)
    counts = [0] * shape.positions
    counts[3] = people
    good = oracle.witness(counts, 5, 7)
    labels, degree = shape.labels, shape.degree
    negative = [people + 1, -1, *[0] * (shape.positions - 2)]
    zero_q = [*negative, *[0] * (labels - len(negative)), 7, *[0] * (2 * degree + 2)]
    light = oracle.witness([people - 1 if k == 3 else 0 for k in range(shape.positions)], 5, 7)
    other_w = list(good)
    other_w[-1] = (other_w[-1] + 1) % P
    fraction = list(good)
    fraction[3] = (people * pow(2, -1, P)) % P
    fraction[4] = fraction[3]
    return {"Q = 0": zero_q, "a person less": light, "W is not v Q": other_w, "halves": fraction}


def test_forged_tables_are_rejected_with_their_site_and_all_others_stay_exact(pair: LivePair) -> None:
    campaign, people = table_campaign(), 100
    pair.create(campaign)
    positions = some_positions(campaign, 200)
    attacks = forgeries(campaign, people)
    sites = add_sites(pair, campaign, [500] * (1 + len(attacks)))
    stored(pair, honest(campaign, positions), sites[0].token)
    for words, site in zip(attacks.values(), sites[1:], strict=True):
        stored(pair, shared(campaign, words, people), site.token)
    for role, status in enumerate(sealed(pair, campaign)):
        bad = people * len(attacks)
        assert (status["state"], status["sealed_uploads"], status["rejected"], status["excluded_stored"]) == (
            "sealed",
            200,
            bad,
            bad,
        )
        assert rejected(status) == {site.id: people for site in sites[1:]}
        assert "rejected" not in str(status["peer"].get("sites"))  # the other server is told nothing of sites
        events = [event for event in pair.events(role) if event.get("event") == "table-rejected"]
        assert {event["site"] for event in events} >= {site.id for site in sites[1:]}
    assert np.array_equal(exact_counts(pair, campaign), true_counts(campaign, positions))
    with pair.operator(0) as client:
        assert client.post(f"/v1/campaigns/{name(campaign)}/discard-excluded").json() == {"erased": bad}
    assert rejected(pair.status(campaign)) == {}


def test_what_fell_while_the_check_was_designed_is_rejected_by_live_servers(pair: LivePair) -> None:
    """Each forgery passes a check without one detail; all are at two positions."""
    campaign = table_campaign(
        grid={"kind": "linear", "values": "integer", "from": 0, "to": 1, "step": 1}, strata=["all"]
    )
    pair.create(campaign)
    made = [one for one in table_forgeries() if one.shape == table.shape_for(2, one.shape.count)]
    assert len(made) >= 4
    site, *others = add_sites(pair, campaign, [500] * (2 + len(made)))
    positions = some_positions(campaign, 40)
    stored(pair, honest(campaign, positions), site.token)
    for forgery, other in zip(made, others, strict=False):
        stored(pair, shared(campaign, forgery.words, forgery.shape.count), other.token)
    stored(pair, shared(campaign, beaver_forgery(), 2), others[-1].token)
    bad = 2 + sum(one.shape.count for one in made)
    for status in sealed(pair, campaign):
        assert (status["sealed_uploads"], status["rejected"]) == (40, bad)
        assert rejected(status).keys() == {other.id for other in others}
    assert np.array_equal(exact_counts(pair, campaign), true_counts(campaign, positions))


def test_what_differs_between_the_servers_is_unmatched(pair: LivePair) -> None:
    """Other words, another number of people, a key at one server: never in a set, and never checked."""
    campaign = table_campaign()
    pair.create(campaign)
    (site,) = add_sites(pair, campaign, [5000])
    positions = some_positions(campaign, 150)
    stored(pair, honest(campaign, positions), site.token)
    one, more = (honest(campaign, some_positions(campaign, 120, seed)) for seed in (1, 2))
    other = honest(campaign, some_positions(campaign, 120, 3), upload_id=one.upload_id)
    longer = honest(campaign, some_positions(campaign, 130, 4), upload_id=more.upload_id)
    for first, second in ((one, other), (more, longer)):
        for role, made in enumerate((first, second)):
            assert pair.upload(role, campaign, made.envelope(role), site.token).json()["failures"] == []
    key = envelopes(campaign, np.arange(1))
    lone = honest(campaign, some_positions(campaign, 5, 5), upload_id=key[0][64:80])
    assert pair.upload(0, campaign, key[0], site.token).json()["failures"] == []
    assert pair.upload(1, campaign, lone.envelope(1), site.token).json()["failures"] == []
    answer = pair.seal(campaign)
    assert answer["count"] == 150
    assert answer["unmatched"] == {"here": 241, "there": 255}
    pair.wait_ready(campaign)
    assert np.array_equal(exact_counts(pair, campaign), true_counts(campaign, positions))


def test_what_a_server_refuses_before_it_reads_a_table(pair: LivePair) -> None:
    campaign = table_campaign(max_uploads=2000)
    pair.create(campaign)
    (site,) = add_sites(pair, campaign, [1000])
    made = honest(campaign, some_positions(campaign, 200))
    words = 0 if len(made.shares[0]) > table.SEED_BYTES else 1
    envelope = bytearray(made.envelope(words))

    def answer(at: int, data: bytes, role: int = words) -> str:
        changed = bytes(envelope[:at]) + data + bytes(envelope[at + len(data) :])
        return code(pair.upload_sealed(role, campaign, changed, site.token))

    for people in (0, 1, 1999, 2001, 1 << 40):
        assert answer(48, people.to_bytes(8, "little")) == "invalid-upload"
    assert answer(44, (2).to_bytes(4, "little")) == "invalid-upload"
    assert answer(56, (64).to_bytes(4, "little")) == "invalid-upload"
    assert answer(40, (1).to_bytes(4, "little")) == "invalid-upload"
    spoiled = replace(made, shares=_spoiled(made.shares, words))
    assert code(pair.upload(words, campaign, spoiled.envelope(words), site.token)) == "invalid-upload"
    other_half = replace(made, upload_id=bytes([made.upload_id[0] ^ 1]) + made.upload_id[1:])
    swapped = bytes(envelope[:64]) + other_half.upload_id + bytes(envelope[80:])
    assert code(pair.upload(words, campaign, swapped, site.token)) == "invalid-upload"
    plain = table_campaign(tables=False)
    pair.create(plain)
    (other,) = add_sites(pair, plain, [1000])
    assert code(pair.upload_sealed(0, plain, _for(plain, envelope), other.token)) == "invalid-upload"
    assert pair.status(campaign)["uploads"] == 0


def _spoiled(shares: tuple[bytes, bytes], role: int) -> tuple[bytes, bytes]:
    data = bytearray(shares[role])
    data[-8:] = P.to_bytes(8, "little")
    return (bytes(data), shares[1]) if role == 0 else (shares[0], bytes(data))


def _for(campaign: Campaign, envelope: bytearray) -> bytes:
    return bytes(envelope[:5]) + b"\0" + bytes(envelope[6:8]) + campaign.digest + bytes(envelope[40:])


def _dealer(pair: LivePair, campaign: Campaign, site: SiteToken, folder: Path, *args: str) -> Done:
    addresses = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    (folder / "token").write_text(site.token)
    about = ["--campaign", *addresses, "--ca", str(pair.folder / "ca.pem"), "--token-file", str(folder / "token")]
    env = {"FSS_CAMPAIGN_DIGEST": to_base64url(campaign.digest)}
    return call(dealer, args[0], *about, "--receipt", str(folder / "receipt"), *args[1:], env=env)


def test_a_site_uploads_replaces_and_withdraws_its_table(pair: LivePair, tmp_path: Path) -> None:
    campaign = table_campaign()
    pair.create(campaign)
    big, small = add_sites(pair, campaign, [1000, 1000])
    rows = [f"{k % 41},{campaign.strata[k % 3]}" for k in range(300)]
    for file, some in (("big", rows), ("more", [*rows, "7,yes"]), ("small", rows[:1])):
        (tmp_path / f"{file}.csv").write_text("\n".join(["value,stratum", *some]) + "\n")

    def upload(site: SiteToken, file: str, *more: str) -> Done:
        folder = tmp_path / site.id
        folder.mkdir(exist_ok=True)
        columns = ("--column", "value", "--stratum-column", "stratum")
        return _dealer(pair, campaign, site, folder, "upload", "--file", str(tmp_path / f"{file}.csv"), *columns, *more)

    shown = upload(big, "big", "--dry-run")
    assert "to send   one table of their counts: " in shown.stdout, shown.stderr
    assert "300 keys would be" in shown.stdout
    assert "as keys: for 1 values they are smaller" in upload(small, "small", "--dry-run").stdout
    done = upload(big, "big", "--yes")
    assert "both servers have stored 300 values in one table" in done.stdout, done.stderr
    again = upload(big, "big", "--yes")
    assert "300 were there from before" in again.stdout, again.stderr
    assert upload(small, "small", "--yes").returncode == 0
    assert pair.status(campaign)["uploads"] == 301
    assert "other values than these were sent" in upload(big, "more", "--yes").stderr
    replaced = upload(big, "more", "--replace", "--yes")
    assert "both servers have stored 301 values in one table" in replaced.stdout, replaced.stderr
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [302, 302]
    back = _dealer(pair, campaign, big, tmp_path / big.id, "withdraw")
    assert "withdrawn what was sent: 301 values" in back.stdout, back.stderr
    assert [pair.status(campaign, role)["uploads"] for role in (0, 1)] == [1, 1]
    assert upload(big, "big", "--yes").returncode == 0
    assert [both["sealed_uploads"] for both in sealed(pair, campaign)] == [301, 301]
    at = [int(row.split(",")[0]) for row in [*rows, rows[0]]]
    names = [row.split(",")[1] for row in [*rows, rows[0]]]
    positions = campaign.to_positions(at, names).positions
    assert np.array_equal(exact_counts(pair, campaign), true_counts(campaign, positions))


def test_positions_of_a_table_are_those_that_values_can_have() -> None:
    campaign = table_campaign()
    positions = real_positions(campaign)
    assert positions.size == 3 * 41
    assert positions.max() == campaign.position(2, 40)
    counts = to_histogram(campaign, positions[[0, 50, 50, 122]])
    assert counts.sum() == 4
    assert [int(counts[k]) for k in (0, 50, 122)] == [1, 2, 1]
