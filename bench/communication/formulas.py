"""How many bytes the messages of the three protocols have: HTTP bodies, by formula, from docs/protocol.md.

Written apart from the encoders on purpose: what servers count must agree with this exactly.
"""

import json
from collections.abc import Sequence

from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import AgreementPending

ID = 16
ELEMENT = 8
DIGEST_TEXT = 43  # 32 bytes in unpadded base64url
SIGNATURE, SIGNATURE_TEXT = 64, 86
UPLOAD_HEADER = 64
HASH = 32
ENCRYPTION = 32 + 16  # HPKE's encapsulated key and tag
SHARES_HEADER = 88
FROZEN, STEP, NODE, FAN_OUT, LEAF = 81, 72, 20, 16, 256
DONE = len('{"failures":[],"signature":""}') + SIGNATURE_TEXT

NOT_AGREED = "this server's operator has not agreed to sealing; uploads go on"


def key(campaign: Campaign) -> int:
    """A key of D bits: header, root, control bits; a correction per level; sixteen leaves in the last four levels."""
    level = 3 if campaign.variable.scheme == "dcf" else 2
    leaf_bits = min(4, campaign.bits)
    return 8 + 8 * (3 + level * (campaign.bits - leaf_bits) + (1 << leaf_bits))


def proof(campaign: Campaign) -> int:
    """Four corrections, a mask, and a polynomial at one point more than there are leaves."""
    return ELEMENT * (4 + 2 + (1 << min(4, campaign.bits))) if campaign.check_keys else 0


def descriptions(campaign: Campaign) -> int:
    """What a party reads before it takes part: the campaign at server 0, and at server 1 that it is the same."""
    short = len(f'{{"digest":"{"d" * DIGEST_TEXT}","state":"open","server":0}}')
    return 2 * short + len('"campaign":,') + len(campaign.canonical)


def shares(positions: Sequence[int] | None, count: int) -> int:
    """A question for noised shares, and its answer with so many."""
    asked = '"all"' if positions is None else "[" + ",".join(map(str, positions)) + "]"
    question = f'{{"digest":"{"d" * DIGEST_TEXT}","positions":{asked}}}'
    return len(question) + SHARES_HEADER + ELEMENT * count


def ours_party(campaign: Campaign) -> int:
    """One party and both servers: the descriptions, uploads of one key each, and what is said to them."""
    return descriptions(campaign) + 2 * (envelope() + key(campaign) + proof(campaign) + DONE)


def envelope() -> int:
    """What is around one key and its proof."""
    return UPLOAD_HEADER + ENCRYPTION + ID + HASH


def checking(campaign: Campaign, n: int) -> int:
    """Each server asks the other for its part of the challenge, and for what it found about n keys."""
    if not campaign.check_keys:
        return 0
    seed = len(f'{{"digest":"{"d" * DIGEST_TEXT}","seed":"{"s" * DIGEST_TEXT}"}}')
    asked = f'{{"digest":"{"d" * DIGEST_TEXT}","checksum":"{"c" * DIGEST_TEXT}","start":0,"stop":{n}}}'
    return 2 * (2 * seed + len(asked) + 3 * ELEMENT * n + SIGNATURE)


def statements(n: int) -> int:
    """Each server has the other's before a share leaves it."""
    text = "t" * DIGEST_TEXT
    about = f'{{"digest":"{text}","server":0,"checksum":"{text}","count":{n},"keys":"{text}","noise":"{text}"}}'
    return 2 * len(f'{{"statement":{about},"signature":"{"s" * SIGNATURE_TEXT}"}}')


def comparing(n: int) -> int:
    """One server asks what the other has of n uploads that both have: ids and leaves of a few, digests of many."""
    depth = next(depth for depth in range(9) if n <= LEAF * FAN_OUT**depth)
    asked = f'{{"digest":"{"d" * DIGEST_TEXT}","freeze":1,"depth":{depth},"level":0,"nodes":[0],"after":null}}'
    return len(asked) + (FAN_OUT * NODE if depth else (ID + HASH) * n)


def ours_peer(campaign: Campaign, n: int) -> int:
    """Sealing n uploads, then the other server's whole noised curve.

    The first operator's word is refused by the other server; the second one's freezes, compares and agrees.
    """
    refused = len(json.dumps(AgreementPending(NOT_AGREED).document(), separators=(",", ":")))
    agreed = len(f'{{"count":{n},"checksum":"{"c" * DIGEST_TEXT}","unmatched":0}}')
    sealing = refused + FROZEN + comparing(n) + STEP + agreed + checking(campaign, n)
    return sealing + statements(n) + shares(None, 1 << campaign.bits) + SIGNATURE


def onehot_party(campaign: Campaign, role: int) -> int:
    """An id with a seed, or with a vector of N elements."""
    return ID + ((ELEMENT << campaign.bits) if role else 16)


def each_query_peer(asked: Sequence[int]) -> int:
    """Servers that have no curve ask each other about every point."""
    return sum(shares([t], 1) for t in asked)
