"""python -m tests.vectors.make_messages: write messages.json with the program on docs/specification.md. Frozen."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.oracle.page import specified

page = specified()
SECRETS = bytes(range(200, 232)), bytes(range(40, 72))
SALT = bytes(range(100, 132))  # of their HPKE keys
TOKEN = "fss-up-of-the-vectors"  # noqa: S105  # that uploads are sent with


def named(name: str, count: int) -> bytes:
    """Bytes that nobody chose."""
    return bytes(hashlib.shake_256(b"fss-ecdf vector " + name.encode()).digest(count))


def _id(name: str) -> bytes:
    return named(f"{name} id", 32)


def _variable(grid: dict[str, Any]) -> dict[str, Any]:
    return {"name": "value", "grid": grid}


def _campaigns() -> dict[str, dict[str, Any]]:
    linear = {"kind": "linear", "values": "float", "from": 0.0, "to": 1.0, "step": 0.01}
    whole = {"kind": "linear", "values": "integer", "from": 0.0, "to": 6.0, "step": 1.0}
    tiny = {"kind": "linear", "values": "float", "from": 0.0, "to": 0.0001, "step": 0.00001}
    factors = {"kind": "logarithmic", "values": "float", "from": 20.0, "to": 10000000.0, "count": 506}
    days = {"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-12-31", "step": 7.0}
    classes = {"kind": "explicit", "values": "float", "at": [10000.0, 20000.0, 35000.0, 50000.0, 1000000.0]}
    points = {**_variable(whole), "scheme": "dpf"}
    found: dict[str, dict[str, Any]] = {
        "risk": {
            "title": "Risk",
            "question": "Which risk?",
            "epsilon": 1.0,
            "variables": [_variable(linear)],
            "strata": ["no", "yes"],
        },
        "points": {
            "title": 'Tage "überlebt" \\ 𝄞',
            "question": "How many\u00a0?",
            "epsilon": 0.1,
            "variables": [{**points, "unit": "d", "weight": 2.5}],
            "check_keys": False,
            "reserve": 0.5,
            "min_uploads": 10,
            "opens": "2026-03-01T00:00:00Z",
            "closes": "2026-03-31T18:00:00Z",
            "admission": "invited",
        },
        "small numbers": {
            "title": "x",
            "question": "x",
            "epsilon": 0.01,
            "variables": [_variable(tiny)],
            "max_values_per_person": 1,
        },
        "weekly": {
            "title": "Waiting",
            "question": "How long?",
            "epsilon": 0.5,
            "variables": [_variable(whole)],
            "opens": "2026-01-05T00:00:00Z",
            "waves": {
                "every": "week",
                "count": 52,
                "pooled": [{"through": 26, "epsilon": 0.5}, {"through": "end", "epsilon": 0.25}],
            },
        },
        "checked points": {"title": "x", "question": "x", "epsilon": 20.0, "variables": [points]},
        "orders of magnitude": {"title": "x", "question": "x", "epsilon": 1.0, "variables": [_variable(factors)]},
        "categories": {
            "title": "x",
            "question": "x",
            "epsilon": 1.0,
            "variables": [{"name": "smoker", "categories": ["never", "former", "current"], "missing": True}],
            "strata": ["control", "treated"],
        },
        "some are missing": {
            "title": "x",
            "question": "x",
            "epsilon": 1.0,
            "variables": [{**_variable(whole), "missing": True}],
        },
        "days": {
            "title": "x",
            "question": "x",
            "epsilon": 1.0,
            "variables": [_variable(days)],
            "strata": ["no", "yes"],
        },
        "classes": {"title": "x", "question": "x", "epsilon": 1.0, "variables": [_variable(classes)]},
    }
    for name, fields in found.items():
        fields["id"] = page.text(_id(name))
    for name in ("risk", "checked points"):
        found[name]["server_commitments"] = [
            page.server_commitment(secret, b, _id(name), SALT) for b, secret in enumerate(SECRETS)
        ]
    return found


# Stratum and value of each upload.
VALUES: dict[str, list[tuple[int, float | str]]] = {
    "risk": [(0, 0.0), (0, 0.3), (1, 0.295), (1, 7.5), (1, -1.0), (0, 0.07)],
    "points": [(0, 0.0), (0, 3.0), (0, 6.0)],
    "small numbers": [(0, 0.00003), (0, 0.000031)],
    "weekly": [(0, 2.0), (0, 6.0)],
    "checked points": [(0, 5.0), (0, 0.0)],
    "orders of magnitude": [(0, 20.0), (0, 20.526518), (0, 1e6), (0, 2e7), (0, 0.1)],
    "categories": [(0, "never"), (1, "current"), (1, ""), (0, "former")],
    "some are missing": [(0, 0.0), (0, 6.0), (0, "NA"), (0, 7.0)],
    "days": [(0, "2026-01-01"), (1, "2026-03-01"), (1, "2025-12-31"), (0, "2027-01-01")],
    "classes": [(0, 10000.0), (0, 10000.01), (0, 2e6)],
}


def good(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    (variable,) = fields["variables"]
    bits = page.domain_bits(len(fields.get("strata", ["all"])), page.size_of(variable))
    positions = [page.position(variable, stratum, value) for stratum, value in VALUES[name]]
    count = len(positions)
    checked = fields.get("check_keys", True)
    rand = named(f"{name} rand", count * (184 if checked else 32))
    ids = [named(f"{name} upload {i}", 16) for i in range(count)]
    wave = 3 if "waves" in fields else 0
    shares, _ = page.shares_of(fields, positions, bits, rand)
    envelopes = page.deal(fields, positions, bits, rand, ids, wave)
    entries = [i + page.leaf(i, wave, 1, a, b) for i, a, b in zip(ids, *shares, strict=True)]
    return {
        "name": name,
        "fields": fields,
        "canonical": page.canonical(fields).decode(),
        "digest": page.campaign_digest(page.canonical(fields)).hex(),
        "bits": bits,
        "values": [
            {"stratum": s, "value": v, "position": p} for (s, v), p in zip(VALUES[name], positions, strict=True)
        ],
        "rand": rand.hex(),
        "ids": [i.hex() for i in ids],
        "envelopes": [data.hex() for data in envelopes],
        **({"token": TOKEN, "sealed": _sealed(name, fields, envelopes)} if "server_commitments" in fields else {}),
        "wave": wave,
        "entries": [entry.hex() for entry in entries],
        "checksum": page.set_checksum(entries).hex(),
    }


def _sealed(name: str, fields: dict[str, Any], envelopes: list[bytes]) -> list[str]:
    """As they travel to servers with these secrets."""
    keys = [page.x25519_public(page.hpke_secret(secret, "x25519", _id(name), SALT)) for secret in SECRETS]
    assert [page.text(key) for key in keys] == [server["hpke_key"] for server in fields["server_commitments"]]
    ephemerals = [[named(f"{name} ephemeral {b} {part}", 32) for part in range(2)] for b in (0, 1)]
    return [page.sealed_upload(keys[b], envelopes[b], TOKEN, ephemerals[b]).hex() for b in (0, 1)]


def bad_envelopes(case: dict[str, Any]) -> list[dict[str, str]]:
    """One change each to the first two uploads of server 0's envelope of the campaign "risk"."""
    data = bytes.fromhex(case["envelopes"][0])
    row, start = (len(data) - 64) // len(case["ids"]), 64 + 16 + 32
    two = (2).to_bytes(4, "little")
    data = data[:44] + two + two + data[52 : 64 + 2 * row]
    p, last = page.word(page.P), 64 + row
    changes = {
        "empty": b"",
        "a header that is cut off": data[:63],
        "another magic": b"FSSX" + data[4:],
        "version 2": data[:4] + b"\2" + data[5:],
        "for the other server": data[:5] + b"\1" + data[6:],
        "of another kind": data[:6] + b"\1" + data[7:],
        "a byte that is not zero": data[:7] + b"\1" + data[8:],
        "a wave of a campaign without waves": data[:40] + b"\1" + data[41:],
        "more people than keys": data[:48] + b"\3" + data[49:],
        "no proofs in a checked campaign": data[:60] + bytes(4) + data[64:],
        "another key size": data[:56] + (208).to_bytes(4, "little") + data[60:],
        "no uploads": data[:44] + bytes(12) + data[56:64],
        "fewer uploads than it says": data[:-row],
        "more uploads than it says": data + data[-row:],
        "a byte too many": data + b"\0",
        "a byte too few": data[:-1],
        "one id twice": data[:last] + data[64:80] + data[last + 16 :],
        "a key of version 1": _changed(data, start, b"\1"),
        "a key of the other scheme": _changed(data, start + 1, b"\2"),
        "a key of the other server": _changed(data, start + 3, b"\1"),
        "a key of another campaign": _changed(data, start + 4, bytes(4)),
        "a root with the other server's control bit": _changed(data, start + 15, bytes([data[start + 15] | 128])),
        "spare bits in the third word": _changed(data, start + 31, b"\x80"),
        "a value correction of p": _changed(data, start + 48, p),
        "a proof's last word of p": data[:-8] + p,
    }
    wrong = [{"name": name, "code": "invalid-upload", "envelope": made.hex()} for name, made in changes.items()]
    other = data[:8] + bytes(32) + data[40:]
    return [*wrong, {"name": "another campaign's digest", "code": "digest-mismatch", "envelope": other.hex()}]


