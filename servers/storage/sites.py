"""Sites of a campaign: added, changed and found by their tokens; what they sent is in `uploads.py`."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from fss_ecdf.campaign.error_text import short
from fss_ecdf.campaign.errors import CampaignSealed, InvalidCampaign, SiteExists, UnknownSite
from servers.storage import campaigns, waves
from servers.storage.admission import Site
from servers.storage.database import Transaction
from servers.storage.schema import SITES

# Asked with every upload, so made once.
_WITH_TOKEN = sa.select(SITES).where(
    SITES.c.campaign == sa.bindparam("campaign"), SITES.c.token == sa.bindparam("token")
)


class Sites:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, campaign_id: bytes, new: Sequence[Site]) -> int:
        """All of them or none; those that are there already, the same in everything, stay. Returns how many came."""
        with Transaction(self._engine, campaign_id) as db:
            _require_sites(db, campaign_id)
            if waves.wave(db, campaign_id).state not in (waves.OPEN, waves.FROZEN):
                raise CampaignSealed("the campaign's set of uploads is fixed; a site could send nothing any more")
            fresh = [site for site in new if not _is_known(db, campaign_id, site)]
            if fresh:
                db.execute(SITES.insert(), [{"campaign": campaign_id, **vars(site)} for site in fresh])
            return len(fresh)

    def change(self, campaign_id: bytes, site_id: str, **values: object) -> Site:
        """Another token, quota or state of one site."""
        with Transaction(self._engine, campaign_id) as db:
            _require_sites(db, campaign_id)
            site = of(db, campaign_id, site_id)
            if site is None:
                raise UnknownSite(f"site {short(site_id)} is not known here")
            token = values.get("token")
            owner = None if token is None else _by(db, campaign_id, SITES.c.token == token)
            if owner is not None and owner.id != site_id:
                raise SiteExists("another site of this campaign has this token")
            mine = (SITES.c.campaign == campaign_id) & (SITES.c.id == site_id)
            db.execute(SITES.update().where(mine).values(**values))
            changed = of(db, campaign_id, site_id)
            assert changed is not None
            return changed

    def by_token(self, campaign_id: bytes, token: str) -> Site | None:
        with self._engine.connect() as db:
            row = db.execute(_WITH_TOKEN, {"campaign": campaign_id, "token": token}).one_or_none()
            return None if row is None else _as_site(row)

    def all(self, campaign_id: bytes) -> list[Site]:
        with self._engine.connect() as db:
            select = sa.select(SITES).where(SITES.c.campaign == campaign_id).order_by(SITES.c.label, SITES.c.id)
            return [_as_site(row) for row in db.execute(select)]


def of(db: Connection, campaign_id: bytes, site_id: str | None) -> Site | None:
    return None if site_id is None else _by(db, campaign_id, SITES.c.id == site_id)


def _by(db: Connection, campaign_id: bytes, which: sa.ColumnElement[bool]) -> Site | None:
    row = db.execute(sa.select(SITES).where((SITES.c.campaign == campaign_id) & which)).one_or_none()
    return None if row is None else _as_site(row)


def _is_known(db: Connection, campaign_id: bytes, site: Site) -> bool:
    known = of(db, campaign_id, site.id)
    if known is None:
        if _by(db, campaign_id, SITES.c.token == site.token) is not None:
            raise SiteExists(f"site {site.label!r} has the token of another site")
        return False
    if (known.label, known.token, known.quota) != (site.label, site.token, site.quota):
        raise SiteExists(f"site {site.id} is here with another label, token or quota")
    return True


def _require_sites(db: Connection, campaign_id: bytes) -> None:
    admission = campaigns.entry(db, campaign_id).campaign.admission
    if admission != "sites":
        raise InvalidCampaign(f'this campaign has admission = "{admission}"; sites belong to admission = "sites"')


def _as_site(row: sa.Row[tuple[object, ...]]) -> Site:
    return Site(row.id, row.label, row.token, row.quota, row.state)
