"""What one server keeps, and what may be done to it: campaigns, uploads, sealing, the ledger.

One thread writes (`Store.write`), so that transactions do not wait for each other's locks and many small uploads can
share one commit; any thread may read.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from campaign.errors import (
    CampaignDeleted,
    CampaignExists,
    CampaignFull,
    CampaignSealed,
    InvitationSpent,
    NotSealed,
    PeerMismatch,
    Problem,
    SealNotAgreed,
    TooFewUploads,
    UnknownCampaign,
    UploadConflict,
    UploadWithdrawn,
)
from campaign.spec import Campaign, to_base64url
from servers.storage.database import (
    CAMPAIGNS,
    INVITATIONS,
    LEDGER,
    LEFT_OUT,
    META,
    UPLOADS,
    WITHDRAWN,
    Transaction,
    check_file,
    damaged,
    forget,
    keep_private,
    open_engine,
)

OPEN, FROZEN, SEALED, DELETED = "open", "frozen", "sealed", "deleted"

# SQLite takes at most 32766 variables in a statement.
_BATCH = 10_000
# How often a campaign or an invitation may be filled anew by withdrawing: it bounds the ids to be remembered.
REFILLS = 10
# Ids that one token may withdraw before they arrived, beyond as many as it may upload.
SPARE_WITHDRAWALS = 1000


@dataclass(frozen=True)
class Entry:
    """A campaign as one server has it. Secrets do not print."""

    campaign: Campaign
    state: str
    stored: int
    freezes: int
    agreed: bool
    erased: int
    upload_token: str | None
    noise_seed: bytes
    sealed_count: int | None
    sealed_set: bytes | None
    orphans: int | None
    file_digest: bytes | None

    def __repr__(self) -> str:
        return f"<Entry {to_base64url(self.campaign.id)} {self.state}>"


@dataclass(frozen=True)
class NewUploads:
    """Uploads of one request: ids and keys, and the invitation they came with."""

    campaign: bytes
    rows: Sequence[tuple[bytes, bytes]]
    invitation: str | None = None
    refusal: Problem | None = None  # why nothing new may be added now; what is stored already is still acknowledged

    def __repr__(self) -> str:
        return f"<NewUploads {len(self.rows)}>"


class Store:
    """One server's database."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        try:
            check_file(self._engine)
            META.create_all(self._engine)
            self._check_campaigns()
            with self._engine.connect() as db:
                # Most campaigns have none, and their uploads need not be looked up.
                self._has_withdrawn = set(db.execute(sa.select(WITHDRAWN.c.campaign).distinct()).scalars())
        except DBAPIError as error:
            raise damaged(self._engine, str(error.orig)) from None
        except Problem as problem:
            raise damaged(self._engine, problem.detail) from None
        keep_private(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def _check_campaigns(self) -> None:
        """Every campaign can be read, and open ones have as many uploads as they took; sealed ones have a checksum."""
        with self._engine.connect() as db:
            counted = sa.select(UPLOADS.c.campaign, sa.func.count()).group_by(UPLOADS.c.campaign)
            rows = {row[0]: row[1] for row in db.execute(counted)}
        for entry in self.entries():
            if rows.pop(entry.campaign.id, 0) != entry.stored and entry.state != SEALED:
                raise damaged(self._engine, f"campaign {to_base64url(entry.campaign.id)} has lost or gained uploads")
        if rows:
            raise damaged(self._engine, f"uploads of {len(rows)} unknown campaigns")

    # Campaigns

    def add_campaign(self, campaign: Campaign, upload_token: str | None, invitations: Iterable[str]) -> bool:
        """Create a campaign with its noise seed, or find that it is there already; False then."""
        with self._transaction() as db:
            row = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign.id)).one_or_none()
            if row is not None:
                if row.state == DELETED:
                    raise CampaignDeleted(f"campaign {to_base64url(campaign.id)} was deleted")
                if row.spec != campaign.canonical:
                    raise CampaignExists(f"campaign {to_base64url(campaign.id)} exists with another description")
                mine = INVITATIONS.c.campaign == campaign.id
                known = set(db.execute(sa.select(INVITATIONS.c.token).where(mine)).scalars())
                if row.upload_token != upload_token or known != set(invitations):
                    raise CampaignExists(f"campaign {to_base64url(campaign.id)} exists with other tokens")
                return False
            db.execute(
                CAMPAIGNS.insert().values(
                    id=campaign.id,
                    spec=campaign.canonical,
                    state=OPEN,
                    stored=0,
                    freezes=0,
                    agreed=False,
                    erased=0,
                    upload_token=upload_token,
                    noise_seed=os.urandom(32),
                )
            )
            tokens = [{"campaign": campaign.id, "token": token} for token in sorted(set(invitations))]
            if tokens:
                db.execute(INVITATIONS.insert(), tokens)
        return True

    def entry(self, campaign_id: bytes) -> Entry:
        with self._engine.connect() as db:
            return _entry(db, campaign_id)

    def entries(self) -> list[Entry]:
        with self._engine.connect() as db:
            ids = db.execute(sa.select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.state != DELETED)).scalars().all()
            return [_entry(db, i) for i in ids]

    def is_invited(self, campaign_id: bytes, token: str) -> bool:
        where = (INVITATIONS.c.campaign == campaign_id) & (INVITATIONS.c.token == token)
        with self._engine.connect() as db:
            return db.execute(sa.select(INVITATIONS.c.token).where(where)).one_or_none() is not None

    def delete_campaign(self, campaign_id: bytes) -> None:
        """Erase keys, tokens and noise seed; a tombstone keeps the id from being used again."""
        with self._transaction() as db:
            _entry(db, campaign_id)
            for table in (UPLOADS, INVITATIONS, WITHDRAWN, LEFT_OUT):
                db.execute(table.delete().where(table.c.campaign == campaign_id))
            blank = dict.fromkeys(("upload_token", "noise_seed", "sealed_set", "file_digest"))
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(state=DELETED, spec=b"", **blank))
        forget(self._engine)

    # Uploads

    def add_uploads(self, requests: Sequence[NewUploads]) -> list[list[tuple[bytes, Problem]] | Problem]:
        """Store many requests in one transaction. For each: its failures, or the problem that refused it whole."""
        with self._transaction() as db:
            return [self._add(db, request) for request in requests]

    def _add(self, db: Connection, request: NewUploads) -> list[tuple[bytes, Problem]] | Problem:
        try:
            entry = _entry(db, request.campaign)
        except Problem as problem:
            return problem
        ids = [upload_id for upload_id, _ in request.rows]
        known = _keys(db, request.campaign, ids)
        failures: list[tuple[bytes, Problem]] = []
        fresh = []
        for upload_id, key in request.rows:
            if upload_id not in known:
                fresh.append((upload_id, key))
            elif known[upload_id] != key:
                failures.append((upload_id, UploadConflict("an upload with this id and other bytes is stored already")))
        if request.campaign in self._has_withdrawn and (
            gone := _withdrawn(db, request.campaign, request.invitation, ids)
        ):
            failures += [(i, UploadWithdrawn("an upload with this id was withdrawn")) for i, _ in fresh if i in gone]
            fresh = [row for row in fresh if row[0] not in gone]
        if not fresh:
            return failures
        if entry.state != OPEN:
            return CampaignSealed("the campaign is being sealed or is sealed; nothing can be added")
        if request.refusal is not None:
            return request.refusal
        if (refusal := self._refusal(db, entry, request, len(fresh))) is not None:
            return [*failures, *((upload_id, refusal) for upload_id, _ in fresh)]
        db.execute(
            UPLOADS.insert(),
            [{"campaign": request.campaign, "id": i, "key": k, "invitation": request.invitation} for i, k in fresh],
        )
        mine = CAMPAIGNS.c.id == request.campaign
        db.execute(CAMPAIGNS.update().where(mine).values(stored=CAMPAIGNS.c.stored + len(fresh)))
        return failures

    @staticmethod
    def _refusal(db: Connection, entry: Entry, request: NewUploads, fresh: int) -> Problem | None:
        campaign = entry.campaign
        if entry.stored + fresh > campaign.max_uploads:
            return CampaignFull(f"the campaign takes {campaign.max_uploads} uploads and has {entry.stored}")
        if entry.erased + entry.stored + fresh > REFILLS * campaign.max_uploads:
            return CampaignFull(f"{entry.erased} uploads of this campaign were withdrawn; it takes no more")
        if request.invitation is not None:
            mine = (UPLOADS.c.campaign == campaign.id) & (UPLOADS.c.invitation == request.invitation)
            used = _count(db, mine)
            if used + fresh > campaign.max_instances:
                return InvitationSpent(f"an invitation is good for {campaign.max_instances} uploads; {used} are stored")
            erased = _remembered(db, campaign.id, request.invitation, was_stored=True)
            if erased + used + fresh > REFILLS * campaign.max_instances:
                return InvitationSpent(f"{erased} uploads of this invitation were withdrawn; it takes no more")
        return None

    def withdraw(self, campaign_id: bytes, ids: Sequence[bytes], invitation: str | None) -> tuple[int, list[bytes]]:
        """Erase uploads at their party's wish, while the campaign is open.

        They are not taken again from the same token: a copy may still be on its way. So ids that are not stored are
        remembered too, but no more of them than the token may upload. Uploads of another token are left alone.
        Returns how many were erased, and the ids that could not be remembered.
        """
        token, wanted = invitation or "", sorted(set(ids))
        with self._transaction() as db:
            entry = _entry(db, campaign_id)
            if entry.state != OPEN:
                raise CampaignSealed("the campaign is being sealed or is sealed; nothing can be withdrawn")
            owners = _owners(db, campaign_id, wanted)
            mine = [i for i in wanted if owners.get(i, "nobody") == invitation]
            absent = set(wanted) - owners.keys() - _withdrawn(db, campaign_id, invitation, wanted)
            room = _room(entry.campaign, invitation) - _remembered(db, campaign_id, invitation, was_stored=False)
            early = sorted(absent)[: max(0, room)]
            self._has_withdrawn.add(campaign_id)
            rows = [(i, True) for i in mine] + [(i, False) for i in early]
            if rows:
                db.execute(
                    WITHDRAWN.insert(),
                    [{"campaign": campaign_id, "token": token, "id": i, "was_stored": stored} for i, stored in rows],
                )
            for start in range(0, len(mine), _BATCH):
                some = UPLOADS.c.id.in_(mine[start : start + _BATCH])
                db.execute(UPLOADS.delete().where(UPLOADS.c.campaign == campaign_id, some))
            counts = {"stored": CAMPAIGNS.c.stored - len(mine), "erased": CAMPAIGNS.c.erased + len(mine)}
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(**counts))
        if mine:
            forget(self._engine)
        return len(mine), sorted(absent - set(early))

    def ids(self, campaign_id: bytes) -> bytes:
        """The ids of all uploads, sorted, one after the other."""
        with self._engine.connect() as db:
            select = sa.select(UPLOADS.c.id).where(UPLOADS.c.campaign == campaign_id).order_by(UPLOADS.c.id)
            return b"".join(db.execute(select).scalars())

    def keys(self, campaign_id: bytes, ids: Sequence[bytes]) -> list[bytes]:
        """The keys of these uploads, in the order given."""
        with self._engine.connect() as db:
            found = _keys(db, campaign_id, ids)
        return [found[i] for i in ids]

    # Sealing

    def agree(self, campaign_id: bytes) -> None:
        """This server's operator wants the campaign sealed; good for one freeze, by whichever server asks for it."""
        with self._transaction() as db:
            if _entry(db, campaign_id).state == OPEN:
                db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(agreed=True))

    def freeze(self, campaign_id: bytes, *, closed: bool) -> Entry:
        """Take no more uploads: at closing time, or because this server's own operator agreed, never before.

        Every freeze has a number, so that nobody acts on what an older one saw.
        """
        with self._transaction() as db:
            entry = _entry(db, campaign_id)
            if entry.state == OPEN:
                if not (closed or entry.agreed):
                    raise SealNotAgreed("this server's operator has not agreed to sealing; uploads go on")
                mine = CAMPAIGNS.c.id == campaign_id
                db.execute(CAMPAIGNS.update().where(mine).values(state=FROZEN, freezes=CAMPAIGNS.c.freezes + 1))
            return _entry(db, campaign_id)

    def thaw(self, campaign_id: bytes, freeze: int) -> None:
        """Take uploads again, if this freeze is still the last word. The next one needs the operator's word again."""
        with self._transaction() as db:
            _require_freeze(_entry(db, campaign_id), freeze)
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(state=OPEN, agreed=False))

    def seal(self, campaign_id: bytes, freeze: int, ids: Sequence[bytes], key_set: bytes) -> Entry:
        """Fix the set of uploads for good. What it leaves out is kept apart until this server's operator confirms."""
        with self._transaction() as db:
            entry = _entry(db, campaign_id)
            if entry.state == SEALED:
                if entry.sealed_set != key_set:
                    raise CampaignSealed("the campaign is sealed with another set of uploads")
                return entry
            _require_freeze(entry, freeze)
            agreed = set(ids)
            if len(agreed) < entry.campaign.min_uploads:
                raise TooFewUploads(f"{len(agreed)} uploads are fewer than the {entry.campaign.min_uploads} promised")
            here = set(db.execute(sa.select(UPLOADS.c.id).where(UPLOADS.c.campaign == campaign_id)).scalars())
            if not agreed <= here:
                raise PeerMismatch(f"{len(agreed - here)} uploads of the agreed set are not here")
            orphans = sorted(here - agreed)
            for start in range(0, len(orphans), _BATCH):
                some = (UPLOADS.c.campaign == campaign_id) & UPLOADS.c.id.in_(orphans[start : start + _BATCH])
                left = sa.select(UPLOADS.c.campaign, UPLOADS.c.id, UPLOADS.c.key).where(some)
                db.execute(LEFT_OUT.insert().from_select(["campaign", "id", "key"], left))
                db.execute(UPLOADS.delete().where(some))
            db.execute(WITHDRAWN.delete().where(WITHDRAWN.c.campaign == campaign_id))
            count = len(agreed)
            values = {"sealed_count": count, "sealed_set": key_set, "orphans": len(orphans), "stored": count}
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(state=SEALED, **values))
            return _entry(db, campaign_id)

    def left_out(self, campaign_id: bytes) -> int:
        """How many uploads that were left out of the set are still kept."""
        with self._engine.connect() as db:
            mine = LEFT_OUT.c.campaign == campaign_id
            return int(db.execute(sa.select(sa.func.count()).select_from(LEFT_OUT).where(mine)).scalar_one())

    def erase_left_out(self, campaign_id: bytes) -> int:
        """The operator confirms the sealing: what was left out is erased. Returns how many uploads that were."""
        with self._transaction() as db:
            if _entry(db, campaign_id).state != SEALED:
                raise NotSealed("nothing has been left out yet; the campaign is not sealed")
            erased = db.execute(LEFT_OUT.delete().where(LEFT_OUT.c.campaign == campaign_id)).rowcount
        if erased:
            forget(self._engine)
        return erased

    def set_file_digest(self, campaign_id: bytes, digest: bytes) -> None:
        with self._transaction() as db:
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(file_digest=digest))

    # Ledger

    def spend(self, campaign_id: bytes, purpose: str, epsilon: float, limit: float, now: datetime) -> float | None:
        """Record an expense once. Returns what is spent in all, or None if it would exceed the limit."""
        mine = LEDGER.c.campaign == campaign_id
        with self._transaction() as db:
            found = db.execute(sa.select(LEDGER).where(mine))
            rows: dict[str, float] = {row.purpose: row.epsilon for row in found}
            if purpose in rows:
                return sum(rows.values())
            # Sums of a few doubles: allow for their rounding, far below any epsilon that means something.
            if sum(rows.values()) + epsilon > limit + 1e-9:
                return None
            at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
            db.execute(LEDGER.insert().values(campaign=campaign_id, purpose=purpose, epsilon=epsilon, at=at))
            return sum(rows.values()) + epsilon

    def spent(self, campaign_id: bytes) -> dict[str, float]:
        with self._engine.connect() as db:
            rows = db.execute(sa.select(LEDGER).where(LEDGER.c.campaign == campaign_id))
            return {row.purpose: row.epsilon for row in rows}

    def _transaction(self) -> Transaction:
        return Transaction(self._engine)


