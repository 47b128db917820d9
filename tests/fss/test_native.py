"""The C kernel equals numpy bit for bit, on every instruction set of this processor, and no input makes it crash."""

import hashlib
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fss import BackendError, KeyBatch, KeyType, Scheme, dcf, dpf, field
from fss.backends import current, using
from fss.challenge import Weights
from fss.evaluate import sum_and_observe
from fss.field import Words
from fss.prg import USES, Aes, as_bytes, sigma, tree_prg
from tests.fss.helpers import BINDER, NAMES, SCHEMES, Pair, make

native = pytest.importorskip("fss._native", reason="the native kernel was not built")
native_backend = pytest.importorskip("fss.native_backend")
SETS: tuple[str, ...] = native.sets()
AES_KEYS = tree_prg(BINDER).keys
KINDS = {dcf: Scheme.DCF, dpf: Scheme.DPF}

element = st.one_of(st.integers(0, field.P - 1), st.sampled_from([0, 1, field.P - 1]))
both_schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])


def same(run: Callable[[], Sequence[Words]]) -> Sequence[Words]:
    """What a function gives, which is the same with numpy and with every instruction set."""
    with using("numpy"):
        reference = run()
    try:
        for name in SETS:
            native.choose(name)
            with using("native"):
                for mine, theirs in zip(run(), reference, strict=True):
                    assert np.array_equal(mine, theirs), name
    finally:
        native.choose(SETS[0])
    return reference


