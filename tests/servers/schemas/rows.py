"""A few rows of every kind, the same each time, and what of them can be seen through `Storage`."""

from datetime import UTC, datetime

import numpy as np

from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import ID_BYTES, Campaign, to_base64url
from servers.storage import admission
from servers.storage.action_log import LoggedAction
from servers.storage.storage import Storage
from tests.harness.server_pair import envelopes
from tests.servers.conftest import fixed, new_campaign

OPEN, SEALED, DELETED = (bytes([number]) * ID_BYTES for number in (1, 2, 3))
AT = datetime(2026, 1, 1, tzinfo=UTC)


def fill(storage: Storage) -> None:
    """One campaign that is open, one that is sealed with an expense, one that was deleted."""
    opened = new_campaign(id=OPEN)
    storage.campaigns.add(opened, "0" * 64, [])
    send(storage, opened, 5)
    fixed(storage, id=SEALED, reserve=1.0)
    storage.ledger.spend(SEALED, "points", 0.25, {0: 2.0}, AT)
    fixed(storage, id=DELETED)
    storage.campaigns.delete(DELETED)
    storage.actions.add(LoggedAction(AT.isoformat(), "create", to_base64url(OPEN), "done"))


def send(storage: Storage, campaign: Campaign, count: int) -> None:
    _, rows = upload_rows(envelopes(campaign, np.arange(count))[0], campaign, 0)
    assert storage.uploads.add([admission.NewUploads(campaign.id, rows)]) == [[]]


def seen(storage: Storage) -> dict[str, object]:
    """What a program of any version must find in a database that `fill` filled."""
    entries = {entry.campaign.id: (entry.campaign.digest, entry.stored) for entry in storage.campaigns.all()}
    waves = {
        id: [(one.number, one.state, one.set and one.set.count) for one in storage.waves.all(id)] for id in entries
    }
    return {
        "campaigns": entries,
        "waves": waves,
        "deleted": storage.campaigns.deleted(),
        "uploads": storage.uploads.counts(),
        "spent": storage.ledger.spent(SEALED),
        "actions": [(number, action, whole) for number, action, _, whole in storage.actions.all()],
        "history": storage.history.newest().number,
    }
