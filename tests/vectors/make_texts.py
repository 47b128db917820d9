"""python -m tests.vectors.make_texts: write texts.json with the program on docs/specification.md. Frozen."""

import json
from pathlib import Path

from tests.oracle.page import specified

page = specified()

# Each is tried alone between letters, at the start and at the end; then some whole texts.
CHARACTERS = [
    *range(0x21),
    *range(0x7E, 0xB0),
    *(edge + step for pair in page.INVISIBLE for edge in pair for step in (-1, 0, 1)),
    *sorted(page.BLANKS),
    0xE9, 0x5D0, 0x627, 0x4E2D, 0x1F600, 0x1D11E, 0x301, 0x5B4, 0x20DD,
]  # fmt: skip
TEXTS = [
    "",
    "HbA1c (%)",
    'Tage "überlebt" \\ \U0001d11e',
    "a  b",
    "a\u00a0 b",
    " a",
    "a\u3000",
    "two\nlines",
    "Waiting time\r  privacy   epsilon 0.1",
    "\x1b[2J\x1b[H",
    "\x9b2J",
    "epsilon \u202e02\u202c",
    "\u2066a\u2069",
    "ze\u200bro",
    "e\u0301te\u0301",
    "e" + 4 * "\u0301",
    "e" + 5 * "\u0301",
    "\u0301e",
    "ก" + 4 * "\u0e47",
    "ก" + 5 * "\u0e47",
    "\U000e0041",
    "שלום עולם",
]
ADDRESSES = [
    "https://server.example",
    "https://server.example/",
    "https://server.example:8440/v1/campaigns/AAEC-_x",
    "https://127.0.0.1:8441",
    "https://[::1]:8441/a",
    "https://server.example:65535",
    "https://xn--bcher-kva.example/~a/b.c",
    "https://server.example:65536",
    "https://server.example:0",
    "https://server.example:",
    "http://server.example",
    "HTTPS://server.example",
    "https://user@server.example",
    "https://user:word@server.example",
    "https://server.example#part",
    "https://server.example/?a=b",
    "https://server.example/a b",
    "https://server.example/\n",
    "https://server.example\n",
    "https://server.example\t",
    " https://server.example",
    "https://server.example/\x1b[2J",
    "https://server.example/../x",
    "https://server.example/./x",
    "https://server.example//x",
    "https://server.example\\x",
    "https://b\u00fccher.example",
    "https://server\u202e.example",
    "https://server.example/%2e%2e/x",
    "https://",
    "https:///x",
    "https://-a.example",
    "https://a..b",
    "https://" + "a" * 492,
    "https://" + "a" * 493,
    "javascript:alert(1)",
    "",
]


def points(text: str) -> list[int]:
    """Half of a surrogate pair cannot be written as text."""
    return [ord(one) for one in text]


def made() -> dict[str, list[list[int]]]:
    around = [(before, after) for before, after in (("a", "b"), ("", "b"), ("a", ""))]
    single = [f"{a}{chr(c)}{b}" for c in dict.fromkeys(CHARACTERS) if 0 <= c < 0x110000 for a, b in around]
    found: dict[str, list[list[int]]] = {"good": [], "rejected": [], "good_addresses": [], "rejected_addresses": []}
    for text in [*single, *TEXTS]:
        found["good" if page.is_text(text) else "rejected"].append(points(text))
    for text in ADDRESSES:
        found["good_addresses" if page.is_address(text) else "rejected_addresses"].append(points(text))
    return found


if __name__ == "__main__":
    Path(__file__).with_name("texts.json").write_text(json.dumps(made(), separators=(",", ":")) + "\n")
