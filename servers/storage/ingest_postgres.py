"""Uploads come in, at several processes at once: what is usual together, with COPY, what is not one by one.

Usual is what is new, and fits: then it is copied into the campaign's partition under a shared lock of the campaign, and
the unique index, the count of stored uploads and the senders' locks decide against all others who do the same. If
anything is not so, all of it is undone and done again with the campaign alone, each request by the same rules as on
any database.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import psycopg
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.binary_messages import Row
from fss_ecdf.campaign.contribution import HASH_BYTES
from fss_ecdf.campaign.errors import Problem
from servers.storage import campaigns, waves
from servers.storage.admission import REFILLS, Failures, NewUploads, Site, UploadContext, decide
from servers.storage.database import Transaction, persistently
from servers.storage.dialects import postgres

_ABOUT = """
SELECT c.number, c.deleted, c.stored, c.erased, w.state, w.number,
  EXISTS (SELECT 1 FROM withdrawn WHERE campaign = c.id), EXISTS (SELECT 1 FROM excluded WHERE campaign = c.id)
FROM campaigns c LEFT JOIN waves w ON w.campaign = c.id WHERE c.id = %s ORDER BY w.number DESC LIMIT 1
"""
_SPEC = "SELECT spec FROM campaigns WHERE id = %s"
_USED = """
SELECT (SELECT count(*) FROM uploads WHERE campaign = %(number)s AND sender = %(sender)s) + (SELECT
  coalesce(sum(people - 1), 0) FROM site_tables WHERE campaign = %(number)s AND sender = %(sender)s AND NOT excluded)
