"""The check of keys: honest ones pass, whatever the value; every part equals the scalar oracle; bytes are strict."""

import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss import (
    CheckFormatError,
    DomainError,
    KeyBatch,
    KeyFormatError,
    KeyMismatchError,
    Scheme,
    ShapeError,
    dcf,
    dpf,
    field,
)
from fss import challenge as ch
from fss.check import Messages, accept, sum_and_messages
from fss.proof import RAND_BYTES, Proofs, proof_bytes
from tests.fss.helpers import BINDER, NAMES, SCHEMES
from tests.oracle.check import CheckOracle
from tests.oracle.fss import parse

pytestmark = pytest.mark.usefixtures("each_backend")

DIGEST, SEEDS = b"d" * 32, (b"0" * 32, b"1" * 32)
KINDS = {dcf: Scheme.DCF, dpf: Scheme.DPF}
both_schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])

Keys = tuple[KeyBatch, KeyBatch]
Both = tuple[Proofs, Proofs]


def challenge(scheme: ModuleType, bits: int, number: int = 0) -> ch.Challenge:
    return ch.derive(KINDS[scheme], bits, number.to_bytes(32, "big"), *SEEDS)


def proved(scheme: ModuleType, alphas: Any, bits: int, seed: int = 0) -> tuple[Keys, Both]:
    rand = np.random.default_rng(seed).bytes(scheme.PROVED_RAND_BYTES * np.size(alphas))
    both: tuple[Keys, Both] = scheme.gen_proved(alphas, bits=bits, binder=BINDER, rand=rand)
    return both


def messages(keys: Keys, proofs: Both, c: ch.Challenge) -> tuple[Messages, Messages]:
    return sum_and_messages(keys[0], proofs[0], c)[1], sum_and_messages(keys[1], proofs[1], c)[1]


@both_schemes
@pytest.mark.parametrize("bits", range(1, 9))
def test_every_honest_key_is_accepted_and_the_sum_is_the_unchecked_one(scheme: ModuleType, bits: int) -> None:
    keys, proofs = proved(scheme, np.arange(1 << bits), bits)
    for number in range(4):
        c = challenge(scheme, bits, number)
        (sum0, m0), (sum1, m1) = (sum_and_messages(k, p, c) for k, p in zip(keys, proofs, strict=True))
        assert accept(m0, m1, c).all()
        assert np.array_equal(sum0, scheme.sum_over_domain(keys[0]))
        assert np.array_equal(sum1, scheme.sum_over_domain(keys[1]))


@both_schemes
def test_a_large_domain(scheme: ModuleType) -> None:
    keys, proofs = proved(scheme, [0, 12345, 65535, 4096, 4095], 16)
    c = challenge(scheme, 16)
    assert accept(*messages(keys, proofs, c), c).all()


@both_schemes
def test_keys_are_those_without_a_proof(scheme: ModuleType) -> None:
    rand = np.random.default_rng(3).bytes(scheme.PROVED_RAND_BYTES * 4)
    keys, _ = scheme.gen_proved([0, 7, 8, 63], bits=6, binder=BINDER, rand=rand)
    plain = scheme.gen([0, 7, 8, 63], bits=6, binder=BINDER, rand=rand[: 4 * scheme.RAND_BYTES])
    assert [k.to_bytes() for k in keys] == [k.to_bytes() for k in plain]


@both_schemes
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6])
def test_proofs_challenges_and_messages_equal_the_scalar_oracle(scheme: ModuleType, bits: int) -> None:
    n = min(1 << bits, 9)
    alphas = np.arange(n) * 7 % (1 << bits)
    keys, proofs = proved(scheme, alphas, bits, seed=bits)
    rand = np.random.default_rng(bits).bytes(scheme.PROVED_RAND_BYTES * n)[scheme.RAND_BYTES * n :]
    oracle, c = CheckOracle(NAMES[scheme], bits, BINDER), challenge(scheme, bits)
    theirs = oracle.challenge(bytes(32), *SEEDS)
    assert (c.tau, int(c.total), c.rho.tolist(), c.weights.control.tolist()) == (
        theirs.tau,
        theirs.total,
        theirs.rho,
        theirs.r,
    )
    assert c.common.tolist() == [theirs.low, theirs.high]
    told = messages(keys, proofs, c)
    for i in range(n):
        pair = parse(keys[0][i : i + 1].to_bytes()), parse(keys[1][i : i + 1].to_bytes())
        expected = oracle.prove(pair, int(alphas[i]) // oracle.m, rand[RAND_BYTES * i : RAND_BYTES * (i + 1)])
        for b in (0, 1):
            assert proofs[b].words[:, i].tolist() == expected[b]
            assert tuple(told[b].words[:, i].tolist()) == oracle.message(pair[b], expected[b], theirs)
        assert oracle.accepts(pair, expected, theirs)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_cut_into_ranges_and_threads_gives_the_same(data: st.DataObject) -> None:
    """Worker processes check disjoint ranges of keys, each with its own copy of the challenge."""
    scheme, bits = data.draw(st.sampled_from(SCHEMES)), data.draw(st.integers(1, 10))
    n = data.draw(st.integers(1, 150))
    keys, proofs = proved(scheme, np.arange(n) % (1 << bits), bits, seed=n)
    c, b = challenge(scheme, bits), data.draw(st.integers(0, 1))
    whole_sum, whole = sum_and_messages(keys[b], proofs[b], c, threads=data.draw(st.integers(1, 3)))
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=4))})
    parts = [slice(a, z) for a, z in pairwise(cuts)]
    done = [sum_and_messages(keys[b][p], proofs[b][p], c) for p in parts]
    assert np.array_equal(field.add_all([s for s, _ in done]), whole_sum)
    assert Messages.concatenate([m for _, m in done]).to_bytes() == whole.to_bytes()


