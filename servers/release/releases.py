"""Releases: which sets of uploads are published together, under which noise, and who pays for them.

A plain campaign has one release, of its only wave. Where there are waves, every wave has one at the campaign's epsilon
(one that is too small has its uploads in the next wave's), and so has every milestone that the campaign names. All
follow from the waves' sealed sets, which both servers have fixed alike; nothing is remembered of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from campaign.errors import InvalidQuery, NotSealed, Unavailable
from campaign.spec import Campaign
from campaign.waves import Planned, planned
from servers.compute.sums import KeyFile
from servers.lifecycle.budget import Account
from servers.release import noised
from servers.release.noise import covers, set_secret
from servers.settings import Settings
from servers.storage.campaigns import Entry
from servers.storage.objects import Folder
from servers.storage.waves import SEALED, UploadSet, Wave

CURVE = "curve"
_SET, _KEYS = b"fss-ecdf release 1\n", b"fss-ecdf release keys 1\n"


@dataclass(frozen=True)
class Release:
    """What is published together: of these waves, and their sets as one."""

    entry: Entry
    campaign: Campaign  # with the epsilon and the noise of this release
    sealed: UploadSet
    parts: tuple[tuple[int, UploadSet], ...]
    plan: Planned | None  # none of a plain campaign

    @property
    def name(self) -> str:
        return CURVE if self.plan is None else self.plan.name

    @property
    def last(self) -> int:
        """The wave with which it is made."""
        return self.parts[-1][0]

    @property
    def account(self) -> Account:
        limits = {number: self.entry.campaign.consent(number) for number, _ in self.parts}
        return Account(self.campaign.id, self.name, self.campaign.epsilon, limits)


def releases(entry: Entry, waves: Sequence[Wave]) -> dict[str, Release]:
    """What can be made of the waves that are sealed, by name; waves count as far as all before them are sealed."""
    if entry.campaign.waves is None:
        sealed = waves[0].sealed
        return {CURVE: Release(entry, entry.campaign, sealed, ((0, sealed),), None)}
    sets: list[UploadSet] = []
    for wave in waves:
        if wave.state != SEALED or wave.set is None:
            break
        sets.append(wave.set)
    campaign = entry.campaign
    counts = [one.count for one in sets]
    assert campaign.waves is not None
    plans = planned(campaign.waves, campaign.epsilon, campaign.min_uploads, counts)
    return {plan.name: _release(entry, plan, sets) for plan in plans}


def _release(entry: Entry, plan: Planned, sets: Sequence[UploadSet]) -> Release:
    parts = tuple((number, sets[number - 1]) for number in plan.waves)
    campaign = entry.campaign.released(((plan.epsilon, 1),))
    return Release(entry, campaign, together(plan.name, [one for _, one in parts]), parts, plan)


def together(name: str, sets: Sequence[UploadSet]) -> UploadSet:
    """Several sets as one: whatever differs in any of them, or in the name, makes another."""
    checksum = hashlib.sha256(_SET + name.encode() + b"\n" + b"".join(one.checksum for one in sets)).digest()
    keys = [one.key_file for one in sets]
    known = [key for key in keys if key is not None]
    digest = hashlib.sha256(_KEYS + b"".join(known)).digest() if len(known) == len(keys) else None
    return UploadSet(sum(one.count for one in sets), checksum, sum(one.orphans for one in sets), None, digest)


def find(made: dict[str, Release], name: str) -> Release:
    if name in made:
        return made[name]
    kind, _, at = name.partition(" ")
    for release in made.values():
        same_kind = kind == "wave" and release.plan is not None and release.plan.kind == kind
        if same_kind and any(str(number) == at for number, _ in release.parts):
            raise InvalidQuery(f"wave {at} had too few uploads and is part of {release.name}; ask for that one")
    raise NotSealed(f"there is no release {name} yet, or there were too few uploads for one")


def source(role: int, release: Release) -> noised.Source:
    """The noise of a release on this server; there is none before its keys are in files with digests."""
    entry, sealed = release.entry, release.sealed
    if sealed.key_file is None:
        raise Unavailable("the keys are not ready yet", retry_after=2)
    bound = covers(entry.campaign.id, sealed.checksum, sealed.key_file)
    return noised.Source(set_secret(entry.noise_seed, bound), role, bound, release.campaign)


def key_file(settings: Settings, campaign: Campaign, wave: int, sealed: UploadSet) -> KeyFile:
    path = Folder(settings.data, campaign.id, wave).keys
    return KeyFile(path, campaign.key_type(settings.role), sealed.key_file or b"", sealed.count)


def key_files(settings: Settings, release: Release) -> list[KeyFile]:
    return [key_file(settings, release.campaign, number, sealed) for number, sealed in release.parts]
