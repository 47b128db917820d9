"""HPKE keys of a server: one for each campaign, random, the same in all processes, gone with the campaign."""

import http.server
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import new_id, to_base64url
from fss_ecdf.campaign.commitments import ServerCommitment
from fss_ecdf.campaign.errors import CampaignDeleted, HpkeKeyLost
from fss_ecdf.campaign.sealed_uploads import open_upload, seal_upload, token_digest
from fss_ecdf.cli.server import main
from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import Identity
from servers.hpke_keys import find
from servers.maintenance.backup import backup
from servers.maintenance.restore import restore
from servers.settings import load
from servers.storage.commitments import MOST_UNUSED, SALT_BYTES
from servers.storage.storage import Storage
from tests.commands import call
from tests.harness.server_pair import IDENTITIES, LivePair, envelopes, name
from tests.hostile import serving
from tests.servers.conftest import new_campaign
from tests.servers.test_care import NOW, config


def database(pair: LivePair, role: int = 0) -> Path:
    return pair.folder / f"server{role}" / "data" / "server.db"


def salts(pair: LivePair, role: int, campaign_id: bytes) -> list[bytes]:
    with closing(sqlite3.connect(database(pair, role))) as db:
        return [row[0] for row in db.execute("SELECT salt FROM commitments WHERE campaign = ?", (campaign_id,))]


def forget_salt(pair: LivePair, role: int, campaign_id: bytes) -> None:
    with closing(sqlite3.connect(database(pair, role))) as db:
        db.execute("DELETE FROM commitments WHERE campaign = ?", (campaign_id,))
        db.commit()


def asked(pair: LivePair, role: int, campaign_id: bytes, kem: str = "x25519") -> list[ServerCommitment]:
    with pair.operator(role) as client:
        answer = client.get(f"/v1/commitments/{to_base64url(campaign_id)}?kem={kem}")
    assert answer.status_code == 200, answer.text
    return [ServerCommitment.model_validate(commitment) for commitment in answer.json()["server_commitments"]]


def test_commitments_are_random_and_stay(pair: LivePair) -> None:
    """Both servers tell the same; another campaign has other keys, also another campaign of the same identities."""
    one, two = (new_id(secrets.token_bytes) for _ in range(2))
    first = asked(pair, 0, one)
    assert first == asked(pair, 1, one) == asked(pair, 0, one)
    keys = {commitment.hpke_key for commitment in first + asked(pair, 0, two) + asked(pair, 0, one, "mlkem768x25519")}
    assert (len(keys), {len(key) for key in keys}) == (6, {32, 1216})
    (salt,) = salts(pair, 0, one)
    assert Identity(IDENTITIES[0], 0).hpke_key(one, "x25519", salt).public_bytes == first[0].hpke_key
    with pair.operator(0) as client:
        assert client.get(f"/v1/commitments/{to_base64url(one)}?kem=p256").status_code == 400


def test_a_campaign_of_the_servers_own_commitments(pair: LivePair) -> None:
    """As the command line makes it: no test knows these keys."""
    id = new_id(secrets.token_bytes)
    committed = [commitment.model_dump(mode="json") for commitment in asked(pair, 1, id)]
    campaign = new_campaign(id=id, server_commitments=committed)
    pair.create(campaign)
    pair.upload_values(campaign, np.arange(12))
    assert pair.status(campaign, 0)["uploads"] == pair.status(campaign, 1)["uploads"] == 12
    with pytest.raises(HpkeKeyLost):  # the other one's identity opens nothing
        find(Identity(IDENTITIES[1], 0), Storage(f"sqlite:///{database(pair)}", look=True), campaign)