@both_schemes
def test_what_rejected_keys_added_can_be_subtracted(scheme: ModuleType) -> None:
    keys, proofs = proved(scheme, np.arange(100) % 64, 6)
    proofs[1].words[4, [3, 50]] ^= np.uint64(1)
    c = challenge(scheme, 6)
    kept = accept(*messages(keys, proofs, c), c)
    assert np.flatnonzero(~kept).tolist() == [3, 50]
    out = np.flatnonzero(~kept)
    for k, p in zip(keys, proofs, strict=True):
        total, _ = sum_and_messages(k, p, c)
        rest = field.sub(total, scheme.sum_over_domain(k.take(out)))
        assert np.array_equal(rest, scheme.sum_over_domain(k.take(np.flatnonzero(kept))))


def test_no_keys_no_messages() -> None:
    keys, proofs = proved(dcf, np.zeros(0, np.int64), 5)
    c = challenge(dcf, 5)
    assert len(messages(keys, proofs, c)[0]) == 0
    assert accept(*messages(keys, proofs, c), c).shape == (0,)


@both_schemes
def test_proofs_are_strict_bytes(scheme: ModuleType) -> None:
    keys, proofs = proved(scheme, [1, 9, 200], 8)
    for k, p in zip(keys, proofs, strict=True):
        data = p.to_bytes()
        assert len(data) == 3 * 176 == 3 * proof_bytes(k.type)
        assert np.array_equal(Proofs.from_bytes(data, k.type).words, p.words)
        for bad, message in (
            (data[:-1], "has 176 bytes; got 527 bytes, which is 2 proofs and 175 bytes more"),
            (data + b"\0", "3 proofs and 1 bytes more"),
            (data[:-8] + field.P.to_bytes(8, "little"), "proof 2, word 21: expected an element of Z_p"),
            (b"\xff" * 8 + data[8:], "proof 0, word 0: expected"),
        ):
            with pytest.raises(CheckFormatError, match=message):
                Proofs.from_bytes(bad, k.type)
    assert repr(proofs[0]) == "<Proofs 3 of 176 bytes>"


@given(st.binary(max_size=300))
def test_any_bytes_are_proofs_or_an_error(data: bytes) -> None:
    type = proved(dpf, [0], 3)[0][0].type
    try:
        proofs = Proofs.from_bytes(data, type)
    except CheckFormatError:
        return
    assert proofs.to_bytes() == data


def test_messages_are_strict_bytes() -> None:
    c = challenge(dcf, 8)
    told, _ = messages(*proved(dcf, [1, 9, 200], 8), c)
    data = told.to_bytes()
    assert len(data) == 72
    assert Messages.from_bytes(data, 3).to_bytes() == data
    for bad, count in ((data, 2), (data[:-1], 3), (data[:-8] + b"\xff" * 8, 3)):
        with pytest.raises(CheckFormatError):
            Messages.from_bytes(bad, count)
    assert repr(told) == "<Messages about 3 keys>"


