"""What the page's encryption must have in common with Python's. Each check raises where they differ."""

import json
from typing import Any

import numpy as np
from selenium.common.exceptions import JavascriptException

from fss_ecdf.campaign import confirmations as messages
from fss_ecdf.campaign.binary_messages import upload_rows
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.sealed_uploads import open_upload, sealed_bytes, token_digest
from fss_ecdf.net.hpke import HpkeKey
from fss_ecdf.net.server_identity import Identity
from tests.campaign.helpers import campaign
from tests.harness.server_pair import IDENTITIES, SALT, commitments, envelopes
from tests.pages.checks import VECTORS, as_text
from tests.pages.probing import Probe


def hpke(probe: Probe) -> None:
    """RFC 9180's key and ciphertext, our vectors, and messages that the servers' library opens."""
    assert probe.hpkeSupported() is True
    known = json.loads((VECTORS / "hpke_rfc9180.json").read_text())
    assert probe.hpkeSchedule(known["shared_secret"], known["info"]) == [known["key"], known["base_nonce"]]
    ephemeral = [known["ephemeral_secret"], known["enc"]]
    sealed = probe.hpkeSeal(known["public_key"], known["info"], known["plaintext"], ephemeral)
    first = known["encryptions"][0]["ciphertext"]
    assert sealed[:-32] == known["enc"] + first[:-32]  # but for the tag, which covers its associated data
    for case in json.loads((VECTORS / "hpke.json").read_text())["good"]:
        if case["kem"] == "x25519":
            key = HpkeKey("x25519", bytes.fromhex(case["seed"]))
            sealed = bytes.fromhex(probe.hpkeSeal(case["public_key"], case["info"], case["plaintext"], None))
            assert key.open(bytes.fromhex(case["info"]), sealed).hex() == case["plaintext"]
    for bad in (bytes(32), (1).to_bytes(32, "little"), bytes(31)):
        try:
            probe.hpkeSeal(bad.hex(), "", "", None)
        except JavascriptException:
            continue
        raise AssertionError(f"{bad.hex()} was taken for a public key")


def sealed_uploads(probe: Probe) -> None:
    """Of one part and of three, for both servers: a server opens them."""
    id = bytes(range(32))
    made = campaign(id=id, server_commitments=commitments(id))
    for count in (1, 7000):
        for server, plain in enumerate(envelopes(made, np.arange(count) % 50)):
            sealed = bytes.fromhex(probe.sealedUpload(as_text(made), server, plain.hex(), "fss-up-\u00fc"))
            key = Identity(IDENTITIES[server], server).hpke_key(id, "x25519", SALT)
            assert open_upload(sealed, made, server, token_digest("fss-up-\u00fc"), key.open) == plain
            assert len(sealed) == probe.sealedBytes(as_text(made), count) == sealed_bytes(made, count)


def confirmations(probe: Probe) -> None:
    """What a server signs about withdrawn ids is taken; of another server, campaign or ids, and nonsense, is not."""
    id, ids = bytes(range(32)), bytes(range(100, 148))
    made, other = (
        campaign(id=id, server_commitments=commitments(id), title=title) for title in ("Risk score", "Another")
    )
    for server in (0, 1):
        identity = Identity(IDENTITIES[server], server)

        def taken(of: Campaign, about: int, some: bytes, signature: object, server: int = server) -> bool:
            return bool(probe.isWithdrawn(as_text(of), about, some.hex(), signature))

        good = to_base64url(identity.sign(messages.withdrawn(made.digest, server, ids)))
        assert taken(made, server, ids, good)
        wrong = [good[:-4] + "AAAA", good[:-1], "", None, 7, to_base64url(identity.sign(ids))]
        wrong.append(to_base64url(identity.sign(messages.withdrawn(made.digest, 1 - server, ids))))
        assert not any(taken(made, server, ids, one) for one in wrong)
        assert not taken(made, 1 - server, ids, good)
        assert not taken(other, server, ids, good)
        assert not taken(made, server, ids[:32], good)


def acknowledgements(probe: Probe) -> None:
    """What a server signs when it has stored uploads is taken for these uploads, this wave, server and campaign."""
    id, wave = bytes(range(32)), 3
    about: dict[str, Any] = {"waves": {"every": "manual", "count": 5, "pooled": []}}
    made, other = (
        campaign(id=id, server_commitments=commitments(id), title=title, **about) for title in ("Risk score", "Another")
    )
    sent, others = (envelopes(made, np.array([3, 1, 4]), wave) for _ in range(2))
    for server in (0, 1):
        identity = Identity(IDENTITIES[server], server)
        leaves = b"".join(leaf for _, leaf, _ in upload_rows(sent[server], made, server)[1])

        def signed(digest: bytes, about: int, wave: int, leaves: bytes, by: Identity = identity) -> str:
            return to_base64url(by.sign(messages.stored(digest, about, wave, leaves)))

        def taken(signature: object, of: Campaign = made, at: int = server, **changes: Any) -> bool:
            asked = {"wave": wave, "both": sent, **changes}
            return bool(probe.isStored(as_text(of), at, asked["wave"], [x.hex() for x in asked["both"]], signature))

        good = signed(made.digest, server, wave, leaves)
        assert taken(good)
        wrong = [signed(made.digest, 1 - server, wave, leaves), signed(made.digest, server, wave + 1, leaves)]
        wrong += [signed(made.digest, server, wave, leaves[32:]), signed(made.digest, server, wave, leaves[::-1])]
        wrong.append(to_base64url(identity.sign(messages.withdrawn(made.digest, server, leaves))))
        assert not any(taken(one) for one in [*wrong, good[:-4] + "AAAA", "", None, 7])
        assert not taken(good, of=other)
        assert not taken(good, wave=wave + 1)
        assert not taken(good, both=others)
        assert not taken(good, at=1 - server)
