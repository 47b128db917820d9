"""Campaigns as one server has them: what everybody agreed on, tokens, and this server's noise seed."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import CampaignDeleted, CampaignExists, Problem, UnknownCampaign
from servers.storage import commitments, dialects, history
from servers.storage.database import Transaction, purge_write_ahead_log
from servers.storage.schema import (
    CAMPAIGNS,
    EXCLUDED,
    INVITATIONS,
    JOBS,
    PROPOSED,
    SITE_TABLES,
    SITES,
    TABLE_PARTS,
    UPLOADS,
    WAVES,
    WITHDRAWN,
)

NOISE_SEED_BYTES = 32
# Asked with every upload, so made once.
_INVITED = sa.select(INVITATIONS.c.token).where(
    INVITATIONS.c.campaign == sa.bindparam("campaign"), INVITATIONS.c.token == sa.bindparam("token")
)
NEW_WAVE = {"state": "open", "freeze_number": 0, "operator_agreed": False, "rejected": 0, "erased": False}
NEW_WAVE |= {"abandon_agreed": False, "abandoned": False}


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign of this server. Secrets do not print."""

    campaign: Campaign
    upload_token: str | None
    noise_seed: bytes
    stored: int
    erased: int

    def __repr__(self) -> str:
        return f"<StoredCampaign {to_base64url(self.campaign.id)}>"


class Campaigns:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fixed: dict[bytes, StoredCampaign] = {}

    def add(self, campaign: Campaign, upload_token: str | None, invitations: Iterable[str]) -> bool:
        """Create a campaign with its noise seed and its first wave, or find that it is there already; False then."""
        tokens = set(invitations)
        with Transaction(self._engine) as db:
            row = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign.id)).one_or_none()
            if row is not None:
                _require_same(db, row, campaign, upload_token, tokens)
                return False
            seed = os.urandom(NOISE_SEED_BYTES)
            about = {"spec": campaign.canonical, "upload_token": upload_token, "noise_seed": seed}
            row_of = CAMPAIGNS.insert().values(id=campaign.id, deleted=False, stored=0, erased=0, **about)
            number = db.execute(row_of.returning(CAMPAIGNS.c.number)).scalar_one()
            dialects.of(self._engine).add_campaign(db, number)
            first_wave = 0 if campaign.waves is None else 1
            db.execute(WAVES.insert().values(campaign=campaign.id, number=first_wave, **NEW_WAVE))
            history.advance(db)
            if tokens:
                db.execute(INVITATIONS.insert(), [{"campaign": campaign.id, "token": t} for t in sorted(tokens)])
        return True

    def get(self, campaign_id: bytes) -> StoredCampaign:
        with self._engine.connect() as db:
            return entry(db, campaign_id)

    def known(self, campaign_id: bytes) -> StoredCampaign | None:
        """What `fixed` has in memory."""
        return self._fixed.get(campaign_id)

    def fixed(self, campaign_id: bytes) -> StoredCampaign:
        """A campaign and its tokens, which do not change while it exists; its counts may be old."""
        if campaign_id not in self._fixed:
            self._fixed[campaign_id] = self.get(campaign_id)
        return self._fixed[campaign_id]

    def all(self) -> list[StoredCampaign]:
        with self._engine.connect() as db:
            rows = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.deleted.is_(False)))
            return [_as_entry(row) for row in rows]

    def is_invited(self, campaign_id: bytes, token: str) -> bool:
        with self._engine.connect() as db:
            return db.execute(_INVITED, {"campaign": campaign_id, "token": token}).first() is not None

    def delete(self, campaign_id: bytes) -> None:
        """Erase keys, tokens, noise seed and HPKE key; a tombstone keeps the id from being used again. Repeatable."""
        with Transaction(self._engine) as db:
            with suppress(CampaignDeleted):
                entry(db, campaign_id)
            number = db.execute(sa.select(CAMPAIGNS.c.number).where(CAMPAIGNS.c.id == campaign_id)).scalar_one()
            dialects.of(self._engine).drop_uploads(db, number)
            commitments.erase(db, campaign_id)
            for table in (SITE_TABLES, TABLE_PARTS):
                db.execute(table.delete().where(table.c.campaign == number))
            for table in (INVITATIONS, SITES, WITHDRAWN, EXCLUDED, PROPOSED, WAVES, JOBS):
                db.execute(table.delete().where(table.c.campaign == campaign_id))
            blank = {"spec": b"", "upload_token": None, "noise_seed": None, "deleted": True}
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(**blank))
            history.advance(db, even_on_hold=True)
        self.forget(campaign_id)

    def in_memory(self) -> set[bytes]:
        """The campaigns that `fixed` has in memory."""
        return set(self._fixed)

    def forget(self, campaign_id: bytes) -> None:
        """Nothing of it, its noise seed among it, stays in memory."""
        self._fixed.pop(campaign_id, None)

    def gone(self, ids: Collection[bytes]) -> list[bytes]:
        """Those of these campaigns that are deleted, or not here any more."""
        if not ids:
            return []
        here = CAMPAIGNS.c.id.in_(ids) & CAMPAIGNS.c.deleted.is_(False)
        with self._engine.connect() as db:
            return sorted(set(ids) - set(db.execute(sa.select(CAMPAIGNS.c.id).where(here)).scalars()))

    def forget_deleted(self) -> None:
        """Nothing of what was deleted is left in the database's log, or a problem: then ask again."""
        purge_write_ahead_log(self._engine)

    def deleted(self) -> list[bytes]:
        with self._engine.connect() as db:
            return list(db.execute(sa.select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.deleted.is_(True))).scalars())


