"""Releases: which sets of uploads are published together, under which noise, and who pays for them.

A plain campaign has one release, of its only wave. Where there are waves, every wave has one at the campaign's epsilon
(one that is too small has its uploads in the next wave's), and so has every milestone that the campaign names. All
follow from the waves' sealed sets, which both servers have fixed alike; nothing is remembered of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery, NotReady, NotSealed, TooFewUploads
from fss_ecdf.campaign.release import CURVE, Release, ReleaseName, releases_of
from servers.compute.sums import KeyFile
from servers.compute.table_sums import TableSums
from servers.release import add_noise
from servers.release.budget import Account
from servers.release.noise import covers, set_secret
from servers.settings import Settings
from servers.storage.campaigns import StoredCampaign
from servers.storage.key_files import Folder
from servers.storage.waves import SEALED, UploadSet, Wave, is_too_few

_SET, _KEYS = b"fss-ecdf release 1\n", b"fss-ecdf release keys 1\n"


@dataclass(frozen=True)
class SealedRelease:
    """What is published together: of these waves, and their sets as one."""

    entry: StoredCampaign
    campaign: Campaign  # with the epsilon and the noise of this release
    sealed: UploadSet
    parts: tuple[tuple[int, UploadSet], ...]
    plan: Release

    @property
    def name(self) -> ReleaseName:
        return self.plan.name

    @property
    def last(self) -> int:
        """The wave with which it is made."""
        return self.parts[-1][0]

    @property
    def account(self) -> Account:
        campaign = self.entry.campaign
        limits = {number: campaign.epsilon_for_releases(number) for number, _ in self.parts}
        return Account(campaign.id, str(self.name), self.campaign.epsilon, limits, campaign.reserve)


def releases(entry: StoredCampaign, waves: Sequence[Wave]) -> dict[ReleaseName, SealedRelease]:
    """What can be made of the waves that are sealed, by name; waves count as far as all before them are sealed."""
    if entry.campaign.waves is None:
        sealed = waves[0].sealed
        if is_too_few(entry.campaign, sealed):
            return {}
        plan = Release(CURVE, (0,), entry.campaign.epsilon)
        return {CURVE: SealedRelease(entry, entry.campaign, sealed, ((0, sealed),), plan)}
    sets: list[UploadSet] = []
    for wave in waves:
        if wave.state != SEALED or wave.set is None:
            break
        sets.append(wave.set)
    campaign = entry.campaign
    counts = [one.count for one in sets]
    assert campaign.waves is not None
    plans = releases_of(campaign.waves, campaign.epsilon, campaign.min_uploads, counts)
    return {plan.name: _release(entry, plan, sets) for plan in plans}


def some_releases(entry: StoredCampaign, waves: Sequence[Wave]) -> dict[ReleaseName, SealedRelease]:
    """The same, for whoever asks about them; a problem where there will never be any."""
    made = releases(entry, waves)
    if not made and entry.campaign.waves is None:
        raise TooFewUploads(
            f"fewer than {entry.campaign.min_uploads} uploads passed the check, so nothing of this campaign is ever "
            "published; values can be sent, with new keys, to a new campaign"
        )
    return made


def _release(entry: StoredCampaign, plan: Release, sets: Sequence[UploadSet]) -> SealedRelease:
    parts = tuple((number, sets[number - 1]) for number in plan.waves)
    campaign = entry.campaign.released(((plan.epsilon, 1),))
    return SealedRelease(entry, campaign, together(plan.name, [one for _, one in parts]), parts, plan)


def together(name: ReleaseName, sets: Sequence[UploadSet]) -> UploadSet:
    """Several sets as one: whatever differs in any of them, or in the name, makes another."""
    checksum = hashlib.sha256(_SET + str(name).encode() + b"\n" + b"".join(one.checksum for one in sets)).digest()
    keys = [one.key_file for one in sets]
    known = [key for key in keys if key is not None]
    digest = hashlib.sha256(_KEYS + b"".join(known)).digest() if len(known) == len(keys) else None
    count, unmatched, tables, in_tables = (
        sum(of) for of in zip(*((one.count, one.unmatched, one.tables, one.in_tables) for one in sets), strict=True)
    )
    return UploadSet(count, checksum, unmatched, None, digest, tables, in_tables)


def find(made: dict[ReleaseName, SealedRelease], name: ReleaseName) -> SealedRelease:
    if name in made:
        return made[name]
    for other in made:
        if name.kind == other.kind == "wave" and name.through in made[other].plan.waves:
            raise InvalidQuery(f"{name} had too few uploads and is part of {other}; ask for that one")
    raise NotSealed(f"there is no release {name} yet, or there were too few uploads for one")


def source(server: int, release: SealedRelease) -> add_noise.NoiseKey:
    """The noise of a release on this server; there is none before its keys are in files with digests."""
    entry, sealed = release.entry, release.sealed
    if sealed.key_file is None:
        raise NotReady("the keys are not ready yet", retry_after=2)
    bound = covers(entry.campaign.id, entry.campaign.variable.name, sealed.checksum, sealed.key_file)
    return add_noise.NoiseKey(set_secret(entry.noise_seed, bound), server, bound, release.campaign)


def key_file(settings: Settings, campaign: Campaign, wave: int, sealed: UploadSet) -> KeyFile:
    folder = Folder(settings.data, campaign.id, wave)
    tables = TableSums(folder.table_sums, sealed.checksum) if sealed.tables else None
    about = folder.keys, campaign.key_type(settings.server), sealed.key_file or b"", sealed.keys
    return KeyFile(*about, tables=tables)


def key_files(settings: Settings, release: SealedRelease) -> list[KeyFile]:
    return [key_file(settings, release.campaign, number, sealed) for number, sealed in release.parts]
