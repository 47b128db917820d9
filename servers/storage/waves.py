"""Waves: the sets of uploads that are frozen, checked and sealed together, and what was left out of them.

A plain campaign has one, number 0. Where a campaign has waves, they are numbered from 1; the newest takes uploads, and
the one before it is frozen in the same transaction that opens it, so that there is no gap. An upload is for one wave,
which its party chose: it never moves to another, where it would meet a second challenge (docs/security.md). What only
one server has of a wave is excluded, and its party sends it again with new keys.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import AgreementPending, CampaignSealed, NotReady, NotSealed, Problem, TooFewUploads
from servers.storage import campaigns, excluded_uploads, history, jobs, tables
from servers.storage.database import Transaction, purge_write_ahead_log
from servers.storage.schema import CAMPAIGNS, EXCLUDED, PROPOSED, WAVES, WITHDRAWN

# An unchecked campaign goes from frozen to sealed at once.
OPEN, FROZEN, CHECKING, SEALED = "open", "frozen", "checking", "sealed"


class StateChanged(Exception):
    """Somebody else has gone on with this wave: whoever was stopped for so long must not write over what came of it."""


@dataclass(frozen=True)
class UploadSet:
    """The uploads that a wave consists of: for good once it is sealed, and while they are checked those that may be."""

    count: int  # people whose values it is of: the public n
    checksum: bytes  # of the ids, on both servers the same
    unmatched: int  # people whose values were left out here
    checked: bytes | None  # the checksum of the ids that were checked, if they were
    key_file: bytes | None  # the digest of this server's keys, once they are in one file
    tables: int = 0  # how many of the uploads are tables of sites
    in_tables: int = 0  # and how many people those are of

    @property
    def keys(self) -> int:
        """How many of the uploads are keys, of one person each."""
        return self.count - self.in_tables

    @property
    def contributions(self) -> int:
        return self.keys + self.tables


@dataclass(frozen=True)
class Wave:
    """Where one wave of a campaign stands on this server."""

    number: int
    state: str
    freeze_number: int
    operator_agreed: bool
    rejected: int  # people whose values did not pass the check, in this and earlier tries
    set: UploadSet | None
    peer_seed: bytes | None = field(default=None, repr=False)  # the other server's part of its challenge
    erased: bool = False  # its keys
    abandon_agreed: bool = False  # this server's operator has agreed to abandon it
    abandoned: bool = False  # both have: its set is empty

    @property
    def sealed(self) -> UploadSet:
        if self.set is None or self.state != SEALED:
            raise NotSealed("the campaign takes uploads until it is sealed; only then can it be asked")
        return self.set


def _nothing() -> None: ...


class Waves:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, campaign_id: bytes, number: int | None = None) -> Wave:
        """One wave; the newest if none is named."""
        with self._engine.connect() as db:
            return wave(db, campaign_id, number)

    def all(self, campaign_id: bytes) -> list[Wave]:
        """A campaign's waves, in their order."""
        with self._engine.connect() as db:
            mine = sa.select(WAVES).where(WAVES.c.campaign == campaign_id).order_by(WAVES.c.number)
            return [_as_wave(row) for row in db.execute(mine)]

    def not_fixed(self) -> list[tuple[bytes, int]]:
        """Campaigns, and the first wave of each whose set of uploads is not fixed."""
        first = sa.select(WAVES.c.campaign, sa.func.min(WAVES.c.number)).where(WAVES.c.state.in_((OPEN, FROZEN)))
        with self._engine.connect() as db:
            return [(row[0], row[1]) for row in db.execute(first.group_by(WAVES.c.campaign))]

    def agree(self, campaign_id: bytes, number: int = 0) -> None:
        """This server's operator wants the wave sealed; good for one freeze, by whichever server asks for it."""
        with Transaction(self._engine, campaign_id) as db:
            current = wave(db, campaign_id, number)
            if current.state == OPEN:
                change(db, campaign_id, current, operator_agreed=True)

    def withdraw_agreement(self, campaign_id: bytes) -> None:
        """This server's operator withdraws the agreement, before anything came of it."""
        with Transaction(self._engine, campaign_id) as db:
            current = wave(db, campaign_id)
            if current.state == FROZEN:
                raise CampaignSealed("uploads are frozen already; fss-server campaign unfreeze undoes that")
            if current.state != OPEN:
                raise CampaignSealed("the set of uploads is fixed; it is too late to withdraw the agreement")
            change(db, campaign_id, current, operator_agreed=False)

    def freeze(self, campaign_id: bytes, number: int = 0, *, closed: bool) -> Wave:
        """Take no more uploads: because this server's own operator agreed, or where it is `closed`; never before.

        Every freeze has a number, so that nobody acts on what an older one saw. The next wave, where there is one, is
        open in the same moment.
        """
        with Transaction(self._engine, campaign_id) as db:
            current = wave(db, campaign_id, number)
            if current.state != OPEN:
                return current
            if not (closed or current.operator_agreed):
                raise AgreementPending("this server's operator has not agreed to sealing; uploads go on")
            campaign = campaigns.entry(db, campaign_id).campaign
            if campaign.waves is not None:
                _require_earlier_fixed(db, campaign_id, number)
            change(db, campaign_id, current, state=FROZEN, freeze_number=current.freeze_number + 1)
            open_next(db, campaign, number)
            return wave(db, campaign_id, number)

    def unfreeze(self, campaign_id: bytes, freeze: int) -> None:
        """Take uploads again, if this freeze is still the newest. The next one needs the operator's agreement again."""
        with Transaction(self._engine, campaign_id) as db:
            if campaigns.entry(db, campaign_id).campaign.waves is not None:
                raise CampaignSealed("a wave that is closed is not opened again; uploads go on in the next one")
            current = wave(db, campaign_id)
            _require_freeze(current, freeze)
            db.execute(PROPOSED.delete().where(PROPOSED.c.campaign == campaign_id))
            change(db, campaign_id, current, state=OPEN, operator_agreed=False)

    def propose_exclusion(
        self, campaign_id: bytes, freeze: int, checksum: bytes, ids: Sequence[bytes], number: int = 0
    ) -> None:
        """The other server does not have these; if both agree on the set with this checksum, it is without them."""
        with Transaction(self._engine, campaign_id) as db:
            _require_freeze(wave(db, campaign_id, number), freeze)
            excluded_uploads.require_here(db, campaign_id, number, ids)
            # Frozen sides have one set in common, so there is never another one to be kept.
            other = (PROPOSED.c.campaign == campaign_id) & (PROPOSED.c.set != checksum)
            db.execute(PROPOSED.delete().where(other | _proposed(campaign_id, checksum) & PROPOSED.c.id.in_(ids)))
            db.execute(PROPOSED.insert(), [{"campaign": campaign_id, "set": checksum, "id": i} for i in ids])

    def proposed_exclusion(self, campaign_id: bytes, checksum: bytes) -> list[bytes]:
        with self._engine.connect() as db:
            mine = _proposed(campaign_id, checksum)
            return list(db.execute(sa.select(PROPOSED.c.id).where(mine).order_by(PROPOSED.c.id)).scalars())

    def commit_set(
        self, campaign_id: bytes, freeze: int, checksum: bytes, leave: Sequence[bytes], number: int = 0
    ) -> Wave:
        """Fix the set: for good, or, where keys are checked, but for those that do not pass.

        The caller has seen, since this freeze, that what is here without `leave` has this checksum; no freeze but this
        one may be the last. Unmatched uploads are kept apart until this server's operator discards them. The job that
        goes on with the set is there in the same moment, so that no crash can come between.
        """
        with Transaction(self._engine, campaign_id) as db:
            current, campaign = wave(db, campaign_id, number), campaigns.entry(db, campaign_id).campaign
            if current.set is not None:
                if checksum not in (current.set.checksum, current.set.checked):
                    raise CampaignSealed("the campaign is sealed with another set of uploads")
                return current
            _require_freeze(current, freeze)
            last, least = _is_last(campaign, number), least_uploads(campaign)
            left_out = tables.people_among(db, campaign_id, leave)
            count = int(db.execute(tables.people_of(campaign_id, number)).scalar_one()) - left_out
            if count < least:
                raise TooFewUploads(f"{count} uploads are fewer than the {least} promised")
            excluded_uploads.exclude_unmatched(db, campaign_id, number, leave)
            about: dict[str, object] = {"sealed_count": count, "sealed_set": checksum, "unmatched": left_out}
            about |= set_of_tables(tables.of_set(db, campaign_id, number))
            checked = campaign.check_keys and count > 0
            about |= {"state": CHECKING, "checked_set": checksum} if checked else {"state": SEALED}
            change(db, campaign_id, current, **about)
            take_from_stored(db, campaign_id, left_out)
            db.execute(PROPOSED.delete().where(PROPOSED.c.campaign == campaign_id))
            if last and not checked:
                db.execute(WITHDRAWN.delete().where(WITHDRAWN.c.campaign == campaign_id))
            jobs.add(db, campaign_id, number)
            return wave(db, campaign_id, number)

    def finish_check(
        self, campaign_id: bytes, checked: bytes, rejected: Sequence[bytes], final: UploadSet, number: int = 0
    ) -> Wave:
        """The check is over: seal what passed, however little that is. Can be repeated.

        The challenge is known now, so a wave that was checked never takes uploads again. What a plain campaign has
        fewer than `min_uploads` of is not released (`is_too_few`).
        """
        with Transaction(self._engine, campaign_id) as db:
            current, campaign = wave(db, campaign_id, number), campaigns.entry(db, campaign_id).campaign
            if current.state != CHECKING or current.set is None or current.set.checked != checked:
                return current
            people = tables.people_among(db, campaign_id, rejected)
            excluded_uploads.reject(db, campaign_id, rejected)
            count = current.rejected + people
            about = {"sealed_count": final.count, "sealed_set": final.checksum, "key_file": final.key_file}
            about |= set_of_tables((final.tables, final.in_tables))
            change(db, campaign_id, current, state=SEALED, rejected=count, **about)
            take_from_stored(db, campaign_id, people)
            if _is_last(campaign, number):
                db.execute(WITHDRAWN.delete().where(WITHDRAWN.c.campaign == campaign_id))
            return wave(db, campaign_id, number)

    def keep_key_file(
        self, campaign_id: bytes, seen: Wave, digest: bytes, first: Callable[[], None] = _nothing
    ) -> None:
        """Note the digest of the keys that were written of a wave as it was `seen`, if it still stands there.

        What is to be done `first` is done in the same transaction, so not after somebody else has gone on.
        """
        with Transaction(self._engine, campaign_id) as db:
            current = wave(db, campaign_id, seen.number)
            if _stands(current) != _stands(seen) or (
                current.state == SEALED and current.sealed.key_file not in (None, digest)
            ):
                raise StateChanged
            first()
            change(db, campaign_id, current, key_file=digest)

    def unless_checking(self, campaign_id: bytes, number: int, do: Callable[[], None]) -> None:
        """Something that must not happen while the keys of a wave are checked; nobody begins to meanwhile."""
        with Transaction(self._engine, campaign_id) as db, suppress(Problem):
            if wave(db, campaign_id, number).state != CHECKING:
                do()

    def keep_peer_seed(self, campaign_id: bytes, seed: bytes, number: int = 0) -> None:
        """The other server's part of the challenge: it fits its commitment, so it is the only one there will be."""
        with Transaction(self._engine, campaign_id) as db:
            change(db, campaign_id, wave(db, campaign_id, number), peer_seed=seed)

    def note_erased(self, campaign_id: bytes, number: int) -> None:
        """Nothing needs this wave's keys any more; from now on they may be gone."""
        with Transaction(self._engine) as db:
            change(db, campaign_id, wave(db, campaign_id, number), erased=True)

    def people(self, campaign_id: bytes, number: int, leave: Sequence[bytes]) -> int:
        """Of how many people a wave has values, without some of its uploads."""
        with self._engine.connect() as db:
            here = int(db.execute(tables.people_of(campaign_id, number)).scalar_one())
            return here - tables.people_among(db, campaign_id, leave)

    def excluded_count(self, campaign_id: bytes) -> int:
        """Of how many people unmatched or rejected values are still kept."""
        mine = EXCLUDED.c.campaign == campaign_id
        with self._engine.connect() as db:
            rows = db.execute(sa.select(sa.func.count()).select_from(EXCLUDED).where(mine)).scalar_one()
            return int(rows) + tables.beyond_excluded(db, campaign_id)

    def discard_excluded(self, campaign_id: bytes) -> int:
        """The operator discards unmatched and rejected uploads. Returns of how many people values were erased."""
        with Transaction(self._engine, campaign_id) as db:
            current, mine = wave(db, campaign_id), EXCLUDED.c.campaign == campaign_id
            if current.state == CHECKING and campaigns.entry(db, campaign_id).campaign.waves is None:
                raise NotSealed("the uploads are being checked; what is left out is certain when they are sealed")
            each = WAVES.c.rejected + sa.func.coalesce(WAVES.c.unmatched, 0)
            so_far = sa.select(sa.func.sum(each)).where(WAVES.c.campaign == campaign_id)
            if current.state != SEALED and not db.execute(so_far).scalar_one():
                raise NotSealed("nothing has been left out yet; the campaign is not sealed")
            erased = db.execute(EXCLUDED.delete().where(mine)).rowcount + tables.erase_excluded(db, campaign_id)
        purge_write_ahead_log(
            self._engine
        )  # also where nothing is left: this may be asked again because the log was not emptied
        return erased


