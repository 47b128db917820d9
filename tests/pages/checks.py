"""What the JavaScript must have in common with Python. Each check raises where they differ; mutants fail theirs."""

import hashlib
import hmac
import json
import math
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from Crypto.Cipher import AES
from Crypto.Hash import TurboSHAKE128

from dealer.upload_secrets import UploadSecrets
from fss import dcf
from fss.field import P
from fss_ecdf.campaign.campaign import Campaign, to_base64url
from fss_ecdf.campaign.errors import InvalidValue
from fss_ecdf.campaign.text import shown
from tests.campaign.helpers import campaign
from tests.pages.probing import Probe

VECTORS = Path(__file__).parents[1] / "vectors"


def hashes(probe: Probe) -> None:
    rng = random.Random(1)
    for size in (0, 1, 55, 56, 63, 64, 119, 135, 136, 137, 167, 168, 169, 400):
        data, key = rng.randbytes(size), rng.randbytes(1 + size % 90)
        assert probe.sha256(data.hex()) == hashlib.sha256(data).hexdigest()
        assert probe.hmac(key.hex(), data.hex()) == hmac.digest(key, data, "sha256").hex()
        assert probe.shake(data.hex(), 300) == hashlib.shake_256(data).hexdigest(300)
        assert probe.turbo(data.hex(), 2, 400) == TurboSHAKE128.new(domain=2, data=data).read(400).hex()


def aes(probe: Probe) -> None:
    """All bytes through the S-box, then random keys and blocks."""
    rng = random.Random(2)
    for _ in range(32):
        key, blocks = rng.randbytes(16), rng.randbytes(32)
        assert probe.aes(key.hex(), blocks.hex()) == AES.new(key, AES.MODE_ECB).encrypt(blocks).hex()


def field(probe: Probe) -> None:
    """Edge sums: chance does not reach the carries of Z_p (2^-58 a time)."""
    words = [0, 1, 2, 7, 8, (1 << 29) - 1, 1 << 29, (1 << 32) - 9, (1 << 32) - 8, (1 << 32) - 2, (1 << 32) - 1]
    lows = sorted({a + b for a in words for b in (0, 1 << 32, 3 << 32, (1 << 34) - 8)})
    highs = sorted({h + k * (1 << 29) for h in (0, 1, (1 << 29) - 2, (1 << 29) - 1) for k in range(4)})
    pairs = [[low, high] for low in lows for high in highs]
    assert [int(x) for x in probe.settle(pairs)] == [(low + (high << 32)) % P for low, high in pairs]
    edges = [0, 1, 2, (1 << 21) - 1, 1 << 21, (1 << 32) - 1, 1 << 32, (1 << 42) - 1, 1 << 42, 1 << 60, P - 2, P - 1, P]
    rng = random.Random(3)
    edges += [rng.randrange(P) for _ in range(20)]
    products = [[str(a), str(b)] for a in edges for b in edges]
    assert [int(x) for x in probe.multiply(products)] == [a * b % P for a in edges for b in edges]


def vectors(probe: Probe) -> None:
    """Frozen ones, which neither program made."""
    known = json.loads((VECTORS / "fss_keys.json").read_text())
    ours = [v for v in known["good"] if v["scheme"] == "dcf" and v["beta"] == 1]
    assert len({v["bits"] for v in ours}) >= 3
    for v in ours:
        assert probe.keys(v["bits"], known["binder"], [v["alpha"]], v["rand"], False)[:2] == v["keys"]
    known = json.loads((VECTORS / "fss_check.json").read_text())
    for v in known["good"]:
        if v["scheme"] == "dcf":
            assert probe.keys(v["bits"], known["binder"], [v["alpha"]], v["rand"], True)[2:] == v["proofs"]


