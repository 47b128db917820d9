"""Three verdicts: an honest server passes, a wrong number is named with its server, and nothing is nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fss import field
from fss_ecdf.campaign.binary_messages import ShareMessage, encode_shares
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidPeerResponse
from fss_ecdf.campaign.json_messages import ShareQuery
from fss_ecdf.cli.common import BAD_DATA, USAGE
from fss_ecdf.net.server_identity import Identity
from servers.audit.verdict import EXIT_STATUS, HONEST, NOTHING, WRONG, overall
from servers.release.noise import set_secret
from servers.release.statement import Signed, Statement, covered, require_signed, split
from tests.campaign.helpers import group_sums
from tests.harness.server_pair import IDENTITIES, LivePair, name
from tests.servers.audits import (
    Folders,
    answer_of,
    change_upload,
    copied,
    detail,
    digest_of,
    drop_upload,
    found,
    handed_over,
    status,
    wrong,
)
from tests.servers.conftest import new_campaign, values
from tests.servers.test_attacks import pair_share
from tests.servers.test_bad_peers import _reply, impostor
from tests.servers.test_check import POSITIONS, forged, send

SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


@pytest.fixture(scope="module")
def asked(pair: LivePair) -> Campaign:
    """A checked campaign of which everything has been asked: the curve and sums."""
    campaign = new_campaign(check_keys=True, strata=["no", "yes"], reserve=1.0, grid=SCORES)
    pair.create(campaign)
    x = values(200)
    pair.upload_values(campaign, campaign.to_positions(x, ["yes" if v > 0.3 else "no" for v in x]).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    pair.ask(0, campaign, "curve", stratum="no")
    pair.ask(1, campaign, "curve", stratum="no")
    with pair.analyst(0) as client:
        query = group_sums(campaign, [0.2, 0.5, 1.0], 0.5)
        assert client.post(f"/v1/campaigns/{name(campaign)}/sums", json=query).status_code == 200
    return campaign


@pytest.fixture(scope="module")
def originals(pair: LivePair, asked: Campaign, tmp_path_factory: pytest.TempPathFactory) -> list[Folders]:
    folder = tmp_path_factory.mktemp("audit")
    return [handed_over(pair, asked, folder, audited) for audited in (0, 1)]


@pytest.fixture
def folders(originals: list[Folders], tmp_path: Path) -> Folders:
    """Of server 1."""
    return copied(originals[1], tmp_path)


@pytest.mark.parametrize("audited", [0, 1])
def test_an_honest_pair_passes(
    originals: list[Folders], asked: Campaign, audited: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(originals[audited], digest_of(asked)) == EXIT_STATUS[HONEST] == 0
    printed = capsys.readouterr().out
    for what in ("challenge", "check messages", "uploads that passed", "shares at all positions"):
        assert what.ljust(41) + "honest\n" in printed
    for server in (0, 1):
        assert f"published curve of server {server}".ljust(41) + "honest\n" in printed
    assert ("shares of 12 sums".ljust(41) + "honest\n" in printed) == (audited == 1)
    assert "\nhonest: " in printed
    files = [path for path in originals[audited][0].rglob("*") if path.is_file()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def change(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def other_noise(keys: Path) -> None:
    (keys / "release-curve" / "noise.secret").write_text("00" * 32)


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("uploads handed over", lambda keys, campaign: drop_upload(keys / "wave-0" / "uploads", campaign, 7)),
        ("uploads handed over", lambda keys, campaign: change_upload(keys / "wave-0" / "uploads", campaign, 7)),
        ("uploads handed over", lambda keys, campaign: change_upload(keys / "wave-0" / "uploads", campaign, 7, 0)),
        ("noise", lambda keys, _: other_noise(keys)),
        ("statement", lambda keys, _: change(keys / "release-curve" / "statement", -5)),
    ],
)
def test_what_is_handed_over_must_be_what_was_signed_for(
    folders: Folders, asked: Campaign, what: str, how: Callable[[Path, Campaign], None]
) -> None:
    how(folders[0], asked)
    assert wrong(found(folders, asked)) == {what: 1}
    assert status(folders, digest_of(asked)) == EXIT_STATUS[WRONG] == 3


def test_evidence_cannot_be_made_up(folders: Folders, asked: Campaign) -> None:
    """Played by the accuser: it changes an answer that it kept, the statement, or what it published itself."""
    evidence = folders[1]
    answer = answer_of(evidence, "curve")
    change(answer, 100)
    findings = found(folders, asked)
    assert wrong(findings) == {"shares at all positions": 0, "published curve of server 0": 0}
    assert "not signed by server 1" in detail(findings, "shares at all positions")
    change(answer, 100)
    path = evidence / "release-curve" / "release.npy"
    release = np.load(path)
    np.save(path, release + 1)
    assert wrong(found(folders, asked)) == {"published curve of server 0": 0}
    np.save(path, release)
    assert overall(found(folders, asked)) == HONEST
    data = (evidence / "release-curve" / "statement").read_bytes()
    (evidence / "release-curve" / "statement").write_bytes(data.replace(b'"count":200', b'"count":201'))
    assert wrong(found(folders, asked)) == {"statement": 0}


def test_another_campaign_cannot_be_slipped_in(folders: Folders, asked: Campaign) -> None:
    """Played by the accuser: it puts its own signing key in the other's place and signs a lie for it."""
    fields = asked.model_dump(mode="json", by_alias=True)
    fields["server_commitments"][1]["signing_key"] = fields["server_commitments"][0]["signing_key"]
    other = Campaign.from_dict(fields)
    for folder in folders:
        (folder / "campaign.json").write_bytes(other.canonical)
        (finding,) = found(folders, asked)
        assert (finding.what, finding.verdict) == ("campaign", NOTHING)
        assert status(folders, digest_of(asked)) == EXIT_STATUS[NOTHING] == 4