def _stands(wave: Wave) -> tuple[object, ...]:
    """Where a wave is on its way, apart from its key file."""
    fixed = None if wave.set is None else (wave.set.checksum, wave.set.checked)
    return wave.state, wave.freeze_number, fixed, wave.erased


def least_uploads(campaign: Campaign) -> int:
    """How many uploads a set must have to be fixed. A wave of several may be small: it is not released alone then."""
    return campaign.min_uploads if campaign.waves is None else 0


def is_too_few(campaign: Campaign, sealed: UploadSet) -> bool:
    """Whether the check left so few uploads of a plain campaign that nothing of it is ever released."""
    return sealed.count < least_uploads(campaign)


def _is_last(campaign: Campaign, number: int) -> bool:
    return campaign.waves is None or number >= campaign.waves.count


def wave(db: Connection, campaign_id: bytes, number: int | None = None) -> Wave:
    """One wave; the newest if none is named."""
    mine = WAVES.c.campaign == campaign_id
    if number is not None:
        mine &= WAVES.c.number == number
    row = db.execute(sa.select(WAVES).where(mine).order_by(WAVES.c.number.desc()).limit(1)).one_or_none()
    if row is None:
        campaigns.entry(db, campaign_id)  # says whether it is unknown or deleted
        raise NotSealed(f"there is no wave {number} of this campaign here, or not yet")
    return _as_wave(row)


