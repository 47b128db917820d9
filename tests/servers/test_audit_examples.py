"""After every example campaign an audit of either server finds it honest."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from fss_ecdf.campaign.campaign import Campaign
from servers.audit.verdict import EXIT_STATUS, HONEST, overall
from tests.harness.server_pair import LivePair
from tests.servers.audits import digest_of, found, handed_over, status
from tests.servers.conftest import new_campaign
from tests.servers.waves import close, until_released

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.toml"))
PARTIES = 105


def example(path: Path) -> Campaign:
    return new_campaign(**{"check_keys": True, **tomllib.loads(path.read_text())})


def test_the_examples_have_survival_in_waves_with_pools() -> None:
    made = [example(path) for path in EXAMPLES]
    assert any(c.kind == "survival" and c.waves is not None and c.waves.pooled for c in made)
    assert any(c.kind == "survival" and c.waves is None for c in made)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_honest_pair_passes(pair: LivePair, path: Path, tmp_path: Path) -> None:
    """Analysts ask server 0 only. Of a campaign of waves the last is still open: its keys are not erased yet."""
    campaign = example(path)
    pair.create(campaign)
    for wave in [0] if campaign.waves is None else [1, 2]:
        rng = np.random.default_rng(wave)
        strata = rng.integers(0, len(campaign.strata), PARTIES)
        cells = rng.integers(0, campaign.variable.grid.size, PARTIES)
        pair.upload_values(campaign, np.array([campaign.position(s, c) for s, c in zip(strata, cells, strict=True)]))
        if wave:
            close(pair, campaign, wave)
    if campaign.waves is None:
        pair.seal(campaign)
        pair.wait_ready(campaign)
        asked: list[dict[str, int]] = [{}]
    else:
        until_released(pair, campaign, "pooled 2")
        asked = [{"wave": 1}, {"wave": 2}, {"pooled": 2}]
    for release in asked:
        pair.ask(0, campaign, "curve", stratum=campaign.strata[0], **release)
    for audited in (0, 1):
        folders = handed_over(pair, campaign, tmp_path, audited)
        findings = found(folders, campaign)
        assert overall(findings) == HONEST, findings
        compared = {finding.what: finding.numbers for finding in findings if finding.numbers}
        curves = [what for what in compared if what.endswith("published curve of server 0")]
        assert len(curves) == len(asked)
        assert all(compared[what] == 1 << campaign.bits for what in curves)
        checks = [count for what, count in compared.items() if what.endswith("check messages")]
        assert checks == [3 * PARTIES] * (1 if campaign.waves is None else 2)
        assert status(folders, digest_of(campaign)) == EXIT_STATUS[HONEST]
