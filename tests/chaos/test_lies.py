"""The bounded part of the sequences against a lying server; `make chaos` plays many more."""

from pathlib import Path

import pytest

from tests.chaos import lies
from tests.harness.server_pair import LivePair

SEQUENCES = 12


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[lies.Outcome]:
    """Each raises if a promise is broken."""
    folder = tmp_path_factory.mktemp("lies")
    with LivePair(folder, workers="1") as pair:
        return [lies.play(pair, _new(folder, number), f"2/{number}") for number in range(SEQUENCES)]


def _new(folder: Path, number: int) -> Path:
    path = folder / str(number)
    path.mkdir()
    return path


@pytest.mark.faults
def test_whatever_one_server_answers_an_honest_party_counts_at_most_once(outcomes: list[lies.Outcome]) -> None:
    assert sum(o.lies for o in outcomes) >= 3 * SEQUENCES
    assert 0 < sum(o.counted for o in outcomes) <= sum(o.values for o in outcomes)