def many_keys(probe: Probe, each: int, seed: str = "keys") -> int:
    """Random keys over 1 to 32 bits, with proofs where keys can be checked; returns how many."""
    for bits in range(1, 33):
        proved = bits <= 20

        def stream(use: str, count: int, bits: int = bits) -> bytes:
            return hashlib.shake_256(f"{seed} {use} {bits}".encode()).digest(count)

        alphas = np.frombuffer(stream("alphas", 4 * each), np.uint32) >> np.uint32(32 - bits)
        rand = stream("rand", each * (dcf.PROVED_RAND_BYTES if proved else dcf.RAND_BYTES))
        about: dict[str, Any] = {"bits": bits, "binder": stream("binder", 32), "rand": rand}
        if proved:
            keys, proofs = dcf.gen_proved(alphas, **about)
            made = [*(k.to_bytes() for k in keys), *(p.to_bytes() for p in proofs)]
        else:
            made = [*(k.to_bytes() for k in dcf.gen(alphas, **about)), b"", b""]
        assert probe.manyKeys(seed, bits, each, proved) == [hashlib.sha256(m).hexdigest() for m in made], bits
    return 32 * each


def few_keys(probe: Probe) -> None:
    many_keys(probe, 20, "few")


def as_text(made: Campaign) -> str:
    """As a server writes it."""
    return json.dumps(made.model_dump(mode="json", by_alias=True), ensure_ascii=False, separators=(",", ":"))


def changed(value: Any) -> Iterator[Any]:
    """Other values in the place of this one, wherever it is."""
    if isinstance(value, dict):
        for key in value:
            for other in changed(value[key]):
                yield {**value, key: other}
        yield {**value, "\U0001f600": 1e-05, "\uffee": [1e16, -0.0, 123456789.125, True, None]}
    elif isinstance(value, list):
        yield [*value, 'x"\\\n\u0001\u007f\u2028']
        for i, item in enumerate(value):
            for other in changed(item):
                yield [*value[:i], other, *value[i + 1 :]]
    elif isinstance(value, bool) or value is None:
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value + 1e-07, 1e22)
    else:
        yield value + "\u00fc"


def digests(probe: Probe) -> None:
    """Over every field of a campaign, whatever it becomes."""
    made = campaign(
        strata=["no", "yes"], closes="2027-01-31T00:00:00Z", reserve=0.25, title='T\u00fcr "a"\\b \U0001f600'
    )
    assert probe.digest(as_text(made)) == made.digest.hex()
    assert set(made.model_dump(by_alias=True)) == set(json.loads(as_text(made)))
    seen = set()
    for fields in changed(made.model_dump(mode="json", by_alias=True)):
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        expected = hashlib.sha256(b"fss-ecdf campaign 8\n" + canonical.encode()).hexdigest()
        assert probe.digest(json.dumps(fields, indent=1)) == expected, canonical
        seen.add(expected)
    assert len(seen) >= len(type(made).model_fields)


GRIDS: list[dict[str, Any]] = [
    {"kind": "linear", "from": 0, "to": 1, "step": 0.01},
    {"kind": "linear", "from": -3.7, "to": 15.2, "step": 0.1},
    {"kind": "linear", "from": 0.00001, "to": 0.00021, "step": 0.00001},
    {"kind": "linear", "from": 0, "to": 4294967295, "step": 1},
    {"kind": "linear", "values": "integer", "from": -5, "to": 730, "step": 5},
    {"kind": "linear", "values": "date", "from": "1969-12-01", "to": "2030-12-31", "step": 1},
    {"kind": "logarithmic", "from": 0.01, "to": 1000, "count": 501},
    {"kind": "logarithmic", "from": 1e-05, "to": 3e20, "count": 77},
    {"kind": "logarithmic", "from": 1, "to": 1.0001, "count": 30},
    {"kind": "explicit", "at": [0.1, 0.25, 0.3, 7, 1e10]},
    {"kind": "explicit", "values": "integer", "at": [0, 1, 5, 100]},
    {"kind": "explicit", "values": "date", "at": ["2020-02-29", "2024-02-29", "2026-01-01"]},
]
ODD = [
    "",
    " ",
    "nan",
    "inf",
    "1_000",
    "1e999",
    "0x10",
    "+.5",
    "5.",
    "1e2",
    "\u00a07 ",
    "7,5",
    "٣",
    "2024-02-30",
    "1.0",
    "-0",
]


