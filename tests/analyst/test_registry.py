"""The registry drives everything: a statistic that is one new file is found wherever statistics are."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from analyst import AsyncClient, Client, entries, registry
from analyst.cli import main
from analyst.present import console
from analyst.present.report_sections import sections
from analyst.present.table import Tabular
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery
from fss_ecdf.campaign.noise.expected_errors import campaign_errors
from fss_ecdf.cli.supported import supported
from fss_ecdf.pages.local_server import Query
from tests.analyst.helpers import two_strata
from tests.commands import call
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign
from tools.site import reference

DUMMY = '''
"""The fraction of values above a threshold."""

from typing import Annotated

from analyst.needs import TWO_STRATA
from analyst.options import Confidence, Option, Strata
from analyst.registry import Statistic

Above = Annotated[float, Option("the threshold", float)]


def tail(release, above: Above = 0.5, stratum: Strata = None, *, confidence: Confidence = 0.95):
    """Measure the fraction above a threshold.

    Returns `Estimates`. Raises `TooNoisy`.
    """
    from analyst.estimation.estimate import Estimate, Estimates

    points = release.curve(stratum).at([above], confidence)
    row = Estimate("fraction above", 1 - points.fractions[0], 0.01, 0.01, (0, 1))
    return Estimates([row], {"n": release.n, "epsilon": release.campaign.epsilon}, confidence)


TAIL = Statistic(tail, "Fraction above a threshold", order=99, needs=(TWO_STRATA,))
'''


@pytest.fixture
def dummy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of the entries."""
    (tmp_path / "tail.py").write_text(DUMMY)
    monkeypatch.setattr(entries, "__path__", [*entries.__path__, str(tmp_path)])
    registry.statistics.cache_clear()
    yield
    registry.statistics.cache_clear()


@pytest.fixture(scope="module")
def sealed(pair: LivePair) -> Campaign:
    campaign = new_campaign(strata=["no", "yes"], epsilon=4.0)
    pair.create(campaign)
    pair.upload_values(
        campaign, campaign.to_positions([0.2] * 150 + [0.9] * 150, ["no"] * 150 + ["yes"] * 150).positions
    )
    pair.seal(campaign)
    pair.wait_ready(campaign)
    return campaign


@pytest.mark.usefixtures("dummy")
def test_a_new_statistic_is_found_everywhere(pair: LivePair, sealed: Campaign, tmp_path: Path) -> None:
    url, ca = f"{pair.url(0)}/v1/campaigns/{name(sealed)}", pair.folder / "ca.pem"
    token = pair.servers[0].analyst
    with Client(url, token, ca) as client:
        result = client.tail(0.5, "yes")
        assert result["fraction above"].value == pytest.approx(1, abs=0.2)
        assert client.release().tail(0.5, "yes").to_dict() == result.to_dict()
        assert "tail" in dir(client)
        assert (client.tail.__doc__ or "").startswith("Measure the fraction")
        answer = console.routes(client).get["/api/tail"](Query({"above": ["0.5"], "stratum": ["yes"]}))
        assert answer["table"]["columns"]["value"] == result.to_dict()["value"]  # type: ignore[index, call-overload]
        assert console.campaign(client)["titles"]["tail"] == "Fraction above a threshold"
        (section,) = [s for s in sections(client.release()) if s.title == "Fraction above a threshold"]
        assert (list(section.tables), list(section.figures)) == (["tail"], ["tail"])

    async def later() -> Tabular:
        async with AsyncClient(url, token, ca) as waiting:
            found: Tabular = await waiting.tail(0.5, "yes")
            return found

    assert asyncio.run(later()).to_dict() == result.to_dict()
    run = partial(call, main, "tail", url, "--ca", str(ca), "--above", "0.5", "--stratum", "yes")
    done = run("--json", "--plot", str(tmp_path / "tail.png"), env={"FSS_ANALYST_TOKEN": token})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == result.to_dict()
    assert (tmp_path / "tail.png").stat().st_size > 1000
    assert dict(supported(sealed, campaign_errors(sealed, [5000])[0]))["Fraction above a threshold"] == "yes"
    assert "Measure the fraction above a threshold" in reference.statistics_page()
    assert "fss-analyst tail" in reference.command_lines()


@pytest.mark.usefixtures("dummy")
def test_what_a_campaign_supports_is_decided_by_the_entry(capsys: pytest.CaptureFixture[str]) -> None:
    single = new_campaign()
    (errors,) = campaign_errors(single, [5000])
    assert dict(supported(single, errors))["Fraction above a threshold"] == "no: it needs two strata"
    assert "tail" not in console.views(single)
    release, *_ = two_strata(500)
    assert "tail" in console.views(release.campaign)
    with pytest.raises(SystemExit):
        main(["tail", "https://a.example/x", "--above", "high"])
    assert "invalid float value: 'high'" in capsys.readouterr().err


def test_a_refusal_names_the_command_and_what_it_needs() -> None:
    release, *_ = two_strata(500, grid={"kind": "linear", "from": 0.0, "to": 2.0, "step": 0.01})
    with pytest.raises(InvalidQuery, match=r"decision-curve: it needs scores between 0 and 1; a grid from 0 to 1"):
        release.decision_curve()
    with pytest.raises(InvalidQuery, match=r"survival-summary: it needs kind = .survival."):
        release.survival_summary()
    with pytest.raises(AttributeError, match="no statistic 'medain'; there are"):
        release.medain()


def test_every_statistic_documents_what_it_returns_and_raises() -> None:
    for statistic in registry.statistics().values():
        text = statistic.compute.__doc__ or ""
        assert "Returns `" in text, statistic.name
        assert "Raises `" in text, statistic.name
        assert not [p for p in statistic.parameters if p == "self"]
