"""Audits of campaigns with tables: an honest server is called honest, and one that works with a site is named."""

from pathlib import Path

import pytest

from fss import table
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.tables import table_shape
from fss_ecdf.net.server_identity import Identity
from servers.audit.verdict import HONEST
from servers.release.statement import covered_messages, split
from tests.harness.server_pair import IDENTITIES, LivePair, envelopes, name
from tests.servers import audits
from tests.servers.sites_tables import add_sites, honest, shared, some_positions, stored, table_campaign


@pytest.fixture(scope="module")
def study(pair: LivePair) -> Campaign:
    """Two tables, keys, and a table that fails; published by both servers."""
    campaign = table_campaign()
    pair.create(campaign)
    sites = add_sites(pair, campaign, [1000] * 3)
    for seed, site in enumerate(sites[:2]):
        for _ in range(2):  # an id decides who gets the words
            stored(pair, honest(campaign, some_positions(campaign, 150, seed)), site.token)
    shape = table_shape(campaign, 100)
    stored(pair, shared(campaign, [1] * shape.words, 100), sites[2].token)
    for role, data in enumerate(envelopes(campaign, some_positions(campaign, 20, 7))):
        assert pair.upload(role, campaign, data, sites[2].token).json()["failures"] == []
    pair.seal(campaign)
    assert [both["sealed_uploads"] for both in pair.wait_checked(campaign)] == [620, 620]
    pair.wait_ready(campaign)
    for role in (0, 1):
        pair.ask(role, campaign, "curve", stratum="no")
    return campaign


@pytest.mark.parametrize("audited", [0, 1])
def test_an_honest_server_is_called_honest(pair: LivePair, study: Campaign, tmp_path: Path, audited: int) -> None:
    findings = audits.found(audits.handed_over(pair, study, tmp_path, audited), study)
    assert {finding.verdict for finding in findings} == {HONEST}, findings
    about = {finding.what: finding.numbers for finding in findings}
    assert about["check messages about tables"] == 4 * 5
    assert about["uploads that passed"] == 25
    assert any("shares at all positions" in what for what in about)


def test_words_that_were_made_when_the_point_was_known_are_named(
    pair: LivePair, study: Campaign, tmp_path: Path
) -> None:
    """A site gives a hash to the honest server, and its friend, the other one, words that fit the point."""
    for audited in (0, 1):
        keys, evidence = audits.handed_over(pair, study, tmp_path / str(audited), audited)
        path = keys / "wave-0" / "tables"
        data = bytearray(path.read_bytes())
        data[64] ^= 1  # the first byte of the first table's share
        path.write_bytes(data)
        assert audits.wrong(audits.found((keys, evidence), study)) == {"uploads handed over": audited}


def test_a_message_about_other_words_is_named(pair: LivePair, study: Campaign, tmp_path: Path) -> None:
    keys, evidence = audits.handed_over(pair, study, tmp_path, 1)
    folder = next((evidence / "wave-0").glob("check-*"))
    (path,) = (p for p in folder.glob("*.question") if p.read_bytes().startswith(b"/table-messages"))
    question, answer = path.read_bytes(), path.with_suffix(".answer").read_bytes()
    messages = bytearray(split(answer)[0])
    assert len(messages) == 5 * table.MESSAGE_BYTES
    changed = (int.from_bytes(messages[:8], "little") + 1) % (2**61 - 1)
    messages[:8] = changed.to_bytes(8, "little")
    signature = Identity(IDENTITIES[1], 1).sign(covered_messages(1, question, bytes(messages)))
    path.with_suffix(".answer").write_bytes(bytes(messages) + signature)
    assert audits.wrong(audits.found((keys, evidence), study)) == {"check messages about tables": 1}


@pytest.mark.parametrize("change", ["none listed", "one left out", "a key listed", "other people"])
def test_a_list_of_tables_that_is_wrong_is_named(pair: LivePair, study: Campaign, tmp_path: Path, change: str) -> None:
    """A server that forged a message about a table would leave the table out of its list, or blame the other one."""
    keys, evidence = audits.handed_over(pair, study, tmp_path, 1)
    path = next((keys / "wave-0").glob("check-*/tables"))
    data, entries = path.read_bytes(), path.with_name("entries").read_bytes()
    ids = {data[i : i + 16] for i in range(0, len(data), 24)}
    size = len(entries) // 25
    key = next(entries[i : i + 16] for i in range(0, len(entries), size) if entries[i : i + 16] not in ids)
    changed = {
        "none listed": b"",
        "one left out": data[24:],
        "a key listed": data + key + (30).to_bytes(8, "little"),
        "other people": data[:16] + (149).to_bytes(8, "little") + data[24:],
    }[change]
    path.write_bytes(changed) if changed else path.unlink()
    assert set(audits.wrong(audits.found((keys, evidence), study)).values()) == {1}


def test_discarded_tables_are_said_to_be_erased(pair: LivePair, study: Campaign, tmp_path: Path) -> None:
    with pair.operator(0) as client:
        assert client.post(f"/v1/campaigns/{name(study)}/discard-excluded").json() == {"erased": 100}
    findings = audits.found(audits.handed_over(pair, study, tmp_path, 0), study)
    assert not audits.wrong(findings)
    assert any("1 rejected uploads were erased" in finding.detail for finding in findings), findings