def unchecked(**changes: Any) -> Campaign:
    """A campaign of any number of bits; where campaigns say whether keys are checked, one that does not check them."""
    more = {"check_keys": False} if "check_keys" in Campaign.model_fields else {}
    return campaign(**{**changes, **more})


def positions(probe: Probe) -> None:
    """Of every kind of grid: all thresholds, and values on, beside and far from them."""
    rng = random.Random(4)
    for spec in GRIDS:
        grid = unchecked(grid=spec).variable.grid
        text = json.dumps(grid.model_dump(mode="json", by_alias=True))
        if grid.size <= 10_000:
            assert probe.thresholds(text) == grid.all_thresholds.tolist(), spec
        values = [*ODD, "2026-03-31", "1999-12-31T23:59:59Z", "0001-01-01", "9999-12-31"]
        for _ in range(200):
            index = rng.randrange(grid.size)
            x = float(grid.thresholds(np.array([index]))[0])
            values += [repr(y) for y in (x, math.nextafter(x, -1e300), math.nextafter(x, 1e300), x * 1.001)]
            values.append(grid.label(index))
        assert probe.positions(text, values) == [place_or_none(grid, value) for value in values], spec


def place_or_none(grid: Any, value: str) -> int | None:
    try:
        return int(grid.to_indices([value]).index[0])
    except InvalidValue:
        return None


def envelopes(probe: Probe) -> None:
    """One batch of a receipt, as `fss-dealer` makes it, and what its receipt says of it."""
    for number, (bits, checked) in enumerate([(1, False), (7, True), (14, False), (20, True), (31, False)]):
        grid = {"kind": "linear", "from": 0, "to": (1 << bits) - 1, "step": 1}
        made = unchecked(grid=grid, id=bytes([bits]) * 32)
        salt, token, generation = bytes(range(32)), "fss-up-abc", 5 * number
        alphas = np.random.default_rng(bits).integers(0, 1 << bits, 5)
        source = UploadSecrets.of(salt, token)
        text = as_text(made)
        about = salt.hex(), token, number, generation, alphas.tolist(), number % 3
        found = probe.envelopes(_with_checked(text, checked), *about)
        assert found[:2] == [source.token_fingerprint(), source.values_fingerprint(alphas)]
        expected = _shared(source, number, generation, alphas, made, checked, number % 3)
        assert found[2:] == [e.hex() for e in expected], (bits, checked)


def _with_checked(text: str, checked: bool) -> str:
    return json.dumps({**json.loads(text), "check_keys": checked})


def _shared(
    source: UploadSecrets, number: int, generation: int, alphas: Any, made: Campaign, checked: bool, wave: int
) -> list[bytes]:
    """The envelopes by `dealer/`."""
    of = Campaign.from_dict({**made.model_dump(mode="json", by_alias=True), "check_keys": checked})
    shared = source.make_keys(number, generation, np.asarray(alphas, np.int64), of, wave)
    return [shared.envelope(server) for server in (0, 1)]


def messages(probe: Probe) -> None:
    """The frozen ones: digests, positions, and envelopes from the same randomness; point keys are not a page's."""
    good = json.loads((VECTORS / "messages.json").read_text())["good"]
    for case in good:
        about = json.loads(case["canonical"])
        assert probe.digest(case["canonical"]) == case["digest"], case["name"]
        if about["variables"][0]["scheme"] != "dcf":
            assert probe.refusal("campaign", case["canonical"]) == "unknownScheme"
            continue
        if about["variables"][0]["missing"]:
            assert probe.refusal("campaign", case["canonical"]) == "badCampaign"
            continue
        rows = [[str(v["value"]), about["strata"][v["stratum"]]] for v in case["values"]]
        positions = probe.place(case["canonical"], rows)["positions"]
        assert positions == [v["position"] for v in case["values"]], case["name"]
        dealt = probe.dealt(case["canonical"], positions, "".join(case["ids"]), case["rand"], case["wave"])
        assert dealt == case["envelopes"], case["name"]
    assert {grid["kind"] for case in good if (grid := json.loads(case["canonical"])["variables"][0]["grid"])} == {
        "linear",
        "logarithmic",
        "explicit",
    }


