"""python -m tests.vectors.make_check: write fss_check.json from the scalar oracle. Frozen, as proofs are stored."""

import hashlib
import hmac
import json
from pathlib import Path

import numpy as np

from tests.oracle.check import CheckOracle
from tests.oracle.fss import Oracle, P

BINDER, DIGEST, SEED0, SEED1 = (bytes(range(start, start + 32)) for start in (0, 32, 64, 96))
CASES = [(1, 0), (1, 1), (2, 3), (3, 5), (4, 8), (4, 9), (5, 16), (5, 31), (8, 200)]


def good(scheme: str, bits: int, alpha: int) -> dict[str, object]:
    rand = np.random.default_rng([bits, alpha, 2]).bytes(184)
    oracle = CheckOracle(scheme, bits, BINDER)
    pair = Oracle(scheme, bits, BINDER).gen(alpha, 1, rand[:32])
    challenge = oracle.challenge(DIGEST, SEED0, SEED1)
    proofs = oracle.prove(pair, alpha // oracle.m, rand[32:])
    told = [oracle.message(key, proof, challenge) for key, proof in zip(pair, proofs, strict=True)]
    return {
        "scheme": scheme,
        "bits": bits,
        "alpha": alpha,
        "rand": rand.hex(),
        "proofs": [_bytes(proof) for proof in proofs],
        "tau": challenge.tau,
        "messages": [_bytes(message) for message in told],
    }


def _bytes(elements: list[int] | tuple[int, ...]) -> str:
    return b"".join(x.to_bytes(8, "little") for x in elements).hex()


def seed() -> dict[str, object]:
    secret, campaign = bytes(range(128, 160)), bytes(range(160, 192))
    last = derived = hmac.new(secret, b"fss-ecdf check seed 2\n" + campaign, hashlib.sha256).digest()
    for _ in range(1000):
        derived = hashlib.sha256(b"fss-ecdf check step 1\n" + campaign + derived).digest()
    label = b"fss-ecdf check commitment 1\n"
    commitments = [hashlib.sha256(label + bytes([b]) + campaign + derived).hexdigest() for b in (0, 1)]
    seeds = {"seed": derived.hex(), "seed_of_wave_1000": last.hex()}
    return {"secret": secret.hex(), "campaign": campaign.hex(), **seeds, "commitments": commitments}


def bad() -> list[dict[str, object]]:
    """Malformed proofs: one change to a good one each, and the message it must raise."""
    proof = bytes.fromhex(good("dcf", 8, 200)["proofs"][0])  # type: ignore[index]
    p = P.to_bytes(8, "little")
    changes = {
        "short": (proof[:-1], "has 176 bytes; got 175 bytes, which is 0 proofs and 175 bytes more"),
        "long": (proof + b"\0", "which is 1 proofs and 1 bytes more"),
        "correction": (proof[:24] + p + proof[32:], "proof 0, word 3: expected an element of Z_p"),
        "mask": (proof[:32] + b"\xff" * 8 + proof[40:], "proof 0, word 4: expected an element of Z_p"),
        "quotient": (proof[:-8] + p, "proof 0, word 21: expected an element of Z_p"),
        "second": (proof + proof[:40] + p + proof[48:], "proof 1, word 5: expected an element of Z_p"),
    }
    return [{"name": name, "bits": 8, "proof": data.hex(), "error": error} for name, (data, error) in changes.items()]


def main() -> None:
    body = {
        "provenance": "Made by tests/oracle/check.py (python -m tests.vectors.make_check); no public vectors exist.",
        "binder": BINDER.hex(),
        "digest": DIGEST.hex(),
        "seed0": SEED0.hex(),
        "seed1": SEED1.hex(),
        "good": [good(scheme, *case) for scheme in ("dcf", "dpf") for case in CASES],
        "seed": seed(),
        "bad": bad(),
    }
    (Path(__file__).parent / "fss_check.json").write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