def test_folders_of_the_same_server_are_nothing_to_compare(originals: list[Folders], asked: Campaign) -> None:
    keys, evidence = originals[0][0], originals[1][1]
    findings = found((keys, evidence), asked)
    assert overall(findings) == NOTHING
    assert "both of server 0" in findings[-1].detail


def test_nonsense_is_a_finding_not_a_traceback(folders: Folders, asked: Campaign) -> None:
    keys, evidence = folders
    answer = answer_of(evidence, "curve")
    (check,) = (keys / "wave-0").glob("check-*")
    for path, data in (
        (answer, b""),
        (answer.with_suffix(".question"), b"\xff\xfe"),
        (evidence / "release-curve" / "release.npy", b"x"),
        (evidence / "release-curve" / "statement", b"{}"),
        (keys / "release-curve" / "noise.secret", b"zz"),
        (keys / "wave-0" / "uploads", b"x"),
        (keys / "about.json", b"[]"),
        (keys / "about.json", (keys / "about.json").read_bytes().replace(b'"number":0', b'"number":3')),
        (check / "entries", b"y" * 17),
        (check / "seeds", b"zz"),
    ):
        old = path.read_bytes()
        path.write_bytes(data)
        assert status(folders, digest_of(asked)) in (BAD_DATA, EXIT_STATUS[WRONG]), path
        path.write_bytes(old)
    (keys / "wave-0" / "uploads").unlink()
    assert status(folders, digest_of(asked)) == USAGE  # a file is missing


