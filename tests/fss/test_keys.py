"""Keys as bytes and as files: frozen vectors, strict decoding, mapping without reading, no secrets in print."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fss import FssError, KeyBatch, KeyFormatError, KeyMismatchError, KeyType, Scheme, dcf, dpf
from fss.keys import FILE_HEADER_BYTES
from tests.fss.helpers import BINDER, NAMES, SCHEMES, make

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "fss_keys.json").read_text())
VECTOR_BINDER = bytes.fromhex(VECTORS["binder"])

GOOD = VECTORS["good"]

pytestmark = pytest.mark.usefixtures("each_backend")


@pytest.mark.parametrize("case", GOOD, ids=[f"{v['scheme']}-{v['bits']}-{v['alpha']}" for v in GOOD])
def test_frozen_keys_and_shares(case: dict[str, Any]) -> None:
    scheme: ModuleType = {"dcf": dcf, "dpf": dpf}[case["scheme"]]
    rand = bytes.fromhex(case["rand"])
    keys = scheme.gen([case["alpha"]], bits=case["bits"], binder=VECTOR_BINDER, rand=rand, beta=[case["beta"]])
    for b in (0, 1):
        stored = bytes.fromhex(case["keys"][b])
        assert keys[b].to_bytes() == stored
        decoded = KeyBatch.from_bytes(stored, VECTOR_BINDER)
        assert scheme.at_points(decoded, case["points"])[:, 0].tolist() == case["shares"][b]


@pytest.mark.parametrize("case", VECTORS["bad"], ids=[v["name"] for v in VECTORS["bad"]])
def test_malformed_keys_name_their_error(case: dict[str, str]) -> None:
    with pytest.raises(KeyFormatError, match=case["error"]):
        KeyBatch.from_bytes(bytes.fromhex(case["key"]), VECTOR_BINDER)


SOME_KEYS = [bytes.fromhex(v["keys"][b]) for v in GOOD if v["bits"] <= 8 for b in (0, 1)]


@st.composite
def mutated_keys(draw: st.DrawFn) -> bytes:
    """A good key with a few bytes overwritten, then cut or extended: the neighbourhood where a lax decoder fails."""
    key = bytearray(draw(st.sampled_from(SOME_KEYS)))
    for _ in range(draw(st.integers(0, 4))):
        key[draw(st.integers(0, len(key) - 1))] = draw(st.integers(0, 255))
    return bytes(key)[: draw(st.integers(0, len(key) + 1))] + draw(st.binary(max_size=9))


@given(st.one_of(st.binary(max_size=300), mutated_keys()))
@example(b"")
def test_any_bytes_decode_to_themselves_or_raise(data: bytes) -> None:
    try:
        batch = KeyBatch.from_bytes(data, VECTOR_BINDER)
    except KeyFormatError:
        return
    assert batch.to_bytes() == data


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])
@pytest.mark.parametrize("bits", [1, 2, 3, 16, 32])
def test_bytes_and_files_round_trip(scheme: ModuleType, bits: int, tmp_path: Path) -> None:
    for keys in make(scheme, [0, 1, 1], bits):
        again = KeyBatch.from_bytes(keys.to_bytes(), BINDER, expected=keys.type)
        keys.save(tmp_path / "k")
        mapped = KeyBatch.open(tmp_path / "k", BINDER, expected=keys.type)
        mapped.check_canonical()
        for other in (again, mapped):
            assert other.type == keys.type
            assert np.array_equal(other.words, keys.words)
        assert mapped.to_bytes() == keys.to_bytes()


def test_a_file_is_mapped_not_copied(tmp_path: Path) -> None:
    keys = make(dcf, np.arange(100), 8)[0]
    keys.save(tmp_path / "k")
    mapped = KeyBatch.open(tmp_path / "k", BINDER)
    assert isinstance(mapped.words.base, np.memmap)
    assert not mapped.words.flags.writeable
    assert np.shares_memory(mapped[10:20].words, mapped.words)
    assert np.array_equal(dcf.sum_over_domain(mapped, threads=2), dcf.sum_over_domain(keys))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: f[:-1], "should have 20064 bytes for 100 keys, but has 20063"),
        (lambda f: f + b"\0", "but has 20065"),
        (lambda f: f[:20], "not a key file"),
        (lambda f: b"x" + f[1:], "not a key file"),
        (lambda f: f[:30] + b"x" + f[31:], "not a key file"),
        (lambda f: f[:16] + (99).to_bytes(8, "little") + f[24:], "for 99 keys"),
        (lambda f: b"", "not a key file"),
    ],
)
def test_damaged_files_are_refused(damage: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "k"
    make(dcf, np.arange(100) % 64, 6)[0].save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(KeyFormatError, match=message):
        KeyBatch.open(path, BINDER)


def test_saving_over_a_mapped_file_damages_nothing(tmp_path: Path) -> None:
    path = tmp_path / "k"
    make(dcf, np.arange(2000) % 64, 6)[0].save(path)
    mapped = KeyBatch.open(path, BINDER)
    before = mapped.words.copy()
    mapped[:500].save(path)
    assert np.array_equal(mapped.words, before)
    assert np.array_equal(KeyBatch.open(path, BINDER).words, before[:, :500])
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["k"]


def test_an_empty_batch_has_a_file_too(tmp_path: Path) -> None:
    make(dpf, np.zeros(0, np.int64), 6)[0].save(tmp_path / "k")
    assert (tmp_path / "k").stat().st_size == FILE_HEADER_BYTES
    assert len(KeyBatch.open(tmp_path / "k", BINDER)) == 0


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    k0, k1 = make(dcf, [1], 8)
    with pytest.raises(KeyMismatchError, match="server 1 where server 0"):
        KeyBatch.from_bytes(k1.to_bytes(), BINDER, expected=k0.type)
    with pytest.raises(KeyMismatchError, match="another campaign"):
        KeyBatch.from_bytes(k0.to_bytes(), b"another binder")
    k0.save(tmp_path / "k")
    with pytest.raises(KeyMismatchError, match="bits 8 where bits 9"):
        KeyBatch.open(tmp_path / "k", BINDER, expected=KeyType(Scheme.DCF, 9, 0, BINDER))


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])
@pytest.mark.parametrize("bits", [1, 4, 5, 9, 32])
@pytest.mark.parametrize("party", [0, 1])
def test_what_lies_within_the_bounds_of_the_wire_is_decoded_and_nothing_else(
    scheme: ModuleType, bits: int, party: int
) -> None:
    """Word by word, at each bound and beside it."""
    keys = make(scheme, [1], bits)[party]
    least, most = keys.type.on_the_wire
    right = np.frombuffer(keys.to_bytes(), np.uint64)
    assert (right >= least).all()
    assert (right <= most).all()
    for word in range(right.size):
        low, high = int(least[word]), int(most[word])
        for value in {0, low - 1, low, high, high + 1, 2**63 - 1, 2**63, 2**64 - 1} - {-1, 2**64}:
            other = right.copy()
            other[word] = value
            try:
                KeyBatch.from_bytes(other.tobytes(), BINDER, expected=keys.type)
            except FssError:
                assert not low <= value <= high, word
            else:
                assert low <= value <= high, word


def test_size() -> None:
    sizes = {bits: KeyType(Scheme.DCF, bits, 0, BINDER).key_bytes for bits in (8, 16, 32)}
    assert sizes == {8: 256, 16: 448, 32: 832}
    assert KeyType(Scheme.DPF, 16, 0, BINDER).key_bytes == 352


def test_repr_shows_sizes_only() -> None:
    keys = make(dcf, [77], 16)[0]
    shown = repr(keys)
    assert shown == "<KeyBatch DCF keys=1 bits=16 server=0 key_bytes=448>"
    for word in keys.words[:, 0]:
        assert str(int(word)) not in shown
