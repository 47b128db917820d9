"""The one-hot protocol of histogram systems: every party uploads shares of its whole indicator vector, once.

    seed     party(16) seed(16)            for server 0, which expands it into N elements
    vector   party(16) N x element(8)      for server 1: the indicator vector minus that expansion

The servers sum what they hold; running sums over the positions are the curve. The answers are empty.
"""

import numpy as np

from bench.communication.pointwise import PARTY_BYTES
from dealer.key_pairs import Rand
from fss import field
from fss.field import Words
from fss.prg import SEED_BYTES, xof
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidUpload

NAME = "one-hot"


def upload_bytes(campaign: Campaign, role: int) -> int:
    return PARTY_BYTES + (8 << campaign.bits if role else SEED_BYTES)


def expand(seed: bytes, campaign: Campaign) -> Words:
    """Elements from 64 pseudorandom bits each: within 2^-58 of uniform."""
    return field.canonical(np.frombuffer(xof(b"one-hot", campaign.id, seed, 8 << campaign.bits), np.uint64))


def split(x: int, campaign: Campaign, party: bytes, rand: Rand) -> tuple[bytes, bytes]:
    """One party's messages for the two servers."""
    seed = rand(SEED_BYTES)
    indicator = np.zeros(1 << campaign.bits, np.uint64)
    indicator[x] = 1
    return party + seed, party + field.sub(indicator, expand(seed, campaign)).tobytes()


def decode(data: bytes, campaign: Campaign, role: int) -> tuple[bytes, Words]:
    """Who sent it, and the share of its vector."""
    if len(data) != upload_bytes(campaign, role):
        raise InvalidUpload(f"this upload has {upload_bytes(campaign, role)} bytes, got {len(data)}")
    party, rest = data[:PARTY_BYTES], data[PARTY_BYTES:]
    elements = np.frombuffer(rest, np.uint64) if role else expand(rest, campaign)
    if not field.is_canonical(elements):
        raise InvalidUpload("an element of the vector is not in the field")
    return party, elements
