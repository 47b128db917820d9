"""A key meets one challenge, ever: also where a server is rolled back and the other one lies about what was sealed.

The attack, by server 1. Wave 1 is sealed, and both servers have told each other what they found about its keys. Then
server 0 goes back to the time when wave 1 was open: by a restore, an old database under its identity, an older replica
or yesterday's whole data folder. Server 1 says that wave 1 is open, has it closed again without the victims, and claims
that they are in wave 2. If server 0 checked them there, two messages about one key, under two challenges, would show
its value among the leaves of a terminal node.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fss.check import MESSAGE_BYTES
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.json_messages import CheckMessagesQuery
from fss_ecdf.cli.server import main as server_main
from fss_ecdf.net.server_identity import SIGNATURE_BYTES
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair
from tests.servers.test_bad_peers import peer_call
from tests.servers.waves import close, until_released, wave_campaign

GRID = {"kind": "linear", "from": 0, "to": 15, "step": 1}
Told = dict[bytes, bytes]  # what server 0 said about each key, by its id

Put = Callable[[], None]  # server 0 is back at an earlier moment; it is stopped meanwhile
Take = Callable[[LivePair, Path, Postgres | None], Put]


def _data(pair: LivePair, role: int) -> Path:
    return pair.folder / f"server{role}" / "data"


def old_folder(pair: LivePair, copies: Path, _: Postgres | None) -> Put:
    pair.stop(0)
    shutil.copytree(_data(pair, 0), copies / "folder")
    pair.start(0)

    def put() -> None:
        shutil.rmtree(_data(pair, 0))
        shutil.copytree(copies / "folder", _data(pair, 0))

    return put


def old_database(pair: LivePair, copies: Path, _: Postgres | None) -> Put:
    """Beside it stays whatever the server wrote since."""
    pair.stop(0)
    shutil.copy(_data(pair, 0) / "server.db", copies / "server.db")
    pair.start(0)

    def put() -> None:
        for left in _data(pair, 0).glob("server.db*"):
            left.unlink()
        shutil.copy(copies / "server.db", _data(pair, 0) / "server.db")

    return put


def old_backup(pair: LivePair, copies: Path, _: Postgres | None) -> Put:
    """By the documented commands, with the other server's word that nothing was sealed since; the disk is lost."""
    config = str(pair.folder / "server0" / "server.toml")
    assert server_main(["backup", "--config", config, str(copies / "backup")]) == 0

    def put() -> None:
        shutil.rmtree(_data(pair, 0))
        assert server_main(["restore", "--config", config, str(copies / "backup")]) == 0

    return put


def old_replica(pair: LivePair, _: Path, postgres: Postgres | None) -> Put:
    """The server fails over to a copy of its database that is behind."""
    assert postgres is not None
    pair.stop(0)
    replica = postgres.copied("first")
    pair.start(0)

    def put() -> None:
        pair.drop(0, "database")
        pair.configure(0, database=f'"{replica}"')

    return put


def messages(pair: LivePair, campaign: Campaign, wave: int) -> Told:
    """All that server 1 can learn of server 0 about the keys of a wave."""
    number = "(SELECT number FROM campaigns WHERE id = ?)"
    with closing(sqlite3.connect(_data(pair, 1) / "server.db")) as db:
        checked = db.execute("SELECT checked_set FROM waves WHERE campaign = ? AND number = ?", (campaign.id, wave))
        ((checksum,),) = checked.fetchall()
        stored = db.execute(
            f"SELECT id FROM uploads WHERE campaign = {number} AND wave = ? ORDER BY id", (campaign.id, wave)
        )
        ids = [row[0] for row in stored]
    asked = {"digest": campaign.digest, "checksum": checksum, "start": 0, "stop": len(ids)}
    query = CheckMessagesQuery.model_validate(asked).to_json().encode()
    answer = peer_call(pair, campaign, f"messages?wave={wave}", query)
    assert answer.status_code == 200, answer.text
    assert len(answer.content) == MESSAGE_BYTES * len(ids) + SIGNATURE_BYTES
    return {i: answer.content[MESSAGE_BYTES * k : MESSAGE_BYTES * (k + 1)] for k, i in enumerate(ids)}


def hide(pair: LivePair, campaign: Campaign, victims: list[bytes]) -> list[tuple[object, ...]]:
    """Server 1, stopped, takes uploads out of its own database; returns them."""
    number = "(SELECT number FROM campaigns WHERE id = ?)"
    with closing(sqlite3.connect(_data(pair, 1) / "server.db")) as db, db:
        taken = []
        for victim in victims:
            mine = f"campaign = {number} AND id = ?"
            taken += db.execute(f"SELECT * FROM uploads WHERE {mine}", (campaign.id, victim)).fetchall()
            db.execute(f"DELETE FROM uploads WHERE {mine}", (campaign.id, victim))
        db.execute("UPDATE campaigns SET stored = stored - ? WHERE id = ?", (len(victims), campaign.id))
    return taken


