"""A campaign that another process deleted leaves this process's memory."""

import asyncio
from contextlib import closing
from pathlib import Path

from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import Identity
from servers.hpke_keys import HpkeKeys
from servers.lifecycle.forget import Forgetter
from servers.storage.storage import Storage, Writer
from tests.harness.server_pair import IDENTITIES, SALT
from tests.servers.conftest import new_campaign


def test_what_another_process_deleted_leaves_the_memory(tmp_path: Path) -> None:
    """Its HPKE key opens recorded uploads, and its noise seed takes this server's noise off what was published."""
    url, campaigns = f"sqlite:///{tmp_path / 'db'}", [new_campaign(), new_campaign()]
    with closing(Storage(url)) as here, closing(Storage(url, look=True)) as there:
        for campaign in campaigns:
            here.commitments.salt_or_new(campaign.id, lambda _: SALT)
            here.campaigns.add(campaign, "0" * 64, [])
        writer = Writer(here.uploads)
        keys = HpkeKeys(Identity(IDENTITIES[0], 0), here, writer, None, b"")  # type: ignore[arg-type] # asks no peer
        for campaign in campaigns:
            assert here.campaigns.fixed(campaign.id).noise_seed
            assert isinstance(keys.of(campaign), HpkeKey)

        def forget(campaign: bytes) -> None:
            here.campaigns.forget(campaign)
            keys.forget(campaign)

        def known() -> set[bytes]:
            return here.campaigns.in_memory() | keys.in_memory()

        forgetter = Forgetter(here, known, forget)
        asyncio.run(forgetter.look())
        assert known() == {campaign.id for campaign in campaigns}
        there.campaigns.delete(campaigns[0].id)
        assert keys.known(campaigns[0]) is not None
        asyncio.run(forgetter.look())
        assert (keys.known(campaigns[0]), here.campaigns.known(campaigns[0].id)) == (None, None)
        assert known() == {campaigns[1].id}
