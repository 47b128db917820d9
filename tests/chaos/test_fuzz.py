"""The bounded part of the fuzzing; `make chaos` tries a hundred times as many."""

from pathlib import Path

import pytest

from tests.chaos.fuzz import envelope_target, fuzz, other_targets

pytestmark = pytest.mark.faults

ENVELOPES = 100_000
OTHERS = 2_000


def test_envelopes() -> None:
    target = envelope_target()
    accepted = fuzz(target, ENVELOPES, seed=1)
    assert ENVELOPES // 100 < accepted < ENVELOPES  # ids and seeds may be anything; the rest may not


def test_every_other_decoder(tmp_path: Path) -> None:
    for target in other_targets(tmp_path):
        assert all(target.try_one(seed) for seed in target.seeds), target.name
        assert fuzz(target, OTHERS, seed=1), target.name