def claim(pair: LivePair, campaign: Campaign, taken: list[tuple[object, ...]], wave: int) -> None:
    """Server 1, stopped, says that these uploads are in another wave."""
    with closing(sqlite3.connect(_data(pair, 1) / "server.db")) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(uploads)")]
        for row in taken:
            about = {**dict(zip(names, row, strict=True)), "wave": wave}
            columns = ", ".join(about)
            marks = ", ".join("?" * len(about))
            db.execute(f"INSERT INTO uploads ({columns}) VALUES ({marks})", tuple(about.values()))
        db.execute("UPDATE campaigns SET stored = stored + ? WHERE id = ?", (len(taken), campaign.id))


def accept_all(pair: LivePair) -> None:
    """A rollback is noticed as a rule, and nothing is sealed then; but operators may be talked into going on."""
    for role in (0, 1):
        pair.stop(role)
        config = str(pair.folder / f"server{role}" / "server.toml")
        server_main(["recovery", "accept", "--config", config])
        pair.start(role)


def play(pair: LivePair, copies: Path, take: Take, postgres: Postgres | None = None) -> None:
    campaign = wave_campaign(count=4, pooled=[], check_keys=True, min_uploads=1, grid=GRID)
    pair.create(campaign)
    pair.upload_values(campaign, np.arange(16))
    put = take(pair, copies, postgres)
    pair.stop(1)
    shutil.copytree(_data(pair, 1), copies / "other")
    pair.start(1)
    close(pair, campaign, 1)
    until_released(pair, campaign, "wave 1")
    first = messages(pair, campaign, 1)
    assert len(first) == 16
    victims = sorted(first)[3:9]

    # Both go back; server 1 hides the victims, and answers whoever asks that wave 1 is open.
    pair.stop(1)
    shutil.rmtree(_data(pair, 1))
    shutil.copytree(copies / "other", _data(pair, 1))
    taken = hide(pair, campaign, victims)
    pair.start(1)
    pair.stop(0)
    put()
    pair.start(0)
    accept_all(pair)
    assert close(pair, campaign, 1)["count"] == 10
    until_released(pair, campaign, "wave 1")
    again = messages(pair, campaign, 1)
    assert again == {i: told for i, told in first.items() if i not in victims}

    # Now they are in wave 2, says server 1; somebody honest is, too.
    pair.stop(1)
    claim(pair, campaign, taken, 2)
    pair.start(1)
    accept_all(pair)
    pair.upload_values(campaign, np.arange(5))
    assert close(pair, campaign, 2)["count"] == 5
    until_released(pair, campaign, "wave 2")
    second = messages(pair, campaign, 2)
    assert len(second) == 5
    assert not second.keys() & first.keys()
    assert pair.status(campaign)["waves"][0]["unmatched"] == 6


@pytest.mark.faults
def test_an_old_database_file_under_a_running_identity(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        (tmp_path / "copies").mkdir()
        play(pair, tmp_path / "copies", old_database)


@pytest.mark.faults
@pytest.mark.parametrize("take", [old_backup, old_folder])
def test_a_restore_and_yesterdays_data_folder(tmp_path: Path, take: Take) -> None:
    with LivePair(tmp_path) as pair:
        (tmp_path / "copies").mkdir()
        play(pair, tmp_path / "copies", take)


@pytest.mark.faults
def test_a_failover_to_an_older_replica(tmp_path: Path, postgres: Postgres) -> None:
    pair = LivePair(tmp_path)
    pair.configure(0, database=f'"{postgres.database("first")}"')
    with pair:
        (tmp_path / "copies").mkdir()
        play(pair, tmp_path / "copies", old_replica, postgres)


def test_a_leaf_covers_the_wave_the_people_and_both_shares() -> None:
    ids, hashes = (b"i" * 16, b"j" * 16), (b"a" * 32, b"b" * 32)
    leaves = [
        Contribution(wave=1).leaf(ids[0], hashes),
        Contribution(wave=1).leaf(ids[1], hashes),
        Contribution(wave=2).leaf(ids[0], hashes),
        Contribution(wave=1, people=2).leaf(ids[0], hashes),
        Contribution(wave=1).leaf(ids[0], hashes[::-1]),
        Contribution(wave=1).leaf(ids[0], (b"a" * 32, b"a" * 32)),
    ]
    assert len(set(leaves)) == 6
