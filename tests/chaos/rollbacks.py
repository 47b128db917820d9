"""Random sequences in which server 0 is rolled back and server 1 lies about it: a key meets one challenge, ever.

Parties upload to waves, waves close, servers are killed. Server 0 goes back to an earlier moment, with its whole data
folder or with its database alone; server 1 goes back with it or does not, hides uploads, or claims that they are in
another wave. Operators accept every rollback that is noticed. All that server 0 ever tells about a key must be one
message, of one wave.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np

from fss.check import MESSAGE_BYTES
from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from servers.storage.entries import set_checksum
from tests.chaos.model import Broken
from tests.harness.fork_server import ForkServer
from tests.harness.server_pair import LivePair, commitments, envelopes, name
from tests.servers.test_one_challenge import GRID, accept_all, claim, hide
from tests.servers.waves import wave_campaign

WAVES = 5
STEPS = 14
_DIGEST = sha256().digest_size


@dataclass(frozen=True)
class Outcome:
    """What was done, and how many messages about keys were seen."""

    uploads: int
    closings: int
    rollbacks: int
    lies: int
    messages: int


@dataclass
class Game:
    """One campaign of waves, what was sent, and every message that server 0 made about a key."""

    pair: LivePair
    folder: Path
    rng: random.Random
    campaign: Campaign
    sent: list[tuple[int, tuple[bytes, bytes], list[bytes]]] = field(default_factory=list)
    told: dict[bytes, dict[int, bytes]] = field(default_factory=dict)
    moments: list[Path] = field(default_factory=list)
    closings: int = 0
    rollbacks: int = 0
    lies: int = 0

    def upload(self) -> None:
        """For the wave that is open, or the next; to both servers, or to one of them."""
        wave = self._open_wave() + self.rng.choice([0, 0, 0, 1])
        if wave > WAVES:
            return
        both = envelopes(self.campaign, np.array(self.rng.choices(range(16), k=self.rng.randint(1, 6))), wave)
        ids = [upload_id for upload_id, _, _ in upload_rows(both[0], self.campaign, 0)[1]]
        self.sent.append((wave, both, ids))
        for role in self.rng.choice([(0, 1), (0, 1), (0, 1), (0,), (1,)]):
            self._send(role, both)

    def send_again(self) -> None:
        if self.sent:
            _, both, _ = self.rng.choice(self.sent)
            for role in (0, 1):
                self._send(role, both)

    def withdraw(self) -> None:
        if self.sent:
            _, _, ids = self.rng.choice(self.sent)
            for role in self.rng.choice([(0,), (1,), (0, 1)]):
                with self.pair.client(role, self.pair.upload_tokens[self.campaign.id]) as client:
                    client.post(f"/v1/campaigns/{name(self.campaign)}/uploads/withdraw", content=b"".join(ids))

    def close(self) -> None:
        """Both operators close a wave; where a rollback is noticed only now, they accept it and ask again."""
        for _ in range(3):
            wave, answers = self._open_wave(), []
            for role in (1, 0):
                with self.pair.operator(role) as client:
                    path = f"/v1/campaigns/{name(self.campaign)}/seal"
                    answers.append(client.post(path, params={"wave": wave}))
            if not any(is_on_hold(answer) for answer in answers):
                break
            accept_all(self.pair)
        self.closings += 1
        self.look()

    def kill(self) -> None:
        role = self.rng.randrange(2)
        self.pair.stop(role, kill=True)
        self.pair.start(role)

    def remember(self) -> None:
        """A moment of both servers to go back to."""
        moment = self.folder / f"moment-{len(self.moments)}"
        for role in (0, 1):
            self.pair.stop(role)
            shutil.copytree(self._data(role), moment / str(role))
        for role in (0, 1):
            self.pair.start(role)
        self.moments.append(moment)

    def roll_back(self) -> None:
        """Server 0, to any moment; server 1 perhaps to the same."""
        if not self.moments:
            return
        self.look()
        moment, whole = self.rng.choice(self.moments), self.rng.random() < 0.5
        for role in self.rng.choice([(0,), (0, 1), (0, 1)]):
            self.pair.stop(role)
            self._put(role, moment / str(role), whole=whole)
            self.pair.start(role)
        accept_all(self.pair)
        self.rollbacks += 1

    def lie(self) -> None:
        """Server 1 hides uploads, or says that they are in another wave."""
        stored = self._stored_at_1()
        if not stored:
            return
        some = self.rng.sample(sorted(stored), k=self.rng.randint(1, min(5, len(stored))))
        self.pair.stop(1)
        taken = hide(self.pair, self.campaign, some)
        if self.rng.random() < 0.6:
            claim(self.pair, self.campaign, taken, self.rng.randint(1, WAVES))
        self.pair.start(1)
        self.lies += 1

    def look(self) -> None:
        """Read every message that server 0 has made, and compare with all it ever made."""
        for path in self._data(0).glob(f"{to_base64url(self.campaign.id)}/wave-*/messages-*"):
            wave, body = int(path.parent.name.removeprefix("wave-")), path.read_bytes()[_DIGEST:]
            entries = self._entries_at_0(wave)
            if path.name != f"messages-{to_base64url(set_checksum(b''.join(i + leaf for i, leaf in entries)))}":
                continue  # of a set that was checked before a rollback, which was looked at then
            if len(body) != MESSAGE_BYTES * len(entries):
                raise Broken(f"{len(body)} bytes of messages about {len(entries)} keys")
            for number, (upload_id, _) in enumerate(entries):
                self._tell(upload_id, wave, body[MESSAGE_BYTES * number : MESSAGE_BYTES * (number + 1)])

    def _tell(self, upload_id: bytes, wave: int, message: bytes) -> None:
        known = self.told.setdefault(upload_id, {})
        if known.setdefault(wave, message) != message:
            raise Broken(f"another message about a key of wave {wave}")
        if len(known) > 1:
            raise Broken(f"messages about one key in waves {sorted(known)}")

    def _send(self, role: int, both: tuple[bytes, bytes]) -> None:
        answer = self.pair.upload(role, self.campaign, both[role])
        if answer.status_code >= 500 and answer.json()["type"].rsplit(":", 1)[1] == "internal":
            raise Broken(f"an upload was answered with {answer.text[:200]}")

    def _open_wave(self) -> int:
        """The later of both; a server that is on hold says it, too."""
        return max(int(self.pair.status(self.campaign, role)["wave"]) for role in (0, 1))

    def _data(self, role: int) -> Path:
        return self.pair.folder / f"server{role}" / "data"

    def _put(self, role: int, moment: Path, *, whole: bool) -> None:
        if whole:
            shutil.rmtree(self._data(role))
            shutil.copytree(moment, self._data(role))
            return
        for left in self._data(role).glob("server.db*"):
            left.unlink()
        for file in moment.glob("server.db*"):
            shutil.copy(file, self._data(role) / file.name)

    def _entries_at_0(self, wave: int) -> list[tuple[bytes, bytes]]:
        return [(row[0], row[1]) for row in self._rows(0, "id, leaf", f"AND wave = {wave}")]

    def _stored_at_1(self) -> set[bytes]:
        return {row[0] for row in self._rows(1, "id", "")}

    def _rows(self, role: int, columns: str, where: str) -> list[tuple[bytes, ...]]:
        mine = "campaign = (SELECT number FROM campaigns WHERE id = ?)"
        with closing(sqlite3.connect(self._data(role) / "server.db")) as db:
            return db.execute(
                f"SELECT {columns} FROM uploads WHERE {mine} {where} ORDER BY id", (self.campaign.id,)
            ).fetchall()


def is_on_hold(answer: httpx.Response) -> bool:
    return answer.status_code == 503 and "is on hold" in answer.text


def play(nursery: ForkServer, folder: Path, seed: str) -> Outcome:
    """One sequence with two new servers, planned from its seed; raises if a promise is broken."""
    folder.mkdir()
    pair = LivePair(folder, workers="1")
    pair.nursery = nursery
    with pair:
        return _played(pair, folder, seed)


def _played(pair: LivePair, folder: Path, seed: str) -> Outcome:
    rng = random.Random(seed)
    id = rng.randbytes(32)
    campaign = wave_campaign(
        count=WAVES, pooled=[], check_keys=True, min_uploads=1, grid=GRID, id=id, server_commitments=commitments(id)
    )
    pair.create(campaign)
    game = Game(pair, folder, rng, campaign)
    kinds: list[tuple[Callable[[], None], int]] = [
        (game.upload, 6),
        (game.send_again, 2),
        (game.withdraw, 1),
        (game.close, 4),
        (game.kill, 1),
        (game.remember, 2),
        (game.roll_back, 3),
        (game.lie, 2),
    ]
    game.upload()
    game.remember()
    for _ in range(STEPS):
        act = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        for _ in range(3):  # a server that has just started may be busy
            try:
                act()
                break
            except httpx.HTTPError:
                for role in (0, 1):
                    if pair.processes[role] is None:
                        pair.start(role)
    game.close()
    messages = sum(len(known) for known in game.told.values())
    return Outcome(sum(len(ids) for _, _, ids in game.sent), game.closings, game.rollbacks, game.lies, messages)