@contextmanager
def between(pair: LivePair, rewrite: dict[bytes, bytes]) -> Iterator[int]:
    """Somebody between the servers, with server 1's certificate, who changes what it answers; the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with pair.client(1) as client:
                answer = client.get(self.path, headers=_passed_on(self.headers.items()))
            content = answer.content
            for old, new in rewrite.items():
                content = content.replace(old, new)
            self.send_response(answer.status_code)
            for header in (*_passed_on(answer.headers.items()).items(), ("Content-Length", str(len(content)))):
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    with serving(pair.folder / "server1", Handler) as port:
        yield port


def _passed_on(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() in ("authorization", "fss-history")}


def test_the_other_server_must_sign_its_commitment(tmp_path: Path) -> None:
    """Whoever stands between the servers, with a certificate, cannot exchange the key in it."""
    pair, id, rewrite = LivePair(tmp_path), new_id(secrets.token_bytes), dict[bytes, bytes]()
    mine = to_base64url(HpkeKey("x25519", bytes(32)).public_bytes).encode()
    with between(pair, rewrite) as port:
        pair.reach_peer_at(0, port)
        with pair:
            first, second = asked(pair, 0, id)
            for forged in (
                {to_base64url(second.hpke_key).encode(): mine},
                {to_base64url(second.commitment).encode(): to_base64url(first.commitment).encode()},
                {b'"signature":"': b'"signature":"A'},
                {b'"signature"': b'"signed"'},
            ):
                rewrite.clear()
                rewrite.update(forged)
                with pair.operator(0) as client:
                    refused = client.get(f"/v1/commitments/{to_base64url(id)}")
                assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (
                    502,
                    "invalid-peer-response",
                )
                assert "commitment" in refused.json()["detail"]
            rewrite.clear()
            assert asked(pair, 0, id) == [first, second]


def test_a_server_that_lost_its_key_says_so_and_refuses(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, well = new_campaign(), new_campaign()
        for one in (campaign, well):
            pair.create(one)
        data = envelopes(campaign, np.arange(3))
        copy = tmp_path / "copy"
        backup(load(config(pair)), config(pair), copy, NOW)
        pair.stop(0)
        forget_salt(pair, 0, campaign.id)
        pair.start(0)
        refused = pair.upload(0, campaign, data[0])
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:fss-ecdf:problem:hpke-key-lost")
        assert "its operator must restore" in refused.json()["detail"]
        assert [pair.status(c, 0)["hpke_key_lost"] for c in (campaign, well)] == [True, False]
        assert pair.status(campaign, 1)["peer"]["hpke_key_lost"] is True
        said = call(
            main, "campaign", "--operator-config", str(pair.folder / "operator.toml"), "status", name(campaign)
        ).stdout
        assert "server 0: open, 0 uploads, keys not checked, HPKE KEY LOST, uploads are refused: see fss-server" in said
        seen = call(main, "doctor", "--config", str(config(pair)))
        assert seen.returncode == 77
        assert f"lost for campaign {name(campaign)}, so uploads to it are refused" in seen.stdout
        with pair.operator(0) as client:  # it makes no other key for a campaign that exists
            assert client.get(f"/v1/commitments/{name(campaign)}").json()["type"].endswith("hpke-key-lost")
        assert pair.upload(0, well, envelopes(well, np.arange(3))[0]).status_code == 200

        pair.stop(0)
        restore(load(config(pair)), copy)
        pair.start(0)
        assert pair.status(campaign, 0)["hpke_key_lost"] is False
        assert pair.upload(0, campaign, data[0]).json()["failures"] == []
        assert call(main, "doctor", "--config", str(config(pair))).returncode == 0


def test_the_key_goes_with_the_campaign(pair: LivePair) -> None:
    """Whoever recorded an upload and then takes the whole disk opens nothing."""
    id = new_id(secrets.token_bytes)
    campaign = new_campaign(
        id=id, server_commitments=[commitment.model_dump(mode="json") for commitment in asked(pair, 0, id)]
    )
    pair.create(campaign)
    token = pair.upload_tokens[campaign.id]
    recorded = seal_upload(campaign, 0, envelopes(campaign, np.arange(3))[0], token)
    assert pair.upload_sealed(0, campaign, recorded).status_code == 200
    (salt,) = salts(pair, 0, id)
    key = Identity(IDENTITIES[0], 0).hpke_key(id, "x25519", salt)
    # The thief of a disk that still has it.
    assert len(open_upload(recorded, campaign, 0, token_digest(token), key.open)) > 64
    with pair.operator(0) as client:
        assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
    assert salts(pair, 0, id) == []
    for path in (pair.folder / "server0").rglob("*"):
        assert not path.is_file() or salt not in path.read_bytes(), path
    with pair.operator(0) as client:
        again = client.get(f"/v1/commitments/{name(campaign)}")
        assert again.json()["type"].endswith("campaign-deleted")
    assert pair.upload_sealed(0, campaign, recorded).status_code == 410


def test_commitments_that_no_campaign_came_of_are_bounded(storage: Storage) -> None:
    used = new_campaign()
    salt = storage.commitments.salt_or_new(used.id, secrets.token_bytes)
    storage.campaigns.add(used, "0" * 64, [])
    ids = [secrets.token_bytes(32) for _ in range(MOST_UNUSED + 20)]
    for id in ids:
        assert len(storage.commitments.salt_or_new(id, secrets.token_bytes)) == SALT_BYTES
    assert storage.commitments.salt(used.id) == salt
    assert [storage.commitments.salt(id) is None for id in ids] == [True] * 20 + [False] * MOST_UNUSED
    storage.campaigns.delete(used.id)
    assert storage.commitments.salt(used.id) is None
    with pytest.raises(CampaignDeleted):
        storage.commitments.salt_or_new(used.id, secrets.token_bytes)
