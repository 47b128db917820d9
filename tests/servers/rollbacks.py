"""Rollbacks for tests: a peer that lies about histories, one that forgets what it saw, and a decision to go on."""

import sqlite3
from contextlib import closing
from pathlib import Path

from fss_ecdf.cli.server import main
from servers.rollback import Told
from servers.storage.history import MARK_BYTES, Mark
from tests.commands import Done, call
from tests.harness.server_pair import LivePair


def lie(asked: str | None) -> str:
    """What a dishonest server says of histories: that it has seen nothing, and that all is well on its own side."""
    seen = () if asked is None else Told.parse(asked).seen
    return str(Told(seen[-1] if seen else Mark(0, 0, bytes(MARK_BYTES)), (), seen[0] if seen else None))


def forget(pair: LivePair, role: int) -> None:
    """As if this server were dishonest: it does not tell the other one what it has seen of its history."""
    with closing(sqlite3.connect(pair.folder / f"server{role}" / "data" / "server.db", timeout=20)) as db:
        db.execute("DELETE FROM standing WHERE name != 'own'")
        db.commit()


def recovery(pair: LivePair, role: int, what: str, *more: str) -> Done:
    return call(main, "recovery", what, "--config", str(config(pair, role)), *more)


def config(pair: LivePair, role: int = 0) -> Path:
    return pair.folder / f"server{role}" / "server.toml"
