"""What the page's encryption must have in common with Python's. Each check raises where they differ."""

import json

import numpy as np
from selenium.common.exceptions import JavascriptException

from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.confirmations import confirmation
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
            return bool(probe.isConfirmed(as_text(of), about, some.hex(), signature))

        good = to_base64url(identity.sign(confirmation(made.digest, server, ids)))
        assert taken(made, server, ids, good)
        wrong = [good[:-4] + "AAAA", good[:-1], "", None, 7, to_base64url(identity.sign(ids))]
        wrong.append(to_base64url(identity.sign(confirmation(made.digest, 1 - server, ids))))
        assert not any(taken(made, server, ids, one) for one in wrong)
        assert not taken(made, 1 - server, ids, good)
        assert not taken(other, server, ids, good)
        assert not taken(made, server, ids[:32], good)
