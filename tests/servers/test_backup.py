"""Backups that are made, and refused: of other servers, changed, not whole, older than a sealing."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.campaign.errors import PeerUnavailable
from fss_ecdf.cli.common import UsageError
from fss_ecdf.cli.server import main
from fss_ecdf.net.server_identity import Identity
from fss_ecdf.operators.setup import init_pair
from servers.maintenance.backup import MANIFEST, backup
from servers.maintenance.restore import restore
from servers.settings import load
from servers.storage.storage import Storage
from tests.commands import Done, call
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign, values

NOW = datetime.now(UTC)


def config(pair: LivePair, role: int = 0) -> Path:
    return pair.folder / f"server{role}" / "server.toml"


def run(*args: str) -> Done:
    return call(main, *args)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """Settings of a server that nobody started; returns their file."""
    init_pair(tmp_path / "pair", ("127.0.0.1", "127.0.0.1"), (1, 2))
    return tmp_path / "pair" / "server0" / "server.toml"


@pytest.fixture
def broken_up(tmp_path: Path) -> Iterator[LivePair]:
    with LivePair(tmp_path) as started:
        yield started


@pytest.mark.slow
def test_a_backup_of_a_running_server_and_restores_that_are_refused(broken_up: LivePair, tmp_path: Path) -> None:
    pair = broken_up
    campaign = new_campaign()
    pair.create(campaign)
    pair.upload_values(campaign, campaign.to_positions(values(20)).positions)
    made = run("backup", "--config", str(config(pair)), str(tmp_path / "early"))
    assert made.returncode == 0, made.stderr
    assert "encrypt it before it travels" in made.stdout
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "early").rglob("*"))
    again = run("backup", "--config", str(config(pair)), str(tmp_path / "early"))
    assert "a backup is never overwritten" in again.stderr
    running = run("restore", "--config", str(config(pair)), str(tmp_path / "early"))
    assert "another server runs on" in running.stderr
    looked = run("restore", "--check", "--config", str(config(pair)), str(tmp_path / "early"))
    assert looked.returncode == 0, looked.stderr
    assert "signed, whole, and can be restored" in looked.stdout

    # Nothing was sealed since: the early backup may be restored, and what came later is sent again.
    pair.upload_values(campaign, np.array([1, 2]))
    pair.stop(0)
    early = run("restore", "--config", str(config(pair)), str(tmp_path / "early"))
    assert early.returncode == 0, early.stderr
    assert "parties send again what came after the backup" in early.stdout
    pair.start(0)
    assert pair.status(campaign)["uploads"] == 20
    pair.seal(campaign)
    pair.wait_ready(campaign)
    assert run("backup", "--config", str(config(pair)), str(tmp_path / "late")).returncode == 0
    pair.stop(0)

    # Older than the sealing: this server knows it from its own database, and from the other server if that is lost.
    for option in ("--check", None, None):
        options = [] if option is None else [option]
        refused = run("restore", *options, "--config", str(config(pair)), str(tmp_path / "early"))
        assert refused.returncode == 77
        assert "would be a second release about the same people" in refused.stderr
        if option is None:
            shutil.rmtree(pair.folder / "server0" / "data", ignore_errors=True)
    assert "the other server has it sealed" in refused.stderr
    (pair.folder / "server0" / "data").mkdir(mode=0o700)
    (pair.folder / "server0" / "data" / "server.db").write_bytes(b"damaged" * 1000)  # what backups are for
    late = run("restore", "--config", str(config(pair)), str(tmp_path / "late"))
    assert late.returncode == 0, late.stderr
    pair.start(0)
    pair.wait_ready(campaign)
    assert pair.status(campaign)["sealed_uploads"] == 20
    # What was deleted since a backup stays deleted.
    with pair.operator(0) as client:
        client.delete(f"/v1/campaigns/{name(campaign)}")
    pair.stop(0)
    assert run("restore", "--config", str(config(pair)), str(tmp_path / "late")).returncode == 0
    pair.start(0)
    with pair.operator(0) as client:
        assert client.get(f"/v1/campaigns/{name(campaign)}").status_code == 410
    pair.stop(0)
    pair.stop(1)
    shutil.rmtree(pair.folder / "server0" / "data")
    with pytest.raises(PeerUnavailable, match="only it knows what was done after this database"):
        restore(load(config(pair)), tmp_path / "early")


def test_backups_that_are_not_this_servers_or_not_whole(alone: Path, tmp_path: Path) -> None:
    other = alone.parents[1] / "server1" / "server.toml"
    with pytest.raises(UsageError, match="has not been started yet"):
        backup(load(alone), alone, tmp_path / "b", NOW)
    Storage(f"sqlite:///{alone.parent / 'data' / 'server.db'}").close()
    assert "database/server.db" in backup(load(alone), alone, tmp_path / "b", NOW)
    with pytest.raises(UsageError, match="a backup of server 0, and the settings are server 1's"):
        restore(load(other), tmp_path / "b")
    looked, kept = restore(load(alone), tmp_path / "b")
    assert looked.backup.manifest.at == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert kept == "beside it as server.db.before-restore"
    identity = alone.parent / "identity.secret"
    kept = identity.read_text()
    identity.write_text("00" * 32 + "\n")
    with pytest.raises(UsageError, match=r"is not signed with .*identity.secret: it was changed, or made with another"):
        restore(load(alone), tmp_path / "b")
    identity.write_text(kept)
    (tmp_path / "b" / "database" / "server.db").write_bytes(b"other")
    with pytest.raises(UsageError, match="missing or changed since the backup was made"):
        restore(load(alone), tmp_path / "b")
    with pytest.raises(UsageError, match="not a complete backup"):
        restore(load(alone), tmp_path)


@pytest.mark.parametrize("place", ["files/extra", "database/server.db-wal", "extra", "settings/server2.toml"])
def test_a_file_that_is_not_in_the_signed_list_is_not_restored(alone: Path, tmp_path: Path, place: str) -> None:
    Storage(f"sqlite:///{alone.parent / 'data' / 'server.db'}").close()
    backup(load(alone), alone, tmp_path / "b", NOW)
    (tmp_path / "b" / place).parent.mkdir(exist_ok=True)
    (tmp_path / "b" / place).write_bytes(b"planted")
    with pytest.raises(UsageError, match=r"not in the signed list of this backup"):
        restore(load(alone), tmp_path / "b")
    assert not list((alone.parent / "data").rglob("extra"))


@pytest.mark.parametrize("what", ["digest", "name", "signature", "link"])
def test_a_changed_list_is_not_believed(alone: Path, tmp_path: Path, what: str) -> None:
    """Also where the digests in it fit: only this server's identity signs one."""
    Storage(f"sqlite:///{alone.parent / 'data' / 'server.db'}").close()
    (alone.parent / "data" / "kept").write_bytes(b"kept")
    backup(load(alone), alone, tmp_path / "b", NOW)
    folder = tmp_path / "b"
    if what == "link":
        (folder / "files" / "kept").unlink()
        (folder / "files" / "kept").symlink_to(folder / "settings" / "identity.secret")
    else:
        (folder / "files" / "kept").write_bytes(b"other")
        manifest = json.loads((folder / MANIFEST).read_text())
        digest = hashlib.sha256(b"other").hexdigest()
        manifest["files"]["files/kept"] = digest
        if what == "name":
            manifest["files"]["files/../../escaped"] = digest
        (folder / MANIFEST).write_text(json.dumps(manifest))
        if what == "signature":
            identity = Identity(b"\7" * 32, 0)
            signed = identity.sign(b"fss-ecdf backup manifest 1\n" + (folder / MANIFEST).read_bytes())
            (folder / "manifest.signature").write_text(to_base64url(signed))
    with pytest.raises(UsageError, match=r"not signed with|missing or changed"):
        restore(load(alone), folder)
    assert (alone.parent / "data" / "kept").read_bytes() == b"kept"
