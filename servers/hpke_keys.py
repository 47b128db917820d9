"""This server's HPKE keys: committed to before a campaign exists, used to open its uploads, erased with it."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from fss_ecdf.campaign.campaign import Campaign, from_base64url, to_base64url
from fss_ecdf.campaign.commitments import ServerCommitment
from fss_ecdf.campaign.errors import HpkeKeyLost, InvalidPeerResponse, UnknownCampaign
from fss_ecdf.campaign.hpke import Kem
from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import SIGNATURE_BYTES, Identity, is_signed
from servers.peer import PeerClient
from servers.storage.storage import Storage, Writer


class HpkeKeys:
    def __init__(
        self,
        identity: Identity,
        storage: Storage,
        writer: Writer,
        peer: PeerClient,
        peer_key: bytes,
        rand: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._identity, self._storage, self._writer, self._rand = identity, storage, writer, rand
        self._peer, self._peer_key = peer, peer_key
        self._known: dict[bytes, HpkeKey] = {}

    async def commitment(self, campaign_id: bytes, kem: Kem) -> ServerCommitment:
        """What this server commits to for a campaign of this id, which need not exist. The same when asked again."""
        salt = await self._writer.run(lambda: self._storage.commitments.salt_or_new(campaign_id, self._rand))
        return self._identity.commit(campaign_id, kem, salt)

    async def signed_commitment(self, campaign_id: bytes, kem: Kem) -> dict[str, object]:
        """The same for the other server, which knows this server by its signing key."""
        commitment = await self.commitment(campaign_id, kem)
        signature = self._identity.sign(covered_by_signature(campaign_id, kem, commitment))
        return {"commitment": commitment.model_dump(mode="json"), "signature": to_base64url(signature)}

    async def peer_commitment(self, campaign_id: bytes, kem: Kem) -> ServerCommitment:
        """What the other server commits to, if it signed it."""
        given = await self._peer.commitment(campaign_id, kem)
        try:
            commitment = ServerCommitment.model_validate(given["commitment"])
            signature = from_base64url(given["signature"], SIGNATURE_BYTES, "a signature")
        except (KeyError, ValueError):
            raise InvalidPeerResponse("the other server's commitment is not well-formed") from None
        if not is_signed(self._peer_key, covered_by_signature(campaign_id, kem, commitment), signature):
            raise InvalidPeerResponse(
                "the other server's commitment is not signed with the key that this server knows of it"
            )
        return commitment

    async def require_commitments(self, campaign: Campaign) -> None:
        """The campaign holds this server's own commitment, or a problem."""
        salt = await asyncio.to_thread(self._storage.commitments.salt, campaign.id)
        if salt is None:
            with suppress(UnknownCampaign):  # one that was deleted says so
                await asyncio.to_thread(self._storage.campaigns.get, campaign.id)
        self._identity.require_commitments(campaign, self._peer_key, salt)

    def known(self, campaign: Campaign) -> HpkeKey | None:
        """What `of` has in memory."""
        return self._known.get(campaign.id)

    def of(self, campaign: Campaign) -> HpkeKey:
        """The key of a campaign, or the problem that it is lost."""
        if campaign.id not in self._known:
            self._known[campaign.id] = find(self._identity, self._storage, campaign)
        return self._known[campaign.id]

    def is_lost(self, campaign: Campaign) -> bool:
        return is_lost(self._identity, self._storage, campaign)

    def in_memory(self) -> set[bytes]:
        """The campaigns that `known` has keys of."""
        return set(self._known)

    def forget(self, campaign_id: bytes) -> None:
        self._known.pop(campaign_id, None)


def find(identity: Identity, storage: Storage, campaign: Campaign) -> HpkeKey:
    """The key that the campaign names, from the identity and what the database has of it; or the problem."""
    salt, commitments = storage.commitments.salt(campaign.id), campaign.server_commitments
    assert commitments is not None
    key = None if salt is None else identity.hpke_key(campaign.id, campaign.kem, salt)
    if key is None or key.public_bytes != commitments[identity.server].hpke_key:
        what = "the identity file is another one" if key is not None else "the database has no salt for it"
        raise HpkeKeyLost(
            f"server {identity.server} has lost its HPKE key of campaign {to_base64url(campaign.id)} ({what}), so it "
            "cannot read uploads to it; its operator must restore the identity file and the database"
        )
    return key


def is_lost(identity: Identity, storage: Storage, campaign: Campaign) -> bool:
    try:
        find(identity, storage, campaign)
    except HpkeKeyLost:
        return True
    return False


def covered_by_signature(campaign_id: bytes, kem: Kem, commitment: ServerCommitment) -> bytes:
    return b"fss-ecdf commitment 1\n" + campaign_id + kem.encode() + b"\n" + commitment.model_dump_json().encode()