def entry(db: Connection, campaign_id: bytes) -> StoredCampaign:
    row = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id)).one_or_none()
    if row is None or row.deleted:
        raise absent(campaign_id, deleted=row is not None)
    return _as_entry(row)


def absent(campaign_id: bytes, *, deleted: bool) -> Problem:
    """Why a campaign is not here."""
    if deleted:
        return CampaignDeleted(f"campaign {to_base64url(campaign_id)} was deleted")
    return UnknownCampaign(f"campaign {to_base64url(campaign_id)} is not known here")


def number_of(campaign_id: bytes) -> sa.ScalarSelect[int]:
    """What its uploads know a campaign by."""
    return sa.select(CAMPAIGNS.c.number).where(CAMPAIGNS.c.id == campaign_id).scalar_subquery()


def uploads_of(campaign_id: bytes, wave: int = 0) -> sa.ColumnElement[bool]:
    """The uploads of a campaign, or of one of its waves where it has several: those have an index of their own."""
    mine = UPLOADS.c.campaign == number_of(campaign_id)
    return mine & (UPLOADS.c.wave == wave) & (UPLOADS.c.wave > 0) if wave else mine


def _as_entry(row: sa.Row[tuple[object, ...]]) -> StoredCampaign:
    return StoredCampaign(parse(row.spec), row.upload_token, row.noise_seed, row.stored, row.erased)


def _require_same(
    db: Connection, row: sa.Row[tuple[object, ...]], campaign: Campaign, upload_token: str | None, tokens: set[str]
) -> None:
    name = to_base64url(campaign.id)
    if row.deleted:
        raise CampaignDeleted(f"campaign {name} was deleted")
    if row.spec != campaign.canonical:
        raise CampaignExists(f"campaign {name} exists with another description")
    known = set(db.execute(sa.select(INVITATIONS.c.token).where(INVITATIONS.c.campaign == campaign.id)).scalars())
    if row.upload_token != upload_token or known != tokens:
        raise CampaignExists(f"campaign {name} exists with other tokens")


@lru_cache(maxsize=256)
def parse(spec: bytes) -> Campaign:
    return Campaign.from_json(spec)
