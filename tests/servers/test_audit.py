"""A server that lies is found out: what it signed does not come from the keys and the noise that it signed for."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaign.envelopes import Shares, encode_shares
from campaign.errors import PeerMismatch
from campaign.spec import Campaign, to_base64url
from campaign.wire import ShareQuery
from client.identity import Identity
from client.program import BAD_DATA, OK, REFUSED
from fss import field
from harness.live import IDENTITIES, Pair, name
from programs.server import main
from servers.audit.verify import HONEST, Finding, verify
from servers.release.noise import set_secret
from servers.release.statement import Signed, Statement, covered, require_signed, split
from tests.servers.conftest import new_campaign, values
from tests.servers.test_attacks import pair_share
from tests.servers.test_bad_peers import _reply, impostor

SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


@pytest.fixture(scope="module")
def asked(pair: Pair) -> Campaign:
    """A checked campaign of which everything has been asked: the curve and score groups."""
    campaign = new_campaign(checked=True, strata=["no", "yes"], reserve=1.0, grid=SCORES)
    pair.create(campaign)
    x = values(200)
    pair.upload_values(campaign, campaign.place(x, ["yes" if v > 0.3 else "no" for v in x]).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    pair.ask(0, campaign, "curve", stratum="no")
    pair.ask(1, campaign, "curve", stratum="no")
    with pair.analyst(0) as client:
        query = {"upper_ends": [0.2, 0.5, 1.0], "epsilon": 0.5}
        assert client.post(f"/v1/campaigns/{name(campaign)}/groups", json=query).status_code == 200
    return campaign


def config(pair: Pair, role: int) -> str:
    return str(pair.folder / f"server{role}" / "server.toml")


def handed_over(pair: Pair, campaign: Campaign, folder: Path, audited: int = 1) -> tuple[Path, Path]:
    keys, evidence = folder / "keys", folder / "evidence"
    about = [name(campaign), "--config"]
    assert main(["audit", "export", *about, config(pair, audited), "--out", str(keys)]) == OK
    assert main(["audit", "evidence", *about, config(pair, 1 - audited), "--out", str(evidence)]) == OK
    return keys, evidence


def bad(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings if not finding.is_honest]


@pytest.mark.parametrize("audited", [0, 1])
def test_an_honest_pair_passes(
    pair: Pair, asked: Campaign, tmp_path: Path, audited: int, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, evidence = handed_over(pair, asked, tmp_path, audited)
    assert (
        main(["audit", "verify", "--keys", str(keys), "--evidence", str(evidence), "--digest", digest_of(asked)]) == OK
    )
    printed = capsys.readouterr().out
    assert "shares at all positions      honest" in printed
    assert "published curve              honest" in printed
    if audited == 1:
        assert "shares of score groups       honest" in printed
    assert all(path.stat().st_mode & 0o077 == 0 for path in keys.iterdir())


def change(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def drop_an_upload(keys: Path) -> None:
    (keys / "entries").write_bytes((keys / "entries").read_bytes()[48:])


def other_noise(keys: Path) -> None:
    (keys / "noise.secret").write_text("00" * 32)


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("set of uploads", drop_an_upload),
        ("set of uploads", lambda keys: change(keys / "entries")),
        ("keys", lambda keys: change(keys / "keys")),
        ("noise", other_noise),
    ],
)
def test_what_is_handed_over_must_be_what_was_signed_for(
    pair: Pair, asked: Campaign, tmp_path: Path, what: str, how: Callable[[Path], None]
) -> None:
    keys, evidence = handed_over(pair, asked, tmp_path)
    how(keys)
    assert bad(verify(keys, evidence, digest_of(asked))) == [what]
    assert (
        main(["audit", "verify", "--keys", str(keys), "--evidence", str(evidence), "--digest", digest_of(asked)])
        == REFUSED
    )


def test_evidence_cannot_be_made_up(pair: Pair, asked: Campaign, tmp_path: Path) -> None:
    """Played by the accuser: it changes an answer that it kept, the statement, or what it published itself."""
    keys, evidence = handed_over(pair, asked, tmp_path)
    answer = next(evidence.glob("*.answer"))
    change(answer, 100)
    assert any("not signed" in finding.verdict for finding in verify(keys, evidence, digest_of(asked)))
    change(answer, 100)
    release = np.load(evidence / "release.npy")
    np.save(evidence / "release.npy", release + 1)
    assert bad(verify(keys, evidence, digest_of(asked))) == ["published curve"]
    np.save(evidence / "release.npy", release)
    assert bad(verify(keys, evidence, digest_of(asked))) == []
    data = (evidence / "statement").read_bytes()
    (evidence / "statement").write_bytes(data.replace(b'"count":200', b'"count":201'))
    assert "statement" in bad(verify(keys, evidence, digest_of(asked)))


def test_another_campaign_cannot_be_slipped_in(pair: Pair, asked: Campaign, tmp_path: Path) -> None:
    """Played by the accuser: it puts its own signing key in the other's place and signs a lie for it."""
    keys, evidence = handed_over(pair, asked, tmp_path)
    fields = asked.model_dump(mode="json", by_alias=True)
    fields["servers"][1]["signing_key"] = fields["servers"][0]["signing_key"]
    other = Campaign.from_dict(fields)
    for folder in (keys, evidence):
        (folder / "campaign.json").write_bytes(other.canonical)
        assert bad(verify(keys, evidence, digest_of(asked))) == ["campaign"]