def _changed(data: bytes, at: int, to: bytes) -> bytes:
    return data[:at] + to + data[at + len(to) :]


def bad_campaigns(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """One change each to the campaign "risk"."""
    (variable,) = fields["variables"]
    grid = variable["grid"]

    def on(**change: object) -> dict[str, Any]:
        return {"variables": [{**variable, "grid": {**grid, **change}}]}

    changes: dict[str, dict[str, Any]] = {
        "a field nobody knows": {"colour": "blue"},
        "an id with padding": {"id": fields["id"] + "="},
        "an id of 31 bytes": {"id": page.text(bytes(31))},
        "an id whose spare bits are set": {"id": fields["id"][:-1] + "B"},
        "no title": {"title": ""},
        "epsilon of zero": {"epsilon": 0.0},
        "epsilon beyond 20": {"epsilon": 20.5},
        "a step that does not divide the range": on(step=0.03),
        "a grid from high to low": on(**{"from": 1.0, "to": 0.0}),
        "a grid of a kind nobody knows": on(kind="quadratic"),
        "the same stratum twice": {"strata": ["no", "no"]},
        "more at least than at most": {"min_uploads": 10, "max_uploads": 5},
        "closing before it opens": {"opens": "2026-03-02T00:00:00Z", "closes": "2026-03-01T00:00:00Z"},
        "a time without its zone": {"opens": "2026-03-02T00:00:00"},
        "waves without their number": {"waves": {"every": "manual", "pooled": []}},
        "a pool after the last wave": {
            "waves": {"every": "manual", "count": 2, "pooled": [{"through": 3, "epsilon": 1.0}]}
        },
        "waves by the week that open at no time": {"waves": {"every": "week", "count": 2, "pooled": []}},
        "one server only": {"server_commitments": fields["server_commitments"][:1]},
        "a commitment of 31 bytes": {
            "server_commitments": [
                {**fields["server_commitments"][0], "commitment": page.text(bytes(31))},
                fields["server_commitments"][1],
            ]
        },
        "an HPKE key of 31 bytes": {
            "server_commitments": [
                {**fields["server_commitments"][0], "hpke_key": page.text(bytes(31))},
                fields["server_commitments"][1],
            ]
        },
        "HPKE keys of another KEM": {"kem": "mlkem768x25519"},
        "a KEM nobody knows": {"kem": "p256"},
        "more bits than keys can be checked over": on(to=10000.0),
        "no variable": {"variables": []},
        "two variables": {"variables": [variable, {**variable, "name": "another"}]},
        "a variable without a name": {"variables": [{**variable, "name": ""}]},
        "a weight of zero": {"variables": [{**variable, "weight": 0.0}]},
    }
    return [
        {"name": name, "code": "invalid-campaign", "fields": {**fields, **change}} for name, change in changes.items()
    ]


def answers(case: dict[str, Any]) -> dict[str, Any]:
    """A statement of each server about the set of "risk", and a signed answer; malformed ones of server 1."""
    digest, checksum, count = bytes.fromhex(case["digest"]), bytes.fromhex(case["checksum"]), len(case["ids"])
    body = json.dumps({"digest": page.text(digest), "positions": [0, 1, 255]}, separators=(",", ":")).encode()
    question, made = b"/shares\n" + body, []
    asked = {"digest": page.text(digest), "checksum": page.text(checksum), "start": 1, "stop": 3}
    about_keys = b"/messages?wave=0\n" + json.dumps(asked, separators=(",", ":")).encode()
    for server, secret in enumerate(SECRETS):
        keys, noise = named(f"key file {server}", 32), named(f"noise secret {server}", 32)
        stated = page.statement(digest, server, checksum, count, keys, noise)
        elements = [page.element(w) for w in page.words(named(f"elements {server}", 24))]
        answer = page.shares(server, digest, checksum, count, elements)
        about = page.covered_by_signature(stated, question, answer)
        told = b"".join(page.word(page.element(w)) for w in page.words(named(f"check messages {server}", 48)))
        signed = page.sign(secret, page.covered_by_message_signature(server, about_keys, told))
        made.append(
            {
                "secret": secret.hex(),
                "key_file": keys.hex(),
                "noise_secret": noise.hex(),
                "statement": stated.split(b"\n", 1)[1].decode(),
                "statement_signature": page.sign(secret, stated).hex(),
                "elements": elements,
                "answer": answer.hex(),
                "signature": page.sign(secret, about).hex(),
                "messages": told.hex(),
                "messages_signature": signed.hex(),
            }
        )
    bad = _bad_answers(bytes.fromhex(made[1]["answer"]))
    asked_for = {"question": question.decode(), "messages_question": about_keys.decode()}
    return {**asked_for, "servers": made, "bad": bad}


def _bad_answers(data: bytes) -> list[dict[str, str]]:
    changes = {
        "another magic": b"FSSU" + data[4:],
        "version 2": data[:4] + b"\2" + data[5:],
        "of the other server": data[:5] + b"\0" + data[6:],
        "bytes that should be zero": data[:6] + b"\1\0" + data[8:],
        "one element less than asked for": data[:-8],
        "another number of elements than it says": data[:80] + page.word(2) + data[88:],
        "an element of p": data[:-8] + page.word(page.P),
    }
    wrong = [{"name": name, "code": "invalid-peer-response", "answer": made.hex()} for name, made in changes.items()]
    other = data[:8] + bytes(32) + data[40:]
    return [*wrong, {"name": "another campaign's digest", "code": "digest-mismatch", "answer": other.hex()}]


def body() -> dict[str, Any]:
    cases = [good(name, fields) for name, fields in _campaigns().items()]
    return {
        "provenance": "Made by the program on docs/specification.md (python -m tests.vectors.make_messages).",
        "good": cases,
        "bad_envelopes": bad_envelopes(cases[0]),
        "bad_campaigns": bad_campaigns(cases[0]["fields"]),
        "answers": answers(cases[0]),
    }


if __name__ == "__main__":
    (Path(__file__).parent / "messages.json").write_text(json.dumps(body(), indent=1, ensure_ascii=False) + "\n")