def _as_wave(row: sa.Row[tuple[object, ...]]) -> Wave:
    fixed = None
    if row.state in (CHECKING, SEALED):
        of_tables = row.sealed_tables or 0, row.sealed_in_tables or 0
        fixed = UploadSet(row.sealed_count, row.sealed_set, row.unmatched, row.checked_set, row.key_file, *of_tables)
    before = row.number, row.state, row.freeze_number, row.operator_agreed, row.rejected
    return Wave(*before, fixed, row.peer_seed, row.erased, row.abandon_agreed, row.abandoned)


def set_of_tables(counts: tuple[int, int]) -> dict[str, object]:
    return {"sealed_tables": counts[0], "sealed_in_tables": counts[1]}


def open_next(db: Connection, campaign: Campaign, number: int) -> None:
    """The wave behind this one, if there is one, takes uploads."""
    if not _is_last(campaign, number):
        db.execute(WAVES.insert().values(campaign=campaign.id, number=number + 1, **campaigns.NEW_WAVE))


def change(db: Connection, campaign_id: bytes, current: Wave, **values: object) -> None:
    """Write what is new of a wave. What was agreed about a wave that is to be abandoned was about its state."""
    if "state" in values:
        values["abandon_agreed"] = False
    mine = (WAVES.c.campaign == campaign_id) & (WAVES.c.number == current.number)
    history.advance(db)
    db.execute(WAVES.update().where(mine).values(**values))


def take_from_stored(db: Connection, campaign_id: bytes, gone: int) -> None:
    left = CAMPAIGNS.c.stored - gone
    db.execute(CAMPAIGNS.update().where(CAMPAIGNS.c.id == campaign_id).values(stored=left))


def _require_earlier_fixed(db: Connection, campaign_id: bytes, number: int) -> None:
    earlier = (WAVES.c.campaign == campaign_id) & (WAVES.c.number < number) & WAVES.c.state.in_((OPEN, FROZEN))
    if db.execute(sa.select(WAVES.c.number).where(earlier)).first() is not None:
        raise NotReady("an earlier wave is not sealed here yet; seal that one first", retry_after=2)


def _proposed(campaign_id: bytes, checksum: bytes) -> sa.ColumnElement[bool]:
    return (PROPOSED.c.campaign == campaign_id) & (PROPOSED.c.set == checksum)


def _require_freeze(current: Wave, freeze: int) -> None:
    if current.state != FROZEN or current.freeze_number != freeze:
        raise CampaignSealed("the campaign has been opened or sealed by somebody else meanwhile; seal it again")
