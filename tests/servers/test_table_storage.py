"""Tables in the database: counted in people wherever uploads are counted, in parts, and gone when they are erased."""

import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.contribution import TABLE, Contribution
from servers.storage.admission import NewUploads, Site
from servers.storage.schema import SITE_TABLES, TABLE_PARTS
from servers.storage.storage import Storage
from servers.storage.waves import UploadSet
from tests.servers.rows import row
from tests.servers.sites_tables import table_campaign

SITE, OTHER = (Site(letter * 32, letter.upper(), letter * 64, quota) for letter, quota in (("a", 650), ("b", 1000)))
PARTS = [b"1" * 300, b"2" * 300, b"3"]


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Storage, Campaign]]:
    url = f"sqlite:///{tmp_path / 'db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").database("t" + secrets.token_hex(4))
    with closing(Storage(url)) as storage:
        campaign = table_campaign(min_uploads=1, max_uploads=1500)
        storage.campaigns.add(campaign, None, [])
        storage.sites.add(campaign.id, [SITE, OTHER])
        yield storage, campaign


def table(campaign: Campaign, upload_id: bytes, people: int, site: Site = SITE) -> NewUploads:
    rows = [(upload_id, secrets.token_bytes(32), b"o" * 32)]
    return NewUploads(campaign.id, rows, site.id, None, Contribution(TABLE, people), PARTS)


def key(campaign: Campaign, upload_id: bytes, site: Site = SITE) -> NewUploads:
    return NewUploads(campaign.id, [row(upload_id, b"k" * 99)], site.id)


def left(storage: Storage) -> list[int]:
    with storage.engine.connect() as db:
        return [
            int(db.execute(sa.select(sa.func.count()).select_from(one)).scalar_one())
            for one in (SITE_TABLES, TABLE_PARTS)
        ]


def codes(storage: Storage, *requests: NewUploads) -> list[str]:
    answers = storage.uploads.add(requests)
    return [found[0][1].code if isinstance(found, list) and found else "" for found in answers]


def test_everything_is_counted_in_people(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    a, b, c = (bytes([k]) * 16 for k in (1, 2, 3))
    assert codes(storage, table(campaign, a, 600), key(campaign, b), table(campaign, c, 700, OTHER)) == ["", "", ""]
    assert storage.campaigns.get(campaign.id).stored == 1301
    assert storage.uploads.by_sender(campaign.id) == {SITE.id: 601, OTHER.id: 700}
    assert storage.uploads.in_wave(campaign.id, 0) == 1301
    assert storage.uploads.contributions_in_wave(campaign.id, 0) == 3
    assert storage.uploads.counts() == {campaign.id: 1301}
    assert list(storage.tables.parts(campaign.id, a)) == PARTS
    # The quota of the site, then the room of the campaign.
    full = [table(campaign, bytes([9]) * 16, people, site) for people, site in ((100, SITE), (200, OTHER))]
    assert codes(storage, *full) == ["site-quota-exceeded", "campaign-full"]
    assert left(storage) == [2, 6]
    assert storage.uploads.withdraw(campaign.id, [a], SITE.id) == (600, [])
    assert storage.campaigns.get(campaign.id).stored == 701
    assert left(storage) == [1, 3]
    assert codes(storage, table(campaign, a, 600)) == ["upload-withdrawn"]
    assert storage.uploads.withdraw_all(campaign.id, OTHER.id) == 700
    assert left(storage) == [0, 0]
    assert storage.uploads.in_wave(campaign.id, 0) == 1


def test_what_is_excluded_is_counted_in_people_until_it_is_discarded(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    a, b = b"a" * 16, b"b" * 16
    storage.uploads.add([table(campaign, a, 600), table(campaign, b, 300, OTHER), key(campaign, b"c" * 16)])
    storage.waves.agree(campaign.id)
    freeze = storage.waves.freeze(campaign.id, closed=False).freeze_number
    assert storage.waves.people(campaign.id, 0, [b]) == 601
    wave = storage.waves.commit_set(campaign.id, freeze, bytes(32), [b])
    assert wave.set is not None
    assert (wave.set.count, wave.set.unmatched, wave.set.tables, wave.set.in_tables) == (601, 300, 1, 600)
    assert (wave.set.keys, wave.set.contributions) == (1, 2)
    assert storage.waves.excluded_count(campaign.id) == 300
    assert [one.id for one in storage.tables.in_wave(campaign.id, 0)] == [a]
    storage.waves.finish_check(campaign.id, bytes(32), [a], UploadSet(1, b"s" * 32, 300, bytes(32), None))
    assert storage.waves.get(campaign.id).rejected == 600
    assert storage.campaigns.get(campaign.id).stored == 1
    assert storage.tables.rejected(campaign.id) == {SITE.id: 600}
    assert storage.waves.discard_excluded(campaign.id) == 900
    assert left(storage) == [0, 0]


def test_a_deleted_campaign_leaves_nothing_of_its_tables(stored: tuple[Storage, Campaign]) -> None:
    storage, campaign = stored
    storage.uploads.add([table(campaign, b"a" * 16, 600)])
    storage.campaigns.delete(campaign.id)
    assert left(storage) == [0, 0]