def test_nonsense_is_a_finding_not_a_traceback(pair: Pair, asked: Campaign, tmp_path: Path) -> None:
    keys, evidence = handed_over(pair, asked, tmp_path)
    answer = next(evidence.glob("*.answer"))
    for path, data in (
        (answer, b""),
        (answer.with_suffix(".question"), b"\xff\xfe"),
        (evidence / "release.npy", b"x"),
        (keys / "noise.secret", b"zz"),
        (evidence / "statement", b"{}"),
    ):
        old = path.read_bytes()
        path.write_bytes(data)
        found = main(
            ["audit", "verify", "--keys", str(keys), "--evidence", str(evidence), "--digest", digest_of(asked)]
        )
        assert found in (BAD_DATA, REFUSED), path
        path.write_bytes(old)


def digest_of(campaign: Campaign) -> str:
    return to_base64url(campaign.digest)


def test_a_signature_covers_question_statement_and_answer(pair: Pair, asked: Campaign) -> None:
    identity = Identity(IDENTITIES[1], 1)
    about = {"digest": asked.digest, "server": 1, "checksum": bytes(32), "count": 3, "keys": bytes(32)}
    statement, other = (Statement.model_validate({**about, "noise": bytes([i]) * 32}) for i in (0, 1))
    answer = b"shares" + identity.sign(covered(statement, b"question", b"shares"))
    require_signed(asked, statement, b"question", answer)
    for wrong in (
        (statement, b"another", answer),
        (other, b"question", answer),
        (statement, b"question", b"Shares" + answer[6:]),
    ):
        with pytest.raises(PeerMismatch, match="not signed"):
            require_signed(asked, *wrong)


def test_a_share_leaves_only_when_the_others_statement_is_kept(tmp_path: Path) -> None:
    """Server 1 asks while it cannot be asked itself: it gets nothing before it has made its statement."""
    with Pair(tmp_path) as pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.place(values(40)).positions)
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


def signed_lie(pair: Pair, campaign: Campaign, elements: Any) -> bytes:
    """Server 1's answer for threshold 0.3, other than the keys and the noise make it, with its signature."""
    true_share = pair_share(pair, campaign)
    message = encode_shares(campaign, Shares(1, true_share.key_set, true_share.uploads, elements(true_share.elements)))
    token = (pair.folder / "server0" / "peer.token").read_text().strip()
    with pair.client(1, token) as client:
        path = f"/v1/peer/campaigns/{name(campaign)}/statement"
        statement = Signed.model_validate_json(client.get(path).content).statement
    query = ShareQuery(digest=campaign.digest, positions=[30]).to_json().encode()
    return message + Identity(IDENTITIES[1], 1).sign(covered(statement, b"/shares\n" + query, message))


@pytest.mark.faults
def test_a_lying_server_spoils_an_answer_and_is_found_out(tmp_path: Path) -> None:
    """It adds 7 to its share: nobody notices at once, but its own signature convicts it."""
    pair = Pair(tmp_path, curve_bits="0")
    with pair:
        campaign = new_campaign()
        pair.create(campaign)
        pair.upload_values(campaign, campaign.place(values(60)).positions)
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
        digest = to_base64url(campaign.digest)
        findings = verify(*handed_over(pair, campaign, tmp_path), digest)
        assert [f.verdict for f in findings if not f.is_honest] == ["1 of 1 numbers differ, the first at place 0, by 7"]
        assert sum(f.verdict == HONEST for f in findings) == 6
        assert isinstance(spoilt, int)
        assert honest.size == 1
        # It cannot say that it had other noise: it committed to it before it saw a share of the other server.
        keys = tmp_path / "keys"
        shutil.copy(keys / "noise.secret", keys / "noise.old")
        other_noise(keys)
        assert bad(verify(keys, tmp_path / "evidence", digest)) == ["noise"]
        assert split(lie)[0] != lie
