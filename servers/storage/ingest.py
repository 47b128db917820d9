"""Uploads come in: the one write that happens a million times, in as few statements as can be, on the driver itself.

What usually comes is new, so it is inserted and the index says whether anything of it was here: only then is looked up
what, and decided again.
"""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sqlalchemy.engine import Engine
from sqlalchemy.pool import PoolProxiedConnection

from fss_ecdf.campaign.binary_messages import Row
from fss_ecdf.campaign.errors import Problem
from servers.storage import campaigns, dialects, waves
from servers.storage.admission import Failures, NewUploads, Site, UploadContext, decide

_ABOUT = """
SELECT c.number, c.spec, c.deleted, c.stored, c.erased, w.state, w.number,
  (SELECT count(*) FROM uploads WHERE campaign = c.number AND sender = :sender) + (SELECT
    coalesce(sum(people - 1), 0) FROM site_tables WHERE campaign = c.number AND sender = :sender AND NOT excluded),
  EXISTS (SELECT 1 FROM withdrawn WHERE campaign = c.id),
  EXISTS (SELECT 1 FROM excluded WHERE campaign = c.id)
FROM campaigns c LEFT JOIN waves w ON w.campaign = c.id WHERE c.id = :campaign ORDER BY w.number DESC LIMIT 1
"""
_REUSED = "SELECT count(*) FROM withdrawn WHERE campaign = ? AND sender = ? AND was_stored"
_SITE = "SELECT id, label, token, quota, state FROM sites WHERE campaign = ? AND id = ?"
_WITHDRAWN = "SELECT 1 FROM withdrawn WHERE campaign = ? AND id = ?"
_EXCLUDED = "SELECT 1 FROM excluded WHERE campaign = ? AND id = ?"
_LEAF = "SELECT leaf FROM uploads WHERE campaign = ? AND id = ?"
_INSERT = (
    "INSERT INTO uploads (campaign, id, leaf, key, sender, wave) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (campaign, id) DO NOTHING"
)
_TABLE = "INSERT INTO site_tables (campaign, id, people, sender, wave, excluded) VALUES (?, ?, ?, ?, ?, false)"
_PART = "INSERT INTO table_parts (campaign, id, number, share) VALUES (?, ?, ?, ?)"
_COUNT = "UPDATE campaigns SET stored = stored + ? WHERE number = ?"


class Ingest:
    """On a connection of its own; one transaction for all requests, which has the whole database alone."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._turn = engine, threading.Lock()
        self._held: PoolProxiedConnection | None = None

    def add(self, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        with self._turn:
            try:
                return self._add_all(requests)
            except BaseException as error:
                self.close()  # the pool undoes what was begun, or ends a connection that cannot be used again
                if isinstance(error, dialects.sqlite.ERRORS):
                    raise dialects.sqlite.as_problem(error) from None
                raise

    def _add_all(self, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        db = self._connection()
        try:
            return _transact(db, requests, look=False)
        except _StoredAlready:
            db.rollback()
            return _transact(db, requests, look=True)

    def _connection(self) -> sqlite3.Connection:
        if self._held is None:
            self._held = self._engine.raw_connection()
        return cast(sqlite3.Connection, self._held.driver_connection)

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _StoredAlready(Exception):
    """Something that was taken for new is here: the transaction is undone, and everything looked up.

    Undoing one request alone would need a savepoint, which keeps a copy of every page that is changed after it.
    """


def _transact(db: sqlite3.Connection, requests: Sequence[NewUploads], *, look: bool) -> list[Failures | Problem]:
    db.execute("BEGIN IMMEDIATE")
    cursor = db.cursor()
    outcomes = [_add(cursor, request, look=look) for request in requests]
    db.commit()
    return outcomes


def _add(cursor: sqlite3.Cursor, request: NewUploads, *, look: bool) -> Failures | Problem:
    """Store one request, or say what failed; a problem if it was refused whole."""
    try:
        number, facts = _facts(cursor, request)
    except Problem as problem:
        return problem
    verdict = decide(request, facts)
    if look or verdict.refusal is not None or verdict.failures:
        verdict = decide(request, replace(facts, known=_known(cursor, number, request.ids)))
    if verdict.fresh:
        _insert(cursor, number, request, verdict.fresh)
    return list(verdict.failures) if verdict.refusal is None else verdict.refusal


def _facts(cursor: sqlite3.Cursor, request: NewUploads) -> tuple[int, UploadContext]:
    """The campaign's number, and what is known before anything is looked up by its id."""
    about = cursor.execute(_ABOUT, {"campaign": request.campaign, "sender": request.sender}).fetchone()
    if about is None or about[2]:
        raise campaigns.absent(request.campaign, deleted=about is not None)
    number, spec, _, stored, erased, state, wave, used, any_withdrawn, any_excluded = about
    campaign, sender = campaigns.parse(spec), request.sender or ""
    site, reused = None, 0
    gone: set[bytes] = set()
    if campaign.admission == "sites":
        row = cursor.execute(_SITE, (request.campaign, sender)).fetchone()
        site = None if row is None else Site(*row)
    if any_withdrawn:
        reused = cursor.execute(_REUSED, (request.campaign, sender)).fetchone()[0] if sender else 0
        gone |= {i for i in request.ids if cursor.execute(_WITHDRAWN, (request.campaign, i)).fetchone()}
    if any_excluded:
        gone |= {i for i in request.ids if cursor.execute(_EXCLUDED, (request.campaign, i)).fetchone()}
    return number, UploadContext(campaign, state == waves.OPEN, wave, stored, erased, used, reused, site, {}, gone)


def _insert(cursor: sqlite3.Cursor, number: int, request: NewUploads, fresh: Sequence[Row]) -> None:
    """In the order of their ids: every page of the index is changed once, not once for every row."""
    sender, wave = request.sender, request.wave
    rows = [(number, i, leaf, key, sender, wave) for i, leaf, key in sorted(fresh)]
    if cursor.executemany(_INSERT, rows).rowcount != len(rows):
        raise _StoredAlready
    if request.contribution.is_table:
        ((upload_id, _, _),) = fresh
        cursor.execute(_TABLE, (number, upload_id, request.people, sender, wave))
        for place, part in enumerate(request.share):
            cursor.execute(_PART, (number, upload_id, place, part))
    cursor.execute(_COUNT, (len(rows) * request.people, number))


def _known(cursor: sqlite3.Cursor, number: int, ids: Sequence[bytes]) -> dict[bytes, bytes]:
    """The leaves of those of these uploads that are stored."""
    found = ((i, cursor.execute(_LEAF, (number, i)).fetchone()) for i in ids)
    return {i: row[0] for i, row in found if row is not None}
