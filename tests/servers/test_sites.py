"""Sites: hospitals that send values of many people, admitted, paused, revoked and given new tokens."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dealer.cli import main as dealer
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import CampaignSealed, InvalidCampaign, Problem, SiteExists, SiteRevoked, UnknownSite
from fss_ecdf.cli.server import main
from fss_ecdf.net.tokens import hash_token
from fss_ecdf.operators import joining_sheet
from servers.storage import admission
from servers.storage.admission import Caller, NewUploads, Site, UploadContext, decide, identify_sender
from servers.storage.storage import Storage
from tests.commands import Done, call
from tests.harness.server_pair import LivePair, envelopes, name
from tests.servers.conftest import new_campaign
from tests.servers.rows import row
from tests.servers.test_uploads import code

SITE = Site("a" * 32, "Hospital A", hash_token("token a"), 3)
OTHER = Site("b" * 32, "Hospital B", hash_token("token b"), 5)


def _facts(site: Site, used: int = 0, reused: int = 0) -> UploadContext:
    campaign = new_campaign(admission="sites")
    return UploadContext(campaign, True, 0, used, 0, used, reused, site, {}, frozenset())


def _codes(site: Site, new: int, **facts: int) -> list[str]:
    rows = [row(bytes([i]) * 16, b"key") for i in range(new)]
    verdict = decide(NewUploads(b"", rows, site.id), _facts(site, **facts))
    if verdict.refusal is not None:
        return [verdict.refusal.code]
    return [problem.code for _, problem in verdict.failures]


def test_a_quota_is_not_the_noises_number_of_instances() -> None:
    assert _codes(SITE, 3) == []
    assert _codes(SITE, 4) == ["site-quota-exceeded"] * 4
    assert _codes(SITE, 1, used=3) == ["site-quota-exceeded"]
    assert _codes(SITE, 1, reused=30) == ["site-quota-exceeded"]  # withdrawn ids must be remembered: an end to it
    assert _codes(replace(SITE, state=admission.PAUSED), 1) == ["site-paused"]
    assert _codes(replace(SITE, state=admission.REVOKED), 1) == ["site-revoked"]


def test_what_is_stored_is_acknowledged_also_while_a_site_is_paused() -> None:
    facts = replace(_facts(replace(SITE, state=admission.PAUSED)), known={b"1" * 16: row(b"1" * 16)[1]})
    verdict = decide(NewUploads(b"", [row(b"1" * 16, b"key")], SITE.id), facts)
    assert (verdict.refusal, list(verdict.failures)) == (None, [])


def test_uploads_remember_the_site_and_not_its_token() -> None:
    campaign = new_campaign(admission="sites")
    assert identify_sender(campaign, None, Caller(SITE.token, site=SITE)) == SITE.id
    with pytest.raises(SiteRevoked):
        identify_sender(campaign, None, Caller(SITE.token, site=replace(SITE, state=admission.REVOKED)))
    with pytest.raises(Problem, match="not known for this campaign"):
        identify_sender(campaign, None, Caller(SITE.token))


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    storage = Storage(f"sqlite:///{tmp_path / 'db'}")
    campaign = new_campaign(admission="sites", min_uploads=1)
    storage.campaigns.add(campaign, None, [])
    yield storage, campaign
    storage.close()


def test_adding_twice_changes_nothing_and_contradictions_are_named(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    assert storage.sites.add(campaign.id, [SITE, OTHER]) == 2
    assert storage.sites.add(campaign.id, [SITE]) == 0
    with pytest.raises(SiteExists, match="another label, token or quota"):
        storage.sites.add(campaign.id, [replace(SITE, quota=9)])
    with pytest.raises(SiteExists, match="the token of another site"):
        storage.sites.add(campaign.id, [replace(SITE, id="c" * 32, label="C")])
    with pytest.raises(SiteExists, match="another site of this campaign has this token"):
        storage.sites.change(campaign.id, SITE.id, token=OTHER.token)
    with pytest.raises(UnknownSite):
        storage.sites.change(campaign.id, "f" * 32, quota=1)
    opened = new_campaign()
    storage.campaigns.add(opened, "0" * 64, [])
    with pytest.raises(InvalidCampaign, match='sites belong to admission = "sites"'):
        storage.sites.add(opened.id, [SITE])


def test_after_a_new_token_uploads_are_still_the_sites(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    storage.sites.add(campaign.id, [SITE, OTHER])
    ids = [bytes([i]) * 16 for i in range(4)]
    assert storage.uploads.add([NewUploads(campaign.id, [row(i, b"k") for i in ids[:3]], SITE.id)]) == [[]]
    assert storage.uploads.add([NewUploads(campaign.id, [row(ids[3], b"k")], OTHER.id)]) == [[]]
    storage.sites.change(campaign.id, SITE.id, token=hash_token("new"))
    assert storage.sites.by_token(campaign.id, SITE.token) is None
    found = storage.sites.by_token(campaign.id, hash_token("new"))
    assert found is not None
    assert storage.uploads.withdraw(campaign.id, ids[:1], found.id) == (1, [])
    assert storage.uploads.by_sender(campaign.id) == {SITE.id: 2, OTHER.id: 1}
    # Revoking may take all of it back; it does not come again, and others' stay.
    assert storage.uploads.withdraw_all(campaign.id, SITE.id) == 2
    assert storage.uploads.withdraw_all(campaign.id, SITE.id) == 0
    assert storage.uploads.by_sender(campaign.id) == {OTHER.id: 1}
    assert storage.campaigns.get(campaign.id).stored == 1
    again = storage.uploads.add([NewUploads(campaign.id, [row(ids[1], b"k")], SITE.id)])
    assert [problem.code for _, problem in again[0]] == ["upload-withdrawn"]  # type: ignore[union-attr]


def test_nothing_is_withdrawn_or_added_once_it_is_sealed(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    storage.sites.add(campaign.id, [SITE])
    storage.uploads.add([NewUploads(campaign.id, [row(b"1" * 16, b"k")], SITE.id)])
    storage.waves.agree(campaign.id)
    wave = storage.waves.freeze(campaign.id, closed=False)
    with pytest.raises(CampaignSealed):
        storage.uploads.withdraw_all(campaign.id, SITE.id)
    storage.waves.commit_set(campaign.id, wave.freeze_number, bytes(32), [])
    with pytest.raises(CampaignSealed):
        storage.sites.add(campaign.id, [OTHER])
    storage.campaigns.delete(campaign.id)
    assert storage.sites.all(campaign.id) == []


TOML = """
title = "Length of stay"
question = "How many days did your patients stay?"
epsilon = 1.0
min_uploads = 5
admission = "sites"
[[variables]]
name = "length of stay"
[variables.grid]
kind = "linear"
values = "integer"
from = 0
to = 100
"""


def _run(pair: LivePair, *args: str, cwd: Path, stdin: str = "") -> Done:
    return call(main, "campaign", "--operator-config", str(pair.folder / "operator.toml"), *args, cwd=cwd, stdin=stdin)


def _token(sheet: Path) -> str:
    return next(line.split("=")[1] for line in sheet.read_text().splitlines() if "FSS_UPLOAD_TOKEN=" in line)


def _send(pair: LivePair, campaign: Campaign, token: str, count: int) -> list[httpx.Response]:
    return [pair.upload(role, campaign, data, token) for role, data in enumerate(envelopes(campaign, np.arange(count)))]


def test_hospitals_from_a_list_to_a_sealed_campaign(pair: LivePair, tmp_path: Path) -> None:
    (tmp_path / "stay.toml").write_text(TOML)
    refused = _run(pair, "create", "stay.toml", "--invitations", "3", cwd=tmp_path)
    assert "sites are invited with fss-server campaign sites add" in refused.stderr
    created = _run(pair, "create", "stay.toml", cwd=tmp_path)
    assert created.returncode == 0, created.stderr
    assert "campaign sites add $FSS_CAMPAIGN_ID LABEL" in created.stdout
    cid = next(line.split()[-1] for line in created.stdout.splitlines() if line.strip().startswith("id"))
    with pair.client(0) as client:
        campaign = Campaign.from_dict(client.get(f"/v1/campaigns/{cid}").json()["campaign"])

    (tmp_path / "hospitals.csv").write_text("label,town\nSt. Mary,X\nÄrztehaus,Y\n")
    added = _run(pair, "sites", "add", cid, "--csv", "hospitals.csv", "--quota", "10", "--out", "s", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert "2 sites may send up to 10 uploads each, at both servers" in added.stdout
    again = _run(pair, "sites", "add", cid, "--csv", "hospitals.csv", "--quota", "10", "--out", "s", cwd=tmp_path)
    assert again.stdout == added.stdout
    (mary,) = (tmp_path / "s").glob("st-mary-*.md")
    (house,) = (tmp_path / "s").glob("rztehaus-*.md")
    assert mary.stat().st_mode & 0o777 == 0o600
    page = mary.read_text()
    for fact in (
        *(pair.url(role) for role in (0, 1)),
        *joining_sheet.fingerprints(pair.folder / "ca.pem"),
        "fss-dealer",
    ):
        assert fact in page
    for role in (0, 1):
        assert (tmp_path / "s" / f"ca{role}.pem").read_text() == (pair.folder / "ca.pem").read_text()

    other = _run(pair, "sites", "add", cid, "St. Mary", "--quota", "11", "--out", "s", cwd=tmp_path)
    assert "with a quota of 10; to change it: fss-server campaign sites set-quota" in other.stderr

    old = _token(mary)
    assert [r.status_code for r in _send(pair, campaign, old, 8)] == [200, 200]
    assert {code(r) for r in _send(pair, campaign, old, 3)} == {"site-quota-exceeded"}
    assert [r.status_code for r in _send(pair, campaign, _token(house), 4)] == [200, 200]
    status = _run(pair, "status", cid, cwd=tmp_path).stdout
    assert "8/8        10  St. Mary" in status
    assert "sites" not in pair.status(campaign)["peer"]  # the other server is not told

    assert _run(pair, "sites", "pause", cid, "St. Mary", cwd=tmp_path).returncode == 0
    assert {code(r) for r in _send(pair, campaign, old, 1)} == {"site-paused"}
    assert _run(pair, "sites", "resume", cid, "St. Mary", cwd=tmp_path).returncode == 0
    assert _run(pair, "sites", "set-quota", cid, "St. Mary", "12", cwd=tmp_path).returncode == 0
    rotated = _run(pair, "sites", "rotate-token", cid, "St. Mary", "--out", "s", cwd=tmp_path)
    assert "the old one opens nothing any more" in rotated.stdout
    assert {code(r) for r in _send(pair, campaign, old, 1)} == {"not-authenticated"}
    assert _token(mary) != old
    assert [r.status_code for r in _send(pair, campaign, _token(mary), 4)] == [200, 200]
    assert {code(r) for r in _send(pair, campaign, _token(mary), 1)} == {"site-quota-exceeded"}

    kept = _run(pair, "sites", "revoke", cid, "Ärztehaus", "--withdraw", cwd=tmp_path, stdin="n\n")
    assert "nothing was changed" in kept.stdout
    revoked = _run(pair, "sites", "revoke", cid, "Ärztehaus", "--withdraw", "--yes", cwd=tmp_path)
    assert "server 1: Ärztehaus is revoked, quota 10, 4 uploads erased" in revoked.stdout
    assert {code(r) for r in _send(pair, campaign, _token(house), 1)} == {"site-revoked"}
    unknown = _run(pair, "sites", "pause", cid, "Nowhere", cwd=tmp_path)
    assert "no site 'Nowhere'; there are 'St. Mary', 'Ärztehaus' [unknown-site]" in unknown.stderr
    nobody = _run(pair, "sites", "add", cid, "--quota", "1", cwd=tmp_path)
    assert "no site is named" in nobody.stderr
    twice = _run(pair, "sites", "add", cid, "A", "A", "--quota", "1", cwd=tmp_path)
    assert "'A' is named twice" in twice.stderr
    assert "sealed 12 uploads" in _run(pair, "seal", cid, cwd=tmp_path).stdout
    assert "fss-server campaign delete" in _run(pair, "status", cid, cwd=tmp_path).stdout
    with closing(sqlite3.connect(pair.folder / "server0" / "data" / "server.db")) as db:
        assert old not in str(db.execute("SELECT * FROM sites").fetchall())
    assert name(campaign) == cid


def test_a_site_with_a_new_token_takes_back_what_it_sent_with_the_old_one(pair: LivePair, tmp_path: Path) -> None:
    """Ids and keys of a receipt follow from the token it was made with."""
    campaign, ca = new_campaign(admission="sites", min_uploads=1), str(pair.folder / "ca.pem")
    pair.create(campaign)
    site = {"id": "c" * 32, "label": "C", "token": hash_token("old token"), "quota": 10}
    for role in (0, 1):
        with pair.operator(role) as client:
            assert client.post(f"/v1/campaigns/{name(campaign)}/sites", json={"sites": [site]}).json() == {"added": 1}
    addresses = [f"{pair.url(role)}/v1/campaigns/{name(campaign)}" for role in (0, 1)]
    (tmp_path / "old").write_text("old token\n")
    (tmp_path / "new").write_text("new token\n")

    def dealer_says(command: str, token: str, *more: str) -> Done:
        about = ["--campaign", *addresses, "--ca", ca, "--token-file", str(tmp_path / token)]
        env = {"FSS_CAMPAIGN_DIGEST": to_base64url(campaign.digest)}
        return call(dealer, command, *about, "--receipt", str(tmp_path / "receipt"), *more, env=env)

    assert dealer_says("upload", "old", "--value", "0.5", "--yes").returncode == 0
    for role in (0, 1):
        with pair.operator(role) as client:
            change = {"token": hash_token("new token")}
            assert client.patch(f"/v1/campaigns/{name(campaign)}/sites/{'c' * 32}", json=change).status_code == 200
    stuck = dealer_says("withdraw", "new")
    assert "--previous-token-file, where you were given a new one" in stuck.stderr
    back = dealer_says("withdraw", "new", "--previous-token-file", str(tmp_path / "old"))
    assert "both servers have withdrawn what was sent: 1 values" in back.stdout, back.stderr
    assert pair.status(campaign)["sites"][0]["uploads"] == 0
