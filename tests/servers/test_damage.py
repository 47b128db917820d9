"""Damaged and missing files, and erasing: what is wrong is noticed, and what is erased is gone."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.campaign.helpers import count_above
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import answering, filled, new_campaign

pytestmark = pytest.mark.faults


def test_a_damaged_or_missing_key_file_is_made_again(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign = answering(pair)
        first = pair.ask(0, campaign, "curve")
        folder = pair.folder / "server0" / "data" / name(campaign)
        for damage in (_flip_byte, Path.unlink, truncate):
            pair.stop(0)
            damage(folder / "keys")
            for other in (folder / "curve", *folder.glob("release-*")):
                other.unlink(missing_ok=True)
            pair.start(0)
            pair.wait_ready(campaign)
            assert pair.ask(0, campaign, "curve") == first
        assert any(e["event"] == "key-file-damaged" for e in pair.events(0))


def test_points_are_never_answered_from_a_damaged_key_file(tmp_path: Path) -> None:
    """A process looks at the file before its first answer: other keys would get the noise of the sealed ones."""
    with LivePair(tmp_path, curve_bits="0") as pair:
        campaign = answering(pair)
        first = pair.ask(0, campaign, "ecdf", at="0.1,0.5")
        for damage in (_flip_byte, Path.unlink, truncate):
            pair.stop(0)
            pair.start(0)
            pair.wait_ready(campaign)
            damage(pair.folder / "server0" / "data" / name(campaign) / "keys")
            with pair.analyst(0) as client:
                answer = client.get(f"/v1/campaigns/{name(campaign)}/ecdf", params={"at": "0.1,0.5"})
            assert answer.status_code == 503
            pair.wait_ready(campaign)
            assert pair.ask(0, campaign, "ecdf", at="0.1,0.5") == first


@pytest.mark.parametrize("kind", ["curve", "noised-*", "release-*"])
def test_a_changed_byte_in_a_kept_curve_is_noticed(tmp_path: Path, kind: str) -> None:
    """Answers never change: a damaged curve is made again."""
    with LivePair(tmp_path) as pair:
        campaign = new_campaign(strata=["no", "yes"], reserve=1.0)
        pair.create(campaign)
        pair.upload_values(campaign, np.arange(100))
        pair.seal(campaign)
        pair.wait_ready(campaign)
        query = count_above(campaign, 0.3, 1.0)
        with pair.analyst(0) as client:
            first = [pair.ask(0, campaign, "curve"), client.post(f"/v1/campaigns/{name(campaign)}/sums", json=query)]
        pair.stop(0)
        folder = pair.folder / "server0" / "data" / name(campaign)
        for release in [] if kind == "release-*" else folder.glob("release-*"):
            release.unlink()
        (damaged,) = folder.glob(kind)
        _flip_byte(damaged)
        pair.start(0)
        pair.wait_ready(campaign)
        assert pair.ask(0, campaign, "curve") == first[0]
        with pair.analyst(0) as client:
            assert client.post(f"/v1/campaigns/{name(campaign)}/sums", json=query).json() == first[1].json()


def _flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_deleted_keys_and_seeds_are_nowhere_on_the_disk(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        campaign, _ = filled(pair)
        data = pair.folder / "server0" / "data"
        with sqlite3.connect(data / "server.db") as db:
            seed = db.execute("SELECT noise_seed FROM campaigns WHERE id = ?", (campaign.id,)).fetchone()[0]
            keys = [
                row[0]
                for row in db.execute(
                    "SELECT key FROM uploads WHERE campaign = (SELECT number FROM campaigns WHERE id = ?)",
                    (campaign.id,),
                )
            ]
        db.close()
        pair.seal(campaign)
        pair.wait_ready(campaign)
        with pair.operator(0) as client:
            assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
        for path in data.rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert seed not in content, path
            assert not any(key[40:72] in content for key in keys), path


@pytest.mark.parametrize("again", ["asked", "started"])
def test_a_deletion_that_was_cut_off_is_finished(tmp_path: Path, again: str) -> None:
    """The database has its tombstone, the files are still there: the next start erases them, and so does asking."""
    pair = LivePair(tmp_path)
    with pair:
        campaign = answering(pair)
        folder = pair.folder / "server0" / "data" / name(campaign)
        shutil.copytree(folder, tmp_path / "copy")
        if again == "asked":
            with pair.operator(0) as client:
                assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
                shutil.copytree(tmp_path / "copy", folder)
                assert client.delete(f"/v1/campaigns/{name(campaign)}").status_code == 200
        else:
            pair.stop(0)
            pair.configure(0, crash_at='"delete-noted"')
            pair.start(0)
            with pair.operator(0) as client, suppress(httpx.HTTPError):
                client.delete(f"/v1/campaigns/{name(campaign)}")
            assert pair.exited(0) == 137
            assert (folder / "keys").exists()
            folder.rename(folder.with_name(folder.name + ".erased"))
            shutil.copytree(tmp_path / "copy", folder)
            pair.drop(0, "crash_at")
            pair.start(0)
        assert not [path for path in folder.parent.iterdir() if path.name.startswith(name(campaign))]
        with pair.operator(0) as client:
            assert client.get(f"/v1/campaigns/{name(campaign)}").status_code == 410
