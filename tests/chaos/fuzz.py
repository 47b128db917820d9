"""Mutated messages for every decoder: each is refused with a problem, or accepted and encodes to what it was.

Binary messages must encode to the very same bytes; texts, which can be written in many ways, to one that reads the
same again.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dealer.receipt import Receipt, open_receipt
from fss import FssError, KeyBatch, field
from fss_ecdf.campaign.binary_messages import (
    ShareMessage,
    Uploads,
    decode_shares,
    decode_uploads,
    encode_shares,
    encode_uploads,
    stored_bytes,
    upload_rows,
)
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import Problem, parse_problem
from fss_ecdf.campaign.json_messages import (
    Message,
    NewCampaign,
    PeerSumsQuery,
    ShareQuery,
    SumsQuery,
    UploadResponse,
    read,
)
from servers.lifecycle.seal_messages import Agreed, Frozen, Step
from tests.campaign.helpers import campaign, fields
from tests.chaos.model import Broken
from tests.harness.server_pair import envelopes

Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]
CHUNK = 4096


@dataclass(frozen=True)
class Target:
    """A decoder, messages that it accepts, and what it may raise."""

    name: str
    seeds: list[bytes]
    decode: Decode
    encode: Encode
    refusals: tuple[type[Exception], ...] = (Problem,)
    binary: bool = True

    def try_one(self, data: bytes) -> bool:
        """Whether it was accepted."""
        try:
            decoded = self.decode(data)
        except self.refusals as refusal:
            if type(refusal) is Problem:
                raise Broken(f"{self.name}: {data!r} is an internal error") from refusal
            return False
        except Exception as error:
            raise Broken(f"{self.name}: {type(error).__name__} ({error}) for {data!r}") from error
        again = self.encode(decoded)
        if self.binary and again != data:
            raise Broken(f"{self.name}: {data!r} was accepted and is written {again!r}")
        if not self.binary and self.encode(self.decode(again)) != again:
            raise Broken(f"{self.name}: {data!r} was accepted and does not read back")
        return True


def fuzz(target: Target, count: int, seed: int) -> int:
    """Try so many mutations; returns how many were accepted."""
    rng = np.random.default_rng(seed)
    accepted = 0
    mutations = _bytes_like(target.seeds, rng) if target.binary else _text_like(target.seeds, rng)
    for _ in range(count):
        accepted += target.try_one(next(mutations))
    return accepted


def _bytes_like(seeds: list[bytes], rng: np.random.Generator) -> Iterator[bytes]:
    """A few bytes changed, often in the header; now and then a piece cut, doubled, swapped or taken from another."""
    while True:
        base = np.frombuffer(seeds[rng.integers(len(seeds))], np.uint8)
        rows = np.tile(base, (CHUNK, 1))
        changes = rng.integers(1, 4)
        for _ in range(changes):
            limit = rng.choice([min(64, base.size), base.size])
            at = rng.integers(0, limit, CHUNK)
            kind = rng.integers(0, 4, CHUNK)
            old = rows[np.arange(CHUNK), at]
            new = rng.integers(0, 256, CHUNK).astype(np.uint8)
            bit = np.left_shift(np.uint8(1), rng.integers(0, 8, CHUNK).astype(np.uint8))
            rows[np.arange(CHUNK), at] = np.select(
                [kind == 0, kind == 1, kind == 2], [old ^ bit, new, np.uint8(255)], np.uint8(0)
            )
        words = rows[:, 8 * rng.integers(0, base.size // 8 - 1) :][:, :8]
        if rng.random() < 0.3:
            words[:] = np.frombuffer(_WORDS[rng.integers(len(_WORDS))].to_bytes(8, "little"), np.uint8)
        shape = rng.integers(0, 20, CHUNK)
        cut = rng.integers(0, base.size, (CHUNK, 2))
        other = seeds[rng.integers(len(seeds))]
        for i in range(CHUNK):
            data = rows[i].tobytes()
            yield data if shape[i] > 3 else _reshaped(data, other, int(shape[i]), *map(int, cut[i]))


_WORDS = [0, 1, field.P - 1, field.P, field.P + 1, 1 << 63, (1 << 64) - 1, (1 << 32) - 1]


def _reshaped(data: bytes, other: bytes, shape: int, a: int, b: int) -> bytes:
    low, high = min(a, b), max(a, b)
    return (
        data[:a],
        data[:high] + data[low:],
        data[:low] + data[high:],
        data[:low] + other[low:high] + data[high:],
    )[shape]


_TOKENS = [
    b"null", b"true", b"-1", b"0", b"1e400", b"NaN", b"Infinity", b"9" * 400, b"1" * 5000, b'"\\ud800"', b'""',
    b"[]", b"{}",
    b"[" * 2000, b'{"a":' * 500, b"\xff\xfe", b"\x00", b"1.5", b"2026-13-45", b'"' + b"x" * 3000 + b'"',
    b",", b":", b"\n",
    b"9223372036854775808", b"0.1e-320", b"-0", b"1979-05-27T07:32:00Z", b"\xed\xa0\x80",
]  # fmt: skip


def _text_like(seeds: list[bytes], rng: np.random.Generator) -> Iterator[bytes]:
    """Tokens put in place of others, pieces doubled or removed, bytes changed."""
    while True:
        data = bytearray(seeds[rng.integers(len(seeds))])
        for _ in range(rng.integers(1, 4)):
            a = int(rng.integers(0, len(data) + 1))
            b = min(len(data), a + int(rng.integers(0, 12)))
            kind = rng.integers(0, 5)
            if kind == 0:
                data[a:b] = _TOKENS[rng.integers(len(_TOKENS))]
            elif kind == 1:
                data[a:b] = data[a:b] * 2
            elif kind == 2:
                del data[a:b]
            elif kind == 3 and a < len(data):
                data[a] = rng.integers(0, 256)
            elif kind == 4:
                data = _value_replaced(data, rng)
        yield bytes(data)


def _value_replaced(data: bytearray, rng: np.random.Generator) -> bytearray:
    """Another token in the place of a value, so that the rest stays well-formed."""
    ends = [i for i, c in enumerate(data) if c in b",}\n"]
    starts = [i for i, c in enumerate(data) if c in b":="]
    if not starts or not ends:
        return data
    start = starts[rng.integers(len(starts))]
    end = next((e for e in ends if e > start), len(data))
    return data[: start + 1] + _TOKENS[rng.integers(len(_TOKENS))] + data[end:]


# The targets


def envelope_target() -> Target:
    """What anybody with a token can send to a server, with proofs."""
    c = campaign(strata=["no", "yes"], check_keys=True)
    seeds = [data for n in (1, 2, 3) for data in envelopes(c, np.arange(n))]
    both = [envelopes(campaign(id=bytes(32)), np.arange(1))[0]]
    return Target("upload", seeds + both, partial(_decoded, campaign=c), partial(encode_uploads, c))


def _decoded(data: bytes, campaign: Campaign) -> Uploads:
    """A server stores exactly what can be decoded, though it does not decode it to store it."""
    stored = _stored(data, campaign)
    try:
        decoded = decode_uploads(data, campaign, 0)
    except Problem:
        if stored is not None:
            raise Broken(f"upload: {data!r} is stored and cannot be decoded") from None
        raise
    if stored != np.concatenate([stored_bytes(decoded.keys, decoded.proofs), decoded.others], axis=1).tobytes():
        raise Broken(f"upload: {data!r} can be decoded and is not stored as it is")
    return decoded


def _stored(data: bytes, campaign: Campaign) -> bytes | None:
    try:
        return b"".join(opening for _, _, opening in upload_rows(data, campaign, 0)[1])
    except Problem:
        return None


def other_targets(folder: Path) -> list[Target]:
    c = campaign()
    keys = [envelopes(c, np.arange(n))[0] for n in (1, 2)]
    bare = [decode_uploads(data, c, 0).keys.to_bytes() for data in keys]
    shares = ShareMessage(1, bytes(32), 7, np.arange(5, dtype=np.uint64))
    frozen, step = Frozen("frozen", 3, c.digest, 7), Step(3, c.digest, bytes(32), bytes(range(48)))
    digest = to_base64url(c.digest)
    return [
        Target(
            "shares", [encode_shares(c, shares)], partial(decode_shares, campaign=c, server=1, count=5),
            partial(encode_shares, c),
        ),
        Target("keys", bare, partial(KeyBatch.from_bytes, binder=c.id), KeyBatch.to_bytes, (FssError,)),
        Target("frozen uploads", [frozen.encode()], Frozen.decode, Frozen.encode),
        Target("step of a sealing", [step.encode()], Step.decode, Step.encode),
        _message(ShareQuery, {"digest": digest, "positions": [1, 2]}, {"digest": digest, "positions": "all"}),
        _message(SumsQuery, {"weights": [[0, 1], [2, -3]], "units": [1, 5], "epsilon": 0.5}),
        _message(PeerSumsQuery, {"weights": [[0, 1]], "units": None, "epsilon": 0.5, "digest": digest}),
        _text("new campaign", [_created(c)], _from_created, _created),
        _message(UploadResponse, {"failures": [{"id": "x", "code": "upload-conflict", "detail": "y"}]}),
        _message(Agreed, {"count": 3, "checksum": digest, "unmatched": 0}),
        _text("campaign as JSON", [c.to_json().encode(), _rich().canonical], Campaign.from_json, _canonical),
        _text("campaign as TOML", [c.to_toml().encode(), _rich().to_toml().encode()], _from_toml, _to_toml),
        _text("problem", [json.dumps(Problem("x").document()).encode()], parse_problem, _problem_again),
        _receipt(folder / "receipt"),
    ]  # fmt: skip


def _rich() -> Campaign:
    grid = {"kind": "linear", "values": "date", "from": "2020-01-01", "to": "2020-12-30", "step": 7}
    return Campaign.from_dict(fields(grid=grid, strata=["a", "b"], opens="2026-01-01T00:00:00Z", reserve=0.5))


def _text(name: str, seeds: list[bytes], decode: Decode, encode: Encode) -> Target:
    return Target(name, seeds, decode, encode, binary=False)


def _message(kind: type[Message], *seeds: dict[str, Any]) -> Target:
    written = [json.dumps(seed).encode() for seed in seeds]
    return _text(kind.__name__, written, partial(read, kind), lambda m: m.to_json().encode())


def _created(c: Campaign) -> bytes:
    body = {"campaign": c.model_dump(mode="json", by_alias=True), "upload_token": "0" * 64, "invitations": ["1" * 64]}
    return json.dumps(body).encode()


def _from_created(data: bytes) -> Campaign:
    return Campaign.from_dict(read(NewCampaign, data).campaign)


def _canonical(c: Campaign) -> bytes:
    return c.canonical


def _from_toml(data: bytes) -> Campaign:
    return Campaign.from_toml(data.decode(errors="surrogateescape"))


def _to_toml(c: Campaign) -> bytes:
    return c.to_toml().encode()


def _problem_again(problem: Problem | None) -> bytes:
    return b"" if problem is None else json.dumps(problem.document()).encode()


def _receipt(path: Path) -> Target:
    token, rand = "token", bytes
    with open_receipt(path, "campaign", token, rand) as fresh:
        fresh.take("00" * 32, 3, 2)
        fresh.note_stored(0, (to_base64url(bytes(64)),) * 2)
    seed = path.read_bytes()

    def decode(data: bytes) -> Receipt:
        path.write_bytes(data)
        with open_receipt(path, "campaign", token, rand) as kept:
            return kept

    def encode(receipt: Receipt) -> bytes:
        receipt.save()
        return path.read_bytes()

    return _text("receipt", [seed], decode, encode)
