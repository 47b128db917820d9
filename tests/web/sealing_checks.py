"""What the page's encryption must have in common with Python's. Each check raises where they differ."""

import json

import numpy as np
from selenium.common.exceptions import JavascriptException

from campaign.sealed_uploads import open_upload, sealed_bytes
from client.hpke import HpkeKey
from client.identity import Identity
from harness.live import IDENTITIES, SALT, envelopes, pledges
from tests.campaign.helpers import campaign
from tests.web.checks import VECTORS, as_text
from tests.web.probing import Probe


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
    made = campaign(id=id, servers=pledges(id))
    for count in (1, 7000):
        for server, plain in enumerate(envelopes(made, np.arange(count) % 50)):
            sealed = bytes.fromhex(probe.sealedUpload(as_text(made), server, plain.hex()))
            key = Identity(IDENTITIES[server], server).hpke_key(id, "x25519", SALT)
            assert open_upload(sealed, made, server, key.open) == plain
            assert len(sealed) == probe.sealedBytes(as_text(made), count) == sealed_bytes(made, count)