def test_what_does_not_belong_together_is_refused() -> None:
    keys, proofs = proved(dcf, [1, 2], 6)
    c = challenge(dcf, 6)
    with pytest.raises(KeyMismatchError, match="challenge"):
        sum_and_messages(keys[0], proofs[0], challenge(dcf, 7))
    with pytest.raises(KeyMismatchError, match="challenge"):
        sum_and_messages(keys[0], proofs[0], challenge(dpf, 6))
    with pytest.raises(KeyMismatchError, match="proofs"):
        sum_and_messages(keys[0], proofs[1], c)
    with pytest.raises(ShapeError, match="2 keys and 1 proofs"):
        sum_and_messages(keys[0], proofs[0][:1], c)
    told = messages(keys, proofs, c)
    with pytest.raises(ShapeError, match="about 2 keys, the other about 1"):
        accept(told[0], Messages(told[1].words[:, :1]), c)
    words = keys[0].words.copy()
    words[0, 1] |= np.uint64(1 << 63)
    with pytest.raises(KeyFormatError, match="top bit equal to server 0"):
        sum_and_messages(KeyBatch(keys[0].type, words), proofs[0], c)
    with pytest.raises(DomainError, match="more than 20 bits cannot be checked"):
        dcf.gen_proved([1], bits=21, binder=BINDER, rand=bytes(dcf.PROVED_RAND_BYTES))
    with pytest.raises(ShapeError, match="184 bytes a key, 368 for 2 keys; got 100"):
        dcf.gen_proved([1, 2], bits=6, binder=BINDER, rand=bytes(100))


def test_seeds_and_commitments() -> None:
    secrets = [bytes([b]) * 32 for b in (1, 2)]
    campaigns = [bytes([b]) * 32 for b in (3, 4)]
    seeds = {ch.check_seed(s, c) for s in secrets for c in campaigns}
    assert len(seeds) == 4
    assert ch.check_seed(secrets[0], campaigns[0]) == ch.check_seed(secrets[0], campaigns[0])
    seed = ch.check_seed(secrets[0], campaigns[0])
    committed = ch.commitment(0, campaigns[0], seed)
    assert ch.verify_commitment(committed, 0, campaigns[0], seed)
    assert not ch.verify_commitment(committed, 1, campaigns[0], seed)
    assert not ch.verify_commitment(committed, 0, campaigns[1], seed)
    assert not ch.verify_commitment(committed, 0, campaigns[0], ch.check_seed(secrets[1], campaigns[0]))
    with pytest.raises(ShapeError, match="32 bytes, got 5"):
        ch.check_seed(b"short", campaigns[0])
    with pytest.raises(ShapeError, match="32 bytes, got 5"):
        ch.commitment(0, b"short", seed)


def test_everything_that_a_challenge_is_made_of_changes_it() -> None:
    some = [DIGEST, *SEEDS]
    base = ch.derive(Scheme.DCF, 6, *some)
    for at in range(3):
        other = ch.derive(Scheme.DCF, 6, *(b"x" * 32 if i == at else s for i, s in enumerate(some)))
        assert other.tau != base.tau
        assert not np.array_equal(other.weights.control, base.weights.control)
    assert base.tau > 16
    assert field.is_canonical(base.common)
    assert str(base.tau) not in repr(base)


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "fss_check.json").read_text())


@pytest.mark.parametrize(
    "case", VECTORS["good"], ids=[f"{v['scheme']}-{v['bits']}-{v['alpha']}" for v in VECTORS["good"]]
)
def test_frozen_proofs_and_messages(case: dict[str, Any]) -> None:
    scheme: ModuleType = {"dcf": dcf, "dpf": dpf}[case["scheme"]]
    binder, rand = bytes.fromhex(VECTORS["binder"]), bytes.fromhex(case["rand"])
    keys, proofs = scheme.gen_proved([case["alpha"]], bits=case["bits"], binder=binder, rand=rand)
    c = ch.derive(KINDS[scheme], case["bits"], *(bytes.fromhex(VECTORS[name]) for name in ("digest", "seed0", "seed1")))
    assert c.tau == case["tau"]
    for b in (0, 1):
        assert proofs[b].to_bytes().hex() == case["proofs"][b]
        assert sum_and_messages(keys[b], proofs[b], c)[1].to_bytes().hex() == case["messages"][b]


def test_frozen_seeds_and_commitments() -> None:
    case = VECTORS["seed"]
    campaign = bytes.fromhex(case["campaign"])
    seed = ch.check_seed(bytes.fromhex(case["secret"]), campaign)
    assert seed.hex() == case["seed"]
    assert [ch.commitment(b, campaign, seed).hex() for b in (0, 1)] == case["commitments"]


@pytest.mark.parametrize("case", VECTORS["bad"], ids=[v["name"] for v in VECTORS["bad"]])
def test_malformed_proofs_name_their_error(case: dict[str, Any]) -> None:
    type = proved(dcf, [0], case["bits"])[0][0].type
    with pytest.raises(CheckFormatError, match=case["error"]):
        Proofs.from_bytes(bytes.fromhex(case["proof"]), type)
