"""A short one of the worlds of many processes that `make chaos` plays in full."""

from pathlib import Path

import pytest

from tests.chaos.fleet import Size, play
from tests.harness import haproxy
from tests.harness.postgres import NoPostgres, programs


@pytest.mark.faults
def test_everything_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    try:
        programs()
        haproxy.program()
    except (NoPostgres, FileNotFoundError) as error:
        pytest.skip(str(error))
    outcome = play(tmp_path, "short", Size(apis=2, workers=1, dask_workers=1, kills=8, parties=2))
    assert sum(outcome.kills.values()) == 8
    assert outcome.sealed > 0
