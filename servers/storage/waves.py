"""Waves: the sets of uploads that are frozen and sealed together, and what was left out of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from campaign.errors import CampaignSealed, NotSealed, PeerMismatch, SealNotAgreed, TooFewUploads
from servers.storage import campaigns, jobs
from servers.storage.database import BATCH, Transaction, forget
from servers.storage.schema import CAMPAIGNS, LEFT_OUT, UPLOADS, WAVES, WITHDRAWN

OPEN, FROZEN, SEALED = "open", "frozen", "sealed"


@dataclass(frozen=True)
class SealedSet:
    """The uploads that a wave consists of, for good."""

    count: int
    checksum: bytes  # of the ids, on both servers the same
    orphans: int  # that were left out here
    key_file: bytes | None  # the digest of this server's keys, once they are in one file


@dataclass(frozen=True)
class Wave:
    """Where one wave of a campaign stands on this server."""

    number: int
    state: str
    freezes: int
    agreed: bool
    set: SealedSet | None

    @property
    def sealed(self) -> SealedSet:
        if self.set is None:
            raise NotSealed("the campaign takes uploads until it is sealed; only then can it be asked")
        return self.set


class Waves:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, campaign_id: bytes, number: int = 0) -> Wave:
        with self._engine.connect() as db:
            return wave(db, campaign_id, number)

    def agree(self, campaign_id: bytes) -> None:
        """This server's operator wants the campaign sealed; good for one freeze, by whichever server asks for it."""
        with Transaction(self._engine) as db:
            current = wave(db, campaign_id)
            if current.state == OPEN:
                _set(db, campaign_id, current, agreed=True)

    def freeze(self, campaign_id: bytes, *, closed: bool) -> Wave:
        """Take no more uploads: at closing time, or because this server's own operator agreed, never before.

        Every freeze has a number, so that nobody acts on what an older one saw.
        """
        with Transaction(self._engine) as db:
            current = wave(db, campaign_id)
            if current.state != OPEN:
                return current
            if not (closed or current.agreed):
                raise SealNotAgreed("this server's operator has not agreed to sealing; uploads go on")
            _set(db, campaign_id, current, state=FROZEN, freezes=current.freezes + 1)
            return wave(db, campaign_id)

    def thaw(self, campaign_id: bytes, freeze: int) -> None:
        """Take uploads again, if this freeze is still the last word. The next one needs the operator's word again."""
        with Transaction(self._engine) as db:
            current = wave(db, campaign_id)
            _require_freeze(current, freeze)
            _set(db, campaign_id, current, state=OPEN, agreed=False)

    def seal(self, campaign_id: bytes, freeze: int, ids: Sequence[bytes], checksum: bytes) -> Wave:
        """Fix the set for good. What it leaves out is kept apart until this server's operator confirms.

        The job that evaluates it is there in the same moment, so that no crash can come between.
        """
        with Transaction(self._engine) as db:
            current = wave(db, campaign_id)
            if current.state == SEALED:
                if current.sealed.checksum != checksum:
                    raise CampaignSealed("the campaign is sealed with another set of uploads")
                return current
            _require_freeze(current, freeze)
            agreed, least = set(ids), campaigns.entry(db, campaign_id).campaign.min_uploads
            if len(agreed) < least:
                raise TooFewUploads(f"{len(agreed)} uploads are fewer than the {least} promised")
            orphans = _leave_out(db, campaign_id, agreed)
            db.execute(WITHDRAWN.delete().where(WITHDRAWN.c.campaign == campaign_id))
            db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(stored=len(agreed)))
            about = {"sealed_count": len(agreed), "sealed_set": checksum, "orphans": orphans}
            _set(db, campaign_id, current, state=SEALED, **about)
            jobs.add(db, campaign_id, current.number)
            return wave(db, campaign_id)

    def keep_key_file(self, campaign_id: bytes, digest: bytes) -> None:
        with Transaction(self._engine) as db:
            _set(db, campaign_id, wave(db, campaign_id), key_file=digest)

    def left_out(self, campaign_id: bytes) -> int:
        """How many uploads that were left out of the set are still kept."""
        mine = LEFT_OUT.c.campaign == campaign_id
        with self._engine.connect() as db:
            return int(db.execute(sa.select(sa.func.count()).select_from(LEFT_OUT).where(mine)).scalar_one())

    def erase_left_out(self, campaign_id: bytes) -> int:
        """The operator confirms the sealing: what was left out is erased. Returns how many uploads that were."""
        with Transaction(self._engine) as db:
            if wave(db, campaign_id).state != SEALED:
                raise NotSealed("nothing has been left out yet; the campaign is not sealed")
            erased = db.execute(LEFT_OUT.delete().where(LEFT_OUT.c.campaign == campaign_id)).rowcount
        forget(self._engine)  # also where nothing is left: this may be asked again because the log was not emptied
        return erased


def wave(db: Connection, campaign_id: bytes, number: int = 0) -> Wave:
    mine = (WAVES.c.campaign == campaign_id) & (WAVES.c.number == number)
    row = db.execute(sa.select(WAVES).where(mine)).one_or_none()
    if row is None:
        campaigns.entry(db, campaign_id)  # says whether it is unknown or deleted
        raise LookupError(f"wave {number}")
    fixed = None
    if row.state == SEALED:
        fixed = SealedSet(row.sealed_count, row.sealed_set, row.orphans, row.key_file)
    return Wave(row.number, row.state, row.freezes, row.agreed, fixed)


def _set(db: Connection, campaign_id: bytes, current: Wave, **values: object) -> None:
    mine = (WAVES.c.campaign == campaign_id) & (WAVES.c.number == current.number)
    db.execute(WAVES.update().where(mine).values(**values))


def _require_freeze(current: Wave, freeze: int) -> None:
    if current.state != FROZEN or current.freezes != freeze:
        raise CampaignSealed("the campaign has been opened or sealed by somebody else meanwhile; seal it again")


def _leave_out(db: Connection, campaign_id: bytes, agreed: set[bytes]) -> int:
    """Move what is not in the agreed set aside; returns how many uploads that are."""
    here = set(db.execute(sa.select(UPLOADS.c.id).where(UPLOADS.c.campaign == campaign_id)).scalars())
    if not agreed <= here:
        raise PeerMismatch(f"{len(agreed - here)} uploads of the agreed set are not here")
    orphans = sorted(here - agreed)
    for start in range(0, len(orphans), BATCH):
        some = (UPLOADS.c.campaign == campaign_id) & UPLOADS.c.id.in_(orphans[start : start + BATCH])
        left = sa.select(UPLOADS.c.campaign, UPLOADS.c.id, UPLOADS.c.key).where(some)
        db.execute(LEFT_OUT.insert().from_select(["campaign", "id", "key"], left))
        db.execute(UPLOADS.delete().where(some))
    return len(orphans)
