"""Campaigns as one server has them: what everybody agreed on, tokens, and this server's noise seed."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from campaign.errors import CampaignDeleted, CampaignExists, UnknownCampaign
from campaign.spec import Campaign, to_base64url
from servers.storage.database import Transaction, forget
from servers.storage.schema import CAMPAIGNS, INVITATIONS, JOBS, LEFT_OUT, SITES, UPLOADS, WAVES, WITHDRAWN

NOISE_SEED_BYTES = 32
NEW_WAVE = {"state": "open", "freezes": 0, "agreed": False, "rejected": 0, "erased": False}


@dataclass(frozen=True)
class Entry:
    """A campaign of this server. Secrets do not print."""

    campaign: Campaign
    upload_token: str | None
    noise_seed: bytes
    stored: int
    erased: int

    def __repr__(self) -> str:
        return f"<Entry {to_base64url(self.campaign.id)}>"


class Campaigns:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fixed: dict[bytes, Entry] = {}

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
            db.execute(CAMPAIGNS.insert().values(id=campaign.id, deleted=False, stored=0, erased=0, **about))
            first_wave = 0 if campaign.waves is None else 1
            db.execute(WAVES.insert().values(campaign=campaign.id, number=first_wave, **NEW_WAVE))
            if tokens:
                db.execute(INVITATIONS.insert(), [{"campaign": campaign.id, "token": t} for t in sorted(tokens)])
        return True

    def get(self, campaign_id: bytes) -> Entry:
        with self._engine.connect() as db:
            return entry(db, campaign_id)

    def fixed(self, campaign_id: bytes) -> Entry:
        """A campaign and its tokens, which do not change while it exists; its counts may be old."""
        if campaign_id not in self._fixed:
            self._fixed[campaign_id] = self.get(campaign_id)
        return self._fixed[campaign_id]

    def all(self) -> list[Entry]:
        with self._engine.connect() as db:
            rows = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.deleted.is_(False)))
            return [_as_entry(row) for row in rows]

    def is_invited(self, campaign_id: bytes, token: str) -> bool:
        where = (INVITATIONS.c.campaign == campaign_id) & (INVITATIONS.c.token == token)
        with self._engine.connect() as db:
            return db.execute(sa.select(INVITATIONS.c.token).where(where)).one_or_none() is not None

    def delete(self, campaign_id: bytes) -> None:
        """Erase keys, tokens and noise seed; a tombstone keeps the id from being used again. Can be repeated."""
        with Transaction(self._engine) as db:
            with suppress(CampaignDeleted):
                entry(db, campaign_id)
            for table in (UPLOADS, INVITATIONS, SITES, WITHDRAWN, LEFT_OUT, WAVES, JOBS):
                db.execute(table.delete().where(table.c.campaign == campaign_id))
            blank = {"spec": b"", "upload_token": None, "noise_seed": None, "deleted": True}
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(**blank))
        self._fixed.pop(campaign_id, None)

    def forget_deleted(self) -> None:
        """Nothing of what was deleted is left in the database's log, or a problem: then ask again."""
        forget(self._engine)

    def deleted(self) -> list[bytes]:
        with self._engine.connect() as db:
            return list(db.execute(sa.select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.deleted.is_(True))).scalars())


def entry(db: Connection, campaign_id: bytes) -> Entry:
    row = db.execute(sa.select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id)).one_or_none()
    if row is None:
        raise UnknownCampaign(f"campaign {to_base64url(campaign_id)} is not known here")
    if row.deleted:
        raise CampaignDeleted(f"campaign {to_base64url(campaign_id)} was deleted")
    return _as_entry(row)


def _as_entry(row: sa.Row[tuple[object, ...]]) -> Entry:
    return Entry(_parse(row.spec), row.upload_token, row.noise_seed, row.stored, row.erased)


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
def _parse(spec: bytes) -> Campaign:
    return Campaign.from_json(spec)