def _entry(db: Connection, campaign_id: bytes) -> Entry:
    row = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id)).one_or_none()
    if row is None:
        raise UnknownCampaign(f"campaign {to_base64url(campaign_id)} is not known here")
    if row.state == DELETED:
        raise CampaignDeleted(f"campaign {to_base64url(campaign_id)} was deleted")
    return Entry(
        campaign=_parse(row.spec),
        state=row.state,
        stored=row.stored,
        freezes=row.freezes,
        agreed=row.agreed,
        erased=row.erased,
        upload_token=row.upload_token,
        noise_seed=row.noise_seed,
        sealed_count=row.sealed_count,
        sealed_set=row.sealed_set,
        orphans=row.orphans,
        file_digest=row.file_digest,
    )


def _require_freeze(entry: Entry, freeze: int) -> None:
    if entry.state != FROZEN or entry.freezes != freeze:
        raise CampaignSealed("the campaign has been opened or sealed by somebody else meanwhile; seal it again")


def _keys(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> dict[bytes, bytes]:
    """The keys of those of these uploads that are stored."""
    found: dict[bytes, bytes] = {}
    for start in range(0, len(ids), _BATCH):
        some = UPLOADS.c.id.in_(ids[start : start + _BATCH])
        rows = db.execute(sa.select(UPLOADS.c.id, UPLOADS.c.key).where(UPLOADS.c.campaign == campaign_id, some))
        found.update((row.id, row.key) for row in rows)
    return found


def _owners(db: Connection, campaign_id: bytes, ids: Sequence[bytes]) -> dict[bytes, str | None]:
    """The invitation (or None) of each of these uploads that is stored."""
    found: dict[bytes, str | None] = {}
    for start in range(0, len(ids), _BATCH):
        some = UPLOADS.c.id.in_(ids[start : start + _BATCH])
        rows = db.execute(sa.select(UPLOADS.c.id, UPLOADS.c.invitation).where(UPLOADS.c.campaign == campaign_id, some))
        found.update((row.id, row.invitation) for row in rows)
    return found


def _by_token(campaign_id: bytes, invitation: str | None) -> sa.ColumnElement[bool]:
    return (WITHDRAWN.c.campaign == campaign_id) & (WITHDRAWN.c.token == (invitation or ""))


def _withdrawn(db: Connection, campaign_id: bytes, invitation: str | None, ids: Sequence[bytes]) -> set[bytes]:
    """Those of these ids that the same token withdrew."""
    found: set[bytes] = set()
    for start in range(0, len(ids), _BATCH):
        some = _by_token(campaign_id, invitation) & WITHDRAWN.c.id.in_(ids[start : start + _BATCH])
        found.update(db.execute(sa.select(WITHDRAWN.c.id).where(some)).scalars())
    return found


def _remembered(db: Connection, campaign_id: bytes, invitation: str | None, *, was_stored: bool) -> int:
    mine = _by_token(campaign_id, invitation) & (WITHDRAWN.c.was_stored == was_stored)
    return int(db.execute(sa.select(sa.func.count()).select_from(WITHDRAWN).where(mine)).scalar_one())


def _room(campaign: Campaign, invitation: str | None) -> int:
    """How many ids a token may withdraw that have not arrived."""
    return SPARE_WITHDRAWALS + (campaign.max_uploads if invitation is None else campaign.max_instances)


def _count(db: Connection, where: sa.ColumnElement[bool]) -> int:
    return int(db.execute(sa.select(sa.func.count()).select_from(UPLOADS).where(where)).scalar_one())


@lru_cache(maxsize=256)
def _parse(spec: bytes) -> Campaign:
    return Campaign.from_json(spec)