def refusals(probe: Probe) -> None:
    """What a page must not take part in, and why."""
    made = campaign(strata=["no", "yes"])
    text = as_text(made)
    fields = json.loads(text)
    (one,) = fields["variables"]

    def changed(**change: Any) -> dict[str, Any]:
        return {"variables": [{**one, **change}]}

    assert probe.refusal("campaign", json.dumps({**fields, **changed(scheme="dpf")})) == "unknownScheme"
    assert probe.refusal("campaign", json.dumps({**fields, "kem": "mlkem768x25519"})) == "unknownKem"
    assert probe.refusal("campaign", json.dumps({**fields, "server_commitments": [{}, {}]})) == "badCampaign"
    assert probe.refusal("campaign", json.dumps({**fields, "epsilon": "1"})) == "badCampaign"
    grids = [{"kind": "cubic"}, {**one["grid"], "step": -1.0}, {**one["grid"], "values": "text"}]
    wide = {"kind": "linear", "values": "integer", "from": 0.0, "to": 4294967295.0, "step": 1.0}
    bads: list[dict[str, Any]] = [
        *(changed(grid=g) for g in [*grids, wide]),
        {"variables": []},
        {"variables": [one, one]},
        {"check_keys": 1},
        {"id": "AAAA"},
        {"strata": []},
    ]
    for bad in bads:
        assert probe.refusal("campaign", json.dumps({**fields, **bad})) == "badCampaign", bad
    big = {**wide, "to": float((1 << 21) - 1)}
    assert probe.refusal("campaign", json.dumps({**fields, **changed(grid=big), "check_keys": True})) == "badCampaign"
    _answers(probe, made, text)


def _answers(probe: Probe, made: Campaign, text: str) -> None:
    digest = to_base64url(made.digest)
    answer = {"campaign": json.loads(text), "digest": digest, "state": "open", "server": 0}
    assert probe.checkAnswer(json.dumps(answer), 0, digest) == {"state": "open", "wave": 0}
    assert probe.refusal("checkAnswer", json.dumps(answer), 1, digest) == "swapped"
    other = {**answer, "campaign": {**json.loads(text), "epsilon": 2.0}}
    assert probe.refusal("checkAnswer", json.dumps(other), 0, digest) == "otherCampaign"
    twice = json.dumps(answer)[:-1] + ',"state":"open"}'
    for nothing in ("", "[]", "{}", twice, '{"server":0,"campaign":1}', "<html>"):
        assert probe.refusal("checkAnswer", nothing, 0, digest) == "noCampaign"


def texts(probe: Probe) -> None:
    """The same texts and addresses are accepted, and what is not is shown alike."""
    known = json.loads((VECTORS / "texts.json").read_text())
    assert set(probe.texts(known["good"])) == {True}
    assert set(probe.texts(known["rejected"])) == {False}
    assert set(probe.addresses(known["good_addresses"])) == {True}
    assert set(probe.addresses(known["rejected_addresses"])) == {False}
    # What this Python's Unicode does not know may be a mark to the browser.
    every = [
        t for t in known["good"] + known["rejected"] if all(unicodedata.category(chr(c)) not in ("Cs", "Cn") for c in t)
    ]
    assert probe.shown(every) == [shown("".join(map(chr, points))) for points in every]
    fields = json.loads(as_text(campaign(strata=["no", "yes"])))
    (one,) = fields["variables"]
    for bad in ("a\x1b[2J", "a\u202eb", "a\nb"):
        for name in ("title", "question"):
            assert probe.refusal("campaign", json.dumps({**fields, name: bad})) == "badCampaign", name
        for name in ("name", "unit"):
            changed = {**fields, "variables": [{**one, name: bad}]}
            assert probe.refusal("campaign", json.dumps(changed)) == "badCampaign", name
    assert probe.refusal("campaign", json.dumps({**fields, "strata": ["no", "y\u200bes"]})) == "badCampaign"
    assert probe.refusal("campaign", json.dumps({**fields, "reserve": 19.5})) == "badCampaign"