"""
_REUSED = "SELECT count(*) FROM withdrawn WHERE campaign = %s AND sender = %s AND was_stored"
_SITE = "SELECT id, label, token, quota, state FROM sites WHERE campaign = %s AND id = %s"
_WITHDRAWN = "SELECT id FROM withdrawn WHERE campaign = %s AND id = ANY(%s)"
_EXCLUDED = "SELECT id FROM excluded WHERE campaign = %s AND id = ANY(%s)"
_LEAVES = "SELECT id, leaf FROM uploads WHERE campaign = %s AND id = ANY(%s)"
_TABLE = "INSERT INTO site_tables (campaign, id, people, sender, wave, excluded) VALUES (%s, %s, %s, %s, %s, false)"
_PART = "INSERT INTO table_parts (campaign, id, number, share) VALUES (%s, %s, %s, %s)"
_COUNT = """
UPDATE campaigns SET stored = stored + %(new)s
WHERE number = %(number)s AND stored + %(new)s <= %(most)s AND erased + stored + %(new)s <= %(refills)s
"""
_COPY = "COPY {} (campaign, id, leaf, key, sender, wave) FROM STDIN (FORMAT BINARY)"
_COPY_HEAD, _COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_LENGTH = struct.Struct("!i")

Cursor = psycopg.Cursor[Any]
_Sent = tuple[Row, int, str | None]  # an upload, its wave and its sender


class _Unusual(Exception):
    """Not all of it is new and fits."""


@dataclass(frozen=True)
class _About:
    """A campaign as it stands, once its lock is held."""

    number: int
    facts: UploadContext
    any_gone: bool


class Ingest:
    """What cannot change is remembered: a campaign's description."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._specs: dict[bytes, Any] = {}

    def add(self, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        """A transaction for each campaign. For each request: its failures, or the problem that refused it whole."""
        places: dict[bytes, list[int]] = {}
        for place, request in enumerate(requests):
            places.setdefault(request.campaign, []).append(place)
        outcomes: dict[int, Failures | Problem] = {}
        for campaign_id, mine in places.items():
            some = [requests[place] for place in mine]
            outcomes.update(zip(mine, self._of_one(campaign_id, some), strict=True))
        return [outcomes[place] for place in range(len(requests))]

    def close(self) -> None:
        """It keeps no connection."""

    def _of_one(self, campaign_id: bytes, requests: Sequence[NewUploads]) -> Sequence[Failures | Problem]:
        try:
            try:
                if any(request.contribution.is_table for request in requests):
                    raise _Unusual
                return persistently(lambda: self._together(campaign_id, requests))
            except _Unusual:
                return persistently(lambda: self._each(campaign_id, requests))
        except Problem as problem:
            return [problem] * len(requests)

    def _together(self, campaign_id: bytes, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        with Transaction(self._engine, campaign_id, shared=True) as db:
            cursor = _cursor(db)
            about = self._about(cursor, campaign_id)
            senders = sorted({request.sender for request in requests if request.sender is not None})
            postgres.lock_senders(db, campaign_id, senders)
            rows = sorted(_usual(cursor, about, requests))  # in one order everywhere: nobody waits in a circle
            try:
                _insert(cursor, about, rows, len(rows))
            except psycopg.errors.UniqueViolation:
                raise _Unusual from None
        return [[] for _ in requests]

    def _each(self, campaign_id: bytes, requests: Sequence[NewUploads]) -> list[Failures | Problem]:
        with Transaction(self._engine, campaign_id) as db:
            return [self._one(_cursor(db), request) for request in requests]

    def _one(self, cursor: Cursor, request: NewUploads) -> Failures | Problem:
        try:
            about = self._about(cursor, request.campaign)
        except Problem as problem:
            return problem
        known = dict(cursor.execute(_LEAVES, (about.number, request.ids)).fetchall())
        facts = _of_sender(cursor, about, request.sender)
        verdict = decide(request, replace(facts, known=known, gone=_gone(cursor, about, request)))
        if verdict.refusal is not None:
            return verdict.refusal
        if verdict.fresh:
            sent = [(row, request.wave, request.sender) for row in verdict.fresh]
            _insert(cursor, about, sent, len(sent) * request.people)
            if request.contribution.is_table:
                _insert_table(cursor, about.number, request)
        return list(verdict.failures)

    def _about(self, cursor: Cursor, campaign_id: bytes) -> _About:
        found = cursor.execute(_ABOUT, (campaign_id,)).fetchone()
        if found is None or found[1]:
            raise campaigns.absent(campaign_id, deleted=found is not None)
        number, _, stored, erased, state, wave, any_withdrawn, any_excluded = found
        if campaign_id not in self._specs:
            spec = cursor.execute(_SPEC, (campaign_id,)).fetchone()
            assert spec is not None
            self._specs[campaign_id] = campaigns.parse(spec[0])
        campaign, is_open = self._specs[campaign_id], state == waves.OPEN
        facts = UploadContext(campaign, is_open, wave, stored, erased, 0, 0, None, {}, frozenset())
        return _About(number, facts, any_withdrawn or any_excluded)


def _cursor(db: Connection) -> Cursor:
    return cast("psycopg.Connection[Any]", db.connection.driver_connection).cursor()


def _usual(cursor: Cursor, about: _About, requests: Sequence[NewUploads]) -> Iterator[_Sent]:
    """All rows, if every request would be stored whole."""
    used: dict[str | None, UploadContext] = {}
    for request in requests:
        if request.sender not in used:
            used[request.sender] = _of_sender(cursor, about, request.sender)
        facts = used[request.sender]
        verdict = decide(request, facts)
        if verdict.refusal is not None or verdict.failures or _gone(cursor, about, request):
            raise _Unusual
        if request.sender is not None:  # of an open campaign nobody counts who sent how much
            used[request.sender] = replace(facts, used=facts.used + len(request.rows))
        yield from ((row, request.wave, request.sender) for row in request.rows)


def _of_sender(cursor: Cursor, about: _About, sender: str | None) -> UploadContext:
    """With what one sender has sent already."""
    facts, campaign = about.facts, about.facts.campaign
    if sender is None:
        return facts
    site = cursor.execute(_SITE, (campaign.id, sender)).fetchone() if campaign.admission == "sites" else None
    used = cursor.execute(_USED, {"number": about.number, "sender": sender}).fetchone()
    reused = cursor.execute(_REUSED, (campaign.id, sender)).fetchone()
    assert used is not None
    assert reused is not None
    return replace(facts, used=used[0], reused=reused[0], site=None if site is None else Site(*site))


def _gone(cursor: Cursor, about: _About, request: NewUploads) -> set[bytes]:
    """Those of its ids that are not taken again."""
    if not about.any_gone:
        return set()
    ids = request.ids
    found = cursor.execute(_WITHDRAWN, (request.campaign, ids)).fetchall()
    found += cursor.execute(_EXCLUDED, (request.campaign, ids)).fetchall()
    return {row[0] for row in found}


def _insert_table(cursor: Cursor, number: int, request: NewUploads) -> None:
    ((upload_id, _, _),) = request.rows
    cursor.execute(_TABLE, (number, upload_id, request.people, request.sender, request.wave))
    for place, part in enumerate(request.share):
        cursor.execute(_PART, (number, upload_id, place, part))


def _insert(cursor: Cursor, about: _About, rows: Sequence[_Sent], people: int) -> None:
    """All of them; where there is no room, or one is here already, none. The count comes last: others wait for it."""
    with cursor.copy(_COPY.format(postgres.partition(about.number)).encode()) as copy:
        copy.write(_encoded(about.number, rows))
    most = about.facts.campaign.max_uploads
    room = {"new": people, "number": about.number, "most": most, "refills": REFILLS * most}
    if cursor.execute(_COUNT, room).rowcount != 1:
        raise _Unusual


def _encoded(number: int, rows: Sequence[_Sent]) -> bytes:
    """In COPY's own form: a row has so many fields, a field its length and its bytes."""
    head, middle = struct.pack("!hiii", 6, 4, number, 16), _LENGTH.pack(HASH_BYTES)
    senders = {(wave, sender) for _, wave, sender in rows}
    ends = {(wave, sender): _field(sender) + struct.pack("!ii", 4, wave) for wave, sender in senders}
    lengths = {size: _LENGTH.pack(size) for size in {len(key) for (_, _, key), _, _ in rows}}
    each = (
        (head, upload_id, middle, leaf, lengths[len(key)], key, ends[wave, sender])
        for (upload_id, leaf, key), wave, sender in rows
    )
    return b"".join([_COPY_HEAD, *chain.from_iterable(each), _COPY_END])


def _field(text: str | None) -> bytes:
    return _LENGTH.pack(-1) if text is None else _LENGTH.pack(len(text.encode())) + text.encode()