@pytest.mark.parametrize("audited", [0, 1])
def test_nobody_asked_so_there_is_nothing_to_compare(
    pair: LivePair, tmp_path: Path, audited: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An honest server is not called a liar for it."""
    campaign = new_campaign()
    pair.create(campaign)
    pair.upload_values(campaign, campaign.to_positions(values(20)).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    folders = handed_over(pair, campaign, tmp_path, audited)
    assert status(folders, digest_of(campaign)) == EXIT_STATUS[NOTHING]
    assert f"server {audited} has signed and published no number" in capsys.readouterr().out


def test_rejected_uploads_that_are_erased_are_nothing_to_compare(pair: LivePair, tmp_path: Path) -> None:
    """All else about the check is still compared, who passed included."""
    campaign = new_campaign(check_keys=True, grid=POSITIONS)
    pair.create(campaign)
    pair.upload_values(campaign, np.arange(20))
    send(pair, campaign, forged(campaign, "another payload"))
    pair.seal(campaign)
    pair.wait_ready(campaign)
    pair.ask(0, campaign, "curve")
    assert overall(found(handed_over(pair, campaign, tmp_path / "before"), campaign)) == HONEST
    with pair.operator(1) as client:
        assert client.post(f"/v1/campaigns/{name(campaign)}/discard-excluded").json() == {"erased": 30}
    findings = found(handed_over(pair, campaign, tmp_path / "after"), campaign)
    assert [f.what for f in findings if f.verdict != HONEST] == ["messages about erased uploads"]
    assert overall(findings) == NOTHING
    assert {f.what: f.numbers for f in findings}["check messages"] == 3 * 20


def test_a_signature_covers_question_statement_and_answer(pair: LivePair, asked: Campaign) -> None:
    identity = Identity(IDENTITIES[1], 1)
    about = {"digest": asked.digest, "server": 1, "checksum": bytes(32), "count": 3, "keys": bytes(32)}
    statement, other = (Statement.model_validate({**about, "noise": bytes([i]) * 32}) for i in (0, 1))
    answer = b"shares" + identity.sign(covered(statement, b"question", b"shares"))
    require_signed(asked, statement, b"question", answer)
    for other_question in (
        (statement, b"another", answer),
        (other, b"question", answer),
        (statement, b"question", b"Shares" + answer[6:]),
    ):
        with pytest.raises(InvalidPeerResponse, match="not signed"):
            require_signed(asked, *other_question)


def test_a_share_leaves_only_when_the_others_statement_is_kept(tmp_path: Path) -> None:
    """Server 1 asks while it cannot be asked itself: it gets nothing before it has made its statement."""
    with LivePair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(40)).positions)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        for role in (0, 1):
            pair.stop(role)
        pair.configure(0, peer__timeout_s="2.0")
        pair.start(0)
        token = (pair.folder / "server1" / "peer.token").read_text().strip()
        query = ShareQuery(digest=campaign.digest, positions="all")
        with pair.client(0, token) as client:
            answer = client.post(f"/v1/peer/campaigns/{name(campaign)}/shares", content=query.to_json())
        assert answer.status_code == 503
        assert b"FSSS" not in answer.content


def test_noise_secrets_of_two_sets_tell_nothing_of_each_other() -> None:
    seed = bytes(range(32))
    secrets = {set_secret(seed, covered) for covered in (b"a", b"b")}
    assert len(secrets) == 2
    assert seed not in secrets


def signed_lie(pair: LivePair, campaign: Campaign, elements: Any) -> bytes:
    """Server 1's answer for threshold 0.3, other than the keys and the noise make it, with its signature."""
    true_share = pair_share(pair, campaign)
    message = encode_shares(
        campaign, ShareMessage(1, true_share.key_set, true_share.uploads, elements(true_share.elements))
    )
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    with pair.client(1, token) as client:
        path = f"/v1/peer/campaigns/{name(campaign)}/statement"
        statement = Signed.model_validate_json(client.get(path).content).statement
    query = ShareQuery(digest=campaign.digest, positions=[30]).to_json().encode()
    return message + Identity(IDENTITIES[1], 1).sign(covered(statement, b"/shares\n" + query, message))


@pytest.mark.faults
def test_a_lying_server_spoils_an_answer_and_is_found_out(tmp_path: Path) -> None:
    """It adds 7 to its share: nobody notices at once, but its own signature convicts it."""
    pair = LivePair(tmp_path, curve_bits="0")
    with pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.to_positions(values(60)).positions)
        pair.seal(campaign)
        pair.wait_ready(campaign)
        pair.ask(0, campaign, "ecdf", at="0.5")
        honest = field.decode(field.add(pair_share(pair, campaign).elements, np.zeros(1, np.uint64)))
        lie = signed_lie(pair, campaign, lambda share: field.add(share, np.array([7], np.uint64)))
        pair.stop(1)
        with impostor(pair, lambda h: _reply(h, 200, lie)):
            spoilt = pair.ask(0, campaign, "ecdf", at="0.3")["counts"][0]
        pair.start(1)
        # Asked again it says the truth, and that is a contradiction already.
        with pair.analyst(0) as client:
            answer = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.3"})
        assert "otherwise than before" in answer.json()["detail"]
        folders = handed_over(pair, campaign, tmp_path)
        findings = found(folders, campaign)
        assert wrong(findings) == {"shares at 1 positions": 1}
        details = [f.detail for f in findings if f.verdict != HONEST]
        assert details == ["1 of 1 numbers differ, the first at place 0, by 7"]
        assert isinstance(spoilt, int)
        assert honest.size == 1
        # It cannot say that it had other noise: it committed to it before it saw a share of the other server.
        other_noise(folders[0])
        assert wrong(found(folders, campaign)) == {"noise": 1}
        assert split(lie)[0] != lie
