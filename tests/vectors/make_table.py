"""python -m tests.vectors.make_table: write fss_table.json from the scalar oracle. Frozen, as tables are stored."""

import json
from pathlib import Path

from tests.oracle.fss import P
from tests.oracle.table import TableOracle, expand, point, secrets, shape

SECRET, CONTEXT, BINDER, CHALLENGE = bytes(range(32)), bytes(range(64)), bytes(range(64, 112)), bytes(range(112, 144))
# One position; one value; empty ends; several coins of bases 2 and 3; more than one block of words
HISTOGRAMS = [
    [1],
    [0, 1, 0],
    [2, 0, 3],
    [40],
    [0, 0, 25, 0, 17],
    [9, 8, 8, 8],
    [0] * 30 + [7] + [1] * 10,
    [100, 0, 250],
]
SHAPES = [(1, 1), (1, 40), (2, 9), (3, 350), (7, 100), (10, 31), (100, 1000), (2002, 500), (2002, 50_000), (2048, 6144)]


def oracle(positions: int, count: int) -> TableOracle:
    return TableOracle(positions, count, *shape(positions, count))


def good(histogram: list[int]) -> dict[str, object]:
    n = sum(histogram)
    scheme = oracle(len(histogram), n)
    drawn = secrets(SECRET, CONTEXT, histogram, n)
    whole = scheme.witness(histogram, drawn.rho, drawn.v)
    mask = expand(drawn.seed, BINDER, len(histogram), n, len(whole))
    words = scheme.share(whole, mask)
    tau = point(CHALLENGE)
    return {
        "histogram": histogram,
        "base": scheme.base,
        "coins": scheme.coins,
        "degree": scheme.degree,
        "seed": drawn.seed.hex(),
        "words": _bytes(words),
        "messages": [_bytes(scheme.message(share, tau)) for share in (mask, words)],
        "counts": [scheme.counts(share) for share in (mask, words)],
    }


def _bytes(elements: list[int] | tuple[int, ...]) -> str:
    return b"".join(x.to_bytes(8, "little") for x in elements).hex()


def bad() -> list[dict[str, object]]:
    """Malformed words of a table of 5 values at 3 positions: one change to good ones each, and what it must raise."""
    words = bytes.fromhex(str(good([2, 0, 3])["words"]))
    p = P.to_bytes(8, "little")
    size = len(words)
    changes = {
        "empty": (b"", f"have {size} bytes, got 0"),
        "short": (words[:-1], f"have {size} bytes, got {size - 1}"),
        "a word less": (words[:-8], f"have {size} bytes, got {size - 8}"),
        "long": (words + b"\0", f"have {size} bytes, got more"),
        "a word more": (words + bytes(8), f"have {size} bytes, got more"),
        "first": (p + words[8:], "word 0 of a table: expected an element of Z_p"),
        "mask": (words[:24] + b"\xff" * 8 + words[32:], "word 3 of a table: expected an element of Z_p"),
        "last": (words[:-8] + p, f"word {size // 8 - 1} of a table: expected an element of Z_p"),
    }
    return [{"name": name, "words": data.hex(), "error": error} for name, (data, error) in changes.items()]


def rejected() -> list[dict[str, object]]:
    """Well-formed words that are no table of 2 values at 2 positions, whose other share is all 0."""
    scheme = oracle(2, 2)
    z = [2, -3, 1]
    changes = {
        "negative": scheme.forged([3, -1], z, 7),
        "nothing": [0] * 9,
        "zero polynomial": scheme.forged([1, 1], [0], 7),
        "fraction": scheme.forged([pow(2, -1, P), 1 - pow(2, -1, P) + 1], z, 7),
        "too few": scheme.witness([0, 1], 5, 7),
        "another multiple": scheme.forged([1, 1], z, 7, [8 * x for x in z]),
        "another polynomial": scheme.forged([1, 1], [4, -4, 1], 7),
    }
    tau, out = point(CHALLENGE), list[dict[str, object]]()
    for name, words in changes.items():
        message = scheme.message(words, tau)
        assert not scheme.accepts(message)
        out.append({"name": name, "words": _bytes(words), "message": _bytes(message)})
    return out


def body() -> dict[str, object]:
    return {
        "provenance": "Made by tests/oracle/table.py (python -m tests.vectors.make_table); no public vectors exist.",
        "secret": SECRET.hex(),
        "context": CONTEXT.hex(),
        "binder": BINDER.hex(),
        "challenge": CHALLENGE.hex(),
        "tau": point(CHALLENGE),
        "shapes": [[*sizes, *shape(*sizes)] for sizes in SHAPES],
        "good": [good(histogram) for histogram in HISTOGRAMS],
        "bad": bad(),
        "rejected": rejected(),
    }


def main() -> None:
    (Path(__file__).parent / "fss_table.json").write_text(json.dumps(body(), indent=1) + "\n")


if __name__ == "__main__":
    main()
