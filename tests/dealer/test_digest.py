"""Nothing is sent to another campaign than the one whose digest a party was given, whoever answers for the servers."""

import shutil
from pathlib import Path

import pytest

import dealer
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import DigestMismatch, DigestNeeded, InvalidInput, InvalidValue
from fss_ecdf.cli.common import BAD_DATA, OK, REFUSED
from fss_ecdf.net import https
from fss_ecdf.operators.setup import _Authority
from tests.dealer.helpers import make, run, stored, urls
from tests.harness.server_pair import LivePair


def test_another_digest_than_the_party_s_stops_everything(pair: LivePair, tmp_path: Path) -> None:
    """Both servers agree on a campaign; it is not the one on the invitation."""
    campaign, other = make(pair), make(pair)
    token, ca, receipt = pair.upload_tokens[campaign.id], pair.folder / "ca.pem", tmp_path / "receipt.json"
    with dealer.ServerPair(urls(pair, campaign), token, ca, digest=other.digest) as sites:
        with pytest.raises(DigestMismatch, match="nothing was sent") as caught:
            sites.fetch_campaign()
        with pytest.raises(DigestMismatch):
            dealer.upload(campaign.to_positions([1]), campaign, sites, receipt=receipt)
    for digest in (campaign.digest, other.digest):
        assert to_base64url(digest) in caught.value.detail
    done = run(pair, campaign, "--value", "1", "--yes", FSS_CAMPAIGN_DIGEST=to_base64url(other.digest))
    assert (done.returncode, "[digest-mismatch]" in done.stderr) == (REFUSED, True)
    dry = run(pair, campaign, "--value", "1", "--dry-run", FSS_CAMPAIGN_DIGEST=to_base64url(other.digest))
    assert dry.returncode == REFUSED
    assert (stored(pair, campaign), receipt.exists()) == ([0, 0], False)


def test_without_a_digest_nothing_is_sent(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    token, ca, receipt = pair.upload_tokens[campaign.id], pair.folder / "ca.pem", tmp_path / "receipt.json"
    with dealer.ServerPair(urls(pair, campaign), token, ca) as sites:
        found = sites.fetch_campaign()
        with pytest.raises(DigestNeeded, match="on your invitation"):
            dealer.upload(found.to_positions([1]), found, sites, receipt=receipt)
    done = run(pair, campaign, "--value", "1", "--yes", FSS_CAMPAIGN_DIGEST="")
    assert (done.returncode, "[digest-needed]" in done.stderr) == (REFUSED, True)
    dry = run(pair, campaign, "--value", "1", "--dry-run", FSS_CAMPAIGN_DIGEST="")
    assert dry.returncode == OK
    assert f"{to_base64url(campaign.digest)}   # the same as on your invitation?" in dry.stdout
    assert (stored(pair, campaign), receipt.exists()) == ([0, 0], False)
    sent = run(
        pair, campaign, "--value", "1", "--yes", "--receipt", str(receipt), "--digest", to_base64url(campaign.digest)
    )
    assert sent.returncode == OK, sent.stderr
    assert f"{to_base64url(campaign.digest)}   # as you gave it" in sent.stdout
    assert stored(pair, campaign) == [1, 1]


@pytest.mark.parametrize("digest", ["", "x", "A" * 42, "A" * 44, "é" * 43, b"x"])
def test_what_is_no_digest_is_refused(pair: LivePair, digest: str | bytes) -> None:
    with pytest.raises(InvalidValue, match="32 bytes in unpadded base64url, as on the invitation"):
        dealer.ServerPair(["https://a/v1/campaigns/x", "https://b/v1/campaigns/x"], "token", digest=digest)


def test_an_authority_is_trusted_for_its_own_server_only(pair: LivePair, tmp_path: Path) -> None:
    """One that server 1 trusts, say, does not speak for server 0."""
    campaign, good, other = make(pair), str(pair.folder / "ca.pem"), str(tmp_path / "other.pem")
    Path(other).write_bytes(_Authority().certificate_pem)
    token = pair.upload_tokens[campaign.id]
    for pairs, wrong in (((other, good), 0), ((good, other), 1)):
        refused = pytest.raises(InvalidInput, match=f"server {wrong} shows a certificate that is not trusted here")
        with dealer.ServerPair(urls(pair, campaign), token, pairs, digest=campaign.digest) as sites, refused:
            sites.fetch_campaign()
        options = ["--value", "1", "--dry-run", "--ca", *pairs]
        assert f"server {wrong} shows a certificate" in run(pair, campaign, *options).stderr
    with dealer.ServerPair(urls(pair, campaign), token, [good, good], digest=campaign.digest) as sites:
        assert sites.fetch_campaign() == campaign


def test_one_authority_for_both_or_one_for_each() -> None:
    assert https.one_each(None) == (None, None)
    assert https.one_each("a") == ("a", "a")
    assert https.one_each(["a"]) == ("a", "a")
    assert https.one_each(["a", None]) == ("a", None)
    for wrong in ([], ["a", "b", "c"]):
        with pytest.raises(InvalidInput, match="one for each"):
            https.one_each(wrong)


def test_an_unreadable_authority_of_either_server_is_one_line(pair: LivePair, tmp_path: Path) -> None:
    campaign = make(pair)
    shutil.copy(pair.folder / "ca.pem", tmp_path / "ca0.pem")
    done = run(pair, campaign, "--value", "1", "--yes", "--ca", str(tmp_path / "ca0.pem"), str(tmp_path / "ca1.pem"))
    assert (done.returncode, "ca1.pem: there is no such file" in done.stderr) == (BAD_DATA, True)
