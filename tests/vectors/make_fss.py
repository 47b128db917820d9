"""python -m tests.vectors.make_fss: write fss_keys.json from the scalar oracle. Frozen: a change breaks stored keys."""

import json
from pathlib import Path

import numpy as np

from tests.oracle.fss import Oracle, P

BINDER = bytes(range(32))
CASES = [
    (1, 0, 1),
    (1, 1, 1),
    (2, 3, P - 1),
    (3, 5, 1),
    (4, 9, 1),
    (5, 16, 1),
    (8, 200, 7),
    (16, 40_000, 1),
    (32, 2**32 - 1, 1),
    (32, 0, 0),
]


def good(scheme: str, bits: int, alpha: int, beta: int) -> dict[str, object]:
    rng = np.random.default_rng([bits, alpha])
    rand, top = rng.bytes(32), (1 << bits) - 1
    oracle = Oracle(scheme, bits, BINDER)
    pair = oracle.gen(alpha, beta, rand)
    points = sorted({0, max(alpha - 1, 0), alpha, min(alpha + 1, top), top})
    return {
        "scheme": scheme,
        "bits": bits,
        "alpha": alpha,
        "beta": beta,
        "rand": rand.hex(),
        "keys": [key.serialise(BINDER).hex() for key in pair],
        "points": points,
        "shares": [[oracle.evaluate(key, x) for x in points] for key in pair],
    }


def bad() -> list[dict[str, str]]:
    """Malformed keys: one change to a good one each, and the message it must raise."""
    key = bytes.fromhex(good("dcf", 8, 200, 7)["keys"][0])  # type: ignore[index]
    p = P.to_bytes(8, "little")
    changes = {
        "empty": (b"", "header of 8 bytes, got 0"),
        "short_header": (key[:7], "header of 8 bytes, got 7"),
        "version": (b"\1" + key[1:], "version 1 is not known"),
        "scheme": (key[:1] + b"\3" + key[2:], "scheme 3 is not known"),
        "no_bits": (key[:2] + b"\0" + key[3:], "domain bits must be 1 to 32, got 0"),
        "too_many_bits": (key[:2] + b"\x21" + key[3:], "domain bits must be 1 to 32, got 33"),
        "party": (key[:3] + b"\2" + key[4:], "server must be 0 or 1, got 2"),
        "tag": (key[:4] + b"\0\0\0\0" + key[8:], "another campaign"),
        "truncated": (key[:-1], "has 256 bytes; got 255 bytes"),
        "extended": (key + b"\0", "got 257 bytes, which is 1 keys and 1 bytes more"),
        "other_bits": (key[:2] + b"\7" + key[3:], "over 7 bits has 232 bytes; got 256"),
        "root_control": (key[:3] + b"\1" + key[4:], "word 0: expected a top bit equal to server 1"),
        "control": (key[:24] + (1 << 4).to_bytes(8, "little") + key[32:], "word 2: expected at most 4 bits"),
        "level_value": (key[:48] + p + key[56:], "word 5: expected an element of Z_p"),
        "leaf_value": (key[:-8] + p, "word 30: expected an element of Z_p"),
        "two_kinds": (key + key[:3] + b"\1" + key[4:], "key 1 has another header"),
    }
    return [{"name": name, "key": value.hex(), "error": error} for name, (value, error) in changes.items()]


def main() -> None:
    body = {
        "provenance": "Made by tests/oracle/fss.py (python -m tests.vectors.make_fss); no public vectors exist.",
        "binder": BINDER.hex(),
        "good": [good(scheme, *case) for scheme in ("dcf", "dpf") for case in CASES],
        "bad": bad(),
    }
    (Path(__file__).parent / "fss_keys.json").write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