def some_weights(keys: KeyBatch, seed: int = 0) -> Weights:
    """Random ones, and in front those that leave no lazy sum room to spare."""
    nodes = 1 << keys.type.depth
    drawn = np.random.default_rng(seed).integers(0, field.P, (5, nodes), dtype=np.uint64)
    drawn[:, : nodes // 2] = field.P - 1
    return Weights(drawn[:4], drawn[4])


def all_shares(scheme: ModuleType, keys: KeyBatch, points: object, threads: int = 1) -> list[Words]:
    return [
        scheme.at_points(keys, points),
        scheme.sum_at_points(keys, points, threads=threads),
        *([scheme.sum_over_domain(keys, threads=threads), scheme.over_domain(keys)] if keys.type.bits <= 12 else []),
        *(sum_and_observe(keys, some_weights(keys), threads=threads) if keys.type.bits <= 12 else []),
    ]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_batches(data: st.DataObject) -> None:
    scheme, bits = data.draw(st.sampled_from(SCHEMES)), data.draw(st.integers(1, 32))
    position = st.integers(0, (1 << bits) - 1)
    n = data.draw(st.integers(0, 200))
    some = data.draw(st.lists(position, min_size=1, max_size=20))
    alphas = np.resize(np.array(some, np.uint64), n)
    beta = np.resize(np.array(data.draw(st.lists(element, min_size=1, max_size=9)), np.uint64), n)
    points = data.draw(st.lists(st.one_of(position, st.sampled_from(some)), min_size=1, max_size=60))
    seed, threads = data.draw(st.integers(0, 99)), data.draw(st.integers(1, 3))
    words = same(lambda: [k.words for k in make(scheme, alphas, bits, beta=beta, seed=seed)])
    for type, party in zip((k.type for k in make(scheme, [0], bits)), words, strict=True):
        keys = KeyBatch(type, party)
        keys.check_canonical()
        same(lambda keys=keys: all_shares(scheme, keys, points, threads))  # type: ignore[misc]


@both_schemes
@pytest.mark.parametrize("n", [0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 511, 512, 513, 1024, 1100, 8200])
def test_every_way_to_fill_stripes_groups_and_chunks(scheme: ModuleType, n: int) -> None:
    pair = make(scheme, np.arange(n) % 64, 6)
    for keys in pair:
        same(lambda keys=keys: all_shares(scheme, keys, [3, 17, 18], 2))  # type: ignore[misc]
        same(lambda keys=keys: all_shares(scheme, keys, np.arange(33) % 32, 2))  # type: ignore[misc]


def whole(scheme: ModuleType, keys: KeyBatch) -> list[Words]:
    return [
        scheme.sum_over_domain(keys),
        scheme.over_domain(keys),
        *sum_and_observe(keys, some_weights(keys)),
    ]


@both_schemes
@pytest.mark.parametrize("bits", [6, 10])
def test_few_keys_walk_from_many_nodes(scheme: ModuleType, bits: int) -> None:
    """Every number of keys up to a group and beyond: 32 lanes hold 32 nodes of one key, 2 of each of 16, 1 of 17."""
    pair = make(scheme, np.arange(130) * 37 % (1 << bits), bits)
    for n in [*range(1, 67), 96, 97, 127, 129]:
        same(lambda keys=pair[n % 2][:n]: whole(scheme, keys))  # type: ignore[misc]


@both_schemes
@pytest.mark.parametrize("bits", range(1, 13))
def test_trees_of_every_height_under_the_lanes(scheme: ModuleType, bits: int) -> None:
    """Trees that are lower than the lanes are wide, as low, and higher; alpha at both ends of every lane's part."""
    top = (1 << bits) - 1
    parts = np.arange(32) * (1 << bits) // 32
    for alphas in ([0], [top], [top // 2, top // 2 + 1], parts[:5], parts[:11], parts[20:], (parts[1:17] - 1).clip(0)):
        for keys in make(scheme, alphas, bits, beta=field.P - 1):
            same(lambda keys=keys: whole(scheme, keys))  # type: ignore[misc]


@both_schemes
@pytest.mark.parametrize("n", [9, 17])
def test_products_of_more_nodes_than_wait_for_a_carry(scheme: ModuleType, n: int) -> None:
    """With nine keys every lane sees half of the nodes, with seventeen all of them."""
    keys = make(scheme, np.arange(n) * 7001, 17)[1]
    largest = np.full((5, 1 << keys.type.depth), field.P - 1, np.uint64)
    same(lambda: sum_and_observe(keys, Weights(largest[:4], largest[4])))


@both_schemes
def test_one_key_at_every_position(scheme: ModuleType) -> None:
    """The step that crosses from one lane to the next is anywhere once; the sums are those of the function."""
    for alpha in range(256):
        pair = make(scheme, [alpha], 8)
        shares = [same(lambda keys=keys: whole(scheme, keys)) for keys in pair]  # type: ignore[misc]
        points = np.arange(256)
        truth = points >= alpha if scheme is dcf else points == alpha
        assert np.array_equal(field.add(shares[0][0], shares[1][0]), truth)


@both_schemes
def test_corrections_at_the_edge_of_the_field(scheme: ModuleType) -> None:
    """The largest words a key may have, so that no lazy sum has room to spare."""
    for keys in make(scheme, np.arange(600) % 64, 6):
        words = np.full_like(keys.words, 2**64 - 1)
        words[keys.type.value_words()] = field.P - 1
        for n in (600, 1, 5, 32):
            extreme = KeyBatch(keys.type, words[:, :n])
            same(lambda extreme=extreme: all_shares(scheme, extreme, np.arange(64)))  # type: ignore[misc]


@both_schemes
def test_words_wherever_they_lie(scheme: ModuleType) -> None:
    keys = make(scheme, np.arange(700) % 128, 7)[1]
    shifted = np.zeros(keys.words.nbytes + 1, np.uint8)[1:].view(np.uint64).reshape(keys.words.shape)
    shifted[...] = keys.words
    assert not shifted.flags.aligned
    backwards = keys.words[::-1].copy()[::-1]
    for batch in (keys[13:690], KeyBatch(keys.type, shifted), KeyBatch(keys.type, backwards)):
        same(lambda batch=batch: all_shares(scheme, batch, [0, 77]))  # type: ignore[misc]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_words_are_evaluated_without_harm(data: st.DataObject) -> None:
    """Keys that no decoder would accept: the shares mean nothing, but nothing beyond `out` is written."""
    pair: Pair = make(data.draw(st.sampled_from(SCHEMES)), np.zeros(3, np.int64), data.draw(st.integers(1, 9)))
    type = pair[0].type
    raw = np.frombuffer(np.random.default_rng(data.draw(st.integers(0, 999))).bytes(8 * 3 * type.words), np.uint64)
    raw = raw | np.uint64(data.draw(st.sampled_from([0, 2**64 - 1])))
    out = np.zeros((2 + (1 << type.bits), 5), np.uint64)
    native.each(type.level_words == 3, type.bits, AES_KEYS, raw.reshape(type.words, 3), None, out[1:-1, 1:-1])
    assert field.is_canonical(out)
    out[1:-1, 1:-1] = 0
    assert not out.any()


@both_schemes
@pytest.mark.parametrize("bits", [*range(1, 8), 16, 20])
def test_proofs(scheme: ModuleType, bits: int) -> None:
    """Every leaf of a node, the first and the last node, and numbers of keys around what is made together."""
    for n in (1, 7, 33, 520):
        alphas = np.resize(np.append(np.arange(min(1 << bits, 64)), (1 << bits) - 1 - np.arange(2)), n)
        rand = np.random.default_rng(n).bytes(n * scheme.PROVED_RAND_BYTES)
        rand = rand[: -8 * n] + b"\xff" * 8 * n  # p, which is no element, where the last words are

        def run(alphas: NDArray[np.int64] = alphas, rand: bytes = rand) -> list[Words]:
            keys, proofs = scheme.gen_proved(alphas, bits=bits, binder=BINDER, rand=rand)
            return [k.words for k in keys] + [p.words for p in proofs]

        for words in same(run)[2:]:
            assert field.is_canonical(words)


def test_what_is_timed_hashes_every_block() -> None:
    """Otherwise the compiler may leave some out, and the limit that a benchmark compares with is too low."""
    words = np.random.default_rng(1).integers(0, 2**64, 64, dtype=np.uint64)
    sums = []
    for use in USES:
        rows, hashed = np.empty((32, 2), np.uint64), np.empty((32, 2), np.uint64)
        sigma(words[:32], words[32:], rows)
        Aes(use, BINDER).encrypt(as_bytes(rows), as_bytes(hashed))
        sums.append(int((rows ^ hashed).sum(dtype=np.uint64)))
    try:
        for name in SETS:
            native.choose(name)
            for times in (0, 1, len(USES), 2 * len(USES) + 3):
                expected = sum(sums[i % len(USES)] for i in range(times)) % 2**64
                assert native.hash_alone(AES_KEYS, words, times) == expected, name
    finally:
        native.choose(SETS[0])


@given(words=st.lists(st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([field.P + d for d in range(-1, 9)]))))
def test_canonical_in_place(words: list[int]) -> None:
    array = np.array(words, np.uint64)
    try:
        for name in SETS:
            native.choose(name)
            mine = array.copy()
            native.canonical(mine)
            assert mine.tolist() == [word % field.P for word in words]
    finally:
        native.choose(SETS[0])


def test_only_instruction_sets_of_this_processor_can_be_chosen() -> None:
    assert SETS[-1] in ("aesni", "neon")
    with pytest.raises(ValueError, match="no instruction set mmx"):
        native.choose("mmx")


def test_the_known_answer_is_numpy_s_and_every_set_gives_it() -> None:
    alphas, rand, beta = native_backend.self_test_input()
    seeds, seen = np.frombuffer(rand, np.uint64).reshape(-1, 4), hashlib.sha256()
    with using("numpy"):
        for scheme in (dcf, dpf):
            type = KeyType(KINDS[scheme], 6, 0, b"self-test")
            words = np.empty((type.words, 70), np.uint64), np.empty((type.words, 70), np.uint64)
            ends = current().gen(type, scheme._fill, alphas, seeds, beta, words)
            proofs = np.empty((22, 70), np.uint64), np.empty((22, 70), np.uint64)
            current().prove(type, alphas, ends, native_backend.self_test_proof_rand(), proofs)
            sums, rows = sum_and_observe(KeyBatch(type, words[0]), native_backend.self_test_weights())
            for array in (*words, ends.words, *proofs, sums, rows):
                seen.update(array.tobytes())
    assert seen.hexdigest() == native_backend.KNOWN_ANSWER
    try:
        for name in native.sets():
            native.choose(name)
            assert native_backend.self_test() == native_backend.KNOWN_ANSWER, name
    finally:
        native_backend.choose_instructions()


def test_a_kernel_that_fails_its_self_test_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_backend, "KNOWN_ANSWER", "something else")
    with pytest.raises(BackendError, match="fails its self-test"):
        native_backend.NativeBackend()


def test_points_that_change_meanwhile_show_no_memory() -> None:
    """Points that lie in the output are overwritten by the first row; the second must still be shares."""
    keys = dpf.gen([0, 1, 2, 3] * 8, bits=2, binder=bytes(32), rand=bytes(1024))[0]
    out = np.zeros((2, 32), np.uint64)
    out[0, :2] = [0, 1]
    native.each(False, 2, tree_prg(bytes(32)).keys, keys.words, out[0, :2], out)
    assert (out < field.P).all()
