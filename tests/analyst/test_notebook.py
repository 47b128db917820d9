"""Results in a notebook: scalars, arrays and Series go in; tables and pictures come out; loops may run already."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import dealer
from analyst import Client
from analyst.present.notebook import Display
from analyst.present.table import Tabular
from analyst.release import Release
from analyst.statistics.distribution import Lorenz
from analyst.statistics.trend import WaveChanges
from fss_ecdf.campaign.array_inputs import many
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidQuery, InvalidValue
from tests.analyst.helpers import scored
from tests.dealer.helpers import make, sites, stored
from tests.harness.server_pair import LivePair
from tests.servers.conftest import new_campaign

mpl.use("agg")
SCORES = {"kind": "linear", "from": 0.0, "to": 1.0, "step": 0.01}


def released(campaign: Campaign, positions: Any) -> Release:
    whole = np.bincount(positions, minlength=1 << campaign.bits).cumsum()
    return Release.from_curve(campaign, positions.size, whole)


@pytest.fixture(scope="module")
def release() -> Release:
    campaign = new_campaign(grid=SCORES, strata=["0", "1"], name="risk <b>", unit="%")
    scores, outcome = scored(4000, 4)
    return released(campaign, campaign.to_positions(pd.Series(scores), pd.Series(outcome.astype(int))).positions)


@pytest.fixture(scope="module")
def survival() -> Release:
    campaign = new_campaign(
        grid={"kind": "linear", "values": "integer", "from": 1, "to": 100},
        strata=["event", "censored"],
        kind="survival",
    )
    rng = np.random.default_rng(1)
    return released(
        campaign, campaign.to_positions(rng.integers(1, 101, 2000), rng.choice(["event", "censored"], 2000)).positions
    )


@pytest.fixture(scope="module")
def smokers() -> Release:
    campaign = new_campaign(categories=["never", "former", "current"], strata=["0", "1"], name="smoker")
    positions = campaign.position(np.repeat([0, 1], 500), np.tile([0, 0, 1, 2], 250))
    return released(campaign, positions)


def results(release: Release, survival: Release, smokers: Release) -> dict[str, Any]:
    made = [
        release.curve(),
        release.curve().at(0.5),
        release.quantile(),
        release.histogram(),
        Lorenz(release.curve()),
        release.summary(),
        release.compare(0, 1),
        release.roc(),
        release.calibration(),
        release.calibration_curve(),
        release.performance(),
        release.decision_curve(),
        survival.survival(),
        smokers.categories(),
        smokers.compare_categories(),
    ]
    return {type(one).__name__: one for one in made}


def kinds_of_results() -> set[str]:
    """All that have a picture; a base and a table of tests have none."""
    kinds, queue = set(), [Tabular]
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        if kind.__module__.startswith("analyst.") and kind is not Tabular and not kind.__name__.startswith("_"):
            kinds.add(kind.__name__)
    return kinds - {"TrendTable", "WaveChanges"}


def test_every_result_shows_and_draws_itself(release: Release, survival: Release, smokers: Release) -> None:
    found = results(release, survival, smokers)
    assert found.keys() | {"QuantileTrend", "FractionTrend"} == kinds_of_results()  # those are drawn in test_trend.py
    for name, made in found.items():
        assert isinstance(made, Tabular)
        assert [key for key in made.to_dict() if not key.isidentifier()] == [], name
        shown = made._repr_html_()
        assert shown.count("<tr>") == min(len(next(iter(made.columns().values()))), 20) + 1, name
        assert "<b>" not in shown
        drawn = made.plot()
        assert isinstance(drawn, Display)
        assert drawn._repr_html_().startswith("<svg")  # type: ignore[union-attr]
        axes = Figure().add_subplot()
        given = made.plot(ax=axes)
        assert given.ax_ is axes
        assert given.figure_ is axes.figure
        assert given._repr_html_() is None
        assert axes.get_xlabel() == drawn.figure_.axes[-1].get_xlabel()
        assert axes.has_data(), name
    assert repr(release.performance().plot()) == "<Display 'Decision curve'>"
    with pytest.raises(InvalidQuery, match="no plot"):
        WaveChanges([], {}, release.campaign).plot()


FORMS = [lambda x: x, np.array, pd.Series, tuple, lambda x: pd.Series(x, index=range(5, 5 + len(x)))]


@pytest.mark.parametrize("form", FORMS, ids=["list", "numpy", "Series", "tuple", "odd index"])
def test_sequences_of_every_kind(release: Release, survival: Release, form: Any) -> None:
    for call, argument in (
        (release.quantile, [0.25, 0.5]),
        (release.histogram, [0.2, 0.5, 1.0]),
        (release.curve().at, [0.2, 0.5]),
        (release.calibration, [0.2, 0.5, 1.0]),
        (release.performance().decision_curve, [0.2, 0.5]),
        (survival.survival, [10.0, 50.0]),
    ):
        assert call(form(argument)).to_dict() == call(argument).to_dict()
    campaign = release.campaign
    expected = campaign.to_positions([0.5, 0.7], ["0", "1"]).positions.tolist()
    assert campaign.to_positions(form([0.5, 0.7]), form([0, 1])).positions.tolist() == expected
    assert dealer.make_keys(form([0.5, 0.7]), campaign, form(["0", "1"])).placed.positions.tolist() == expected


def test_scalars(release: Release, survival: Release) -> None:
    for call, one in (
        (release.quantile, 0.5),
        (release.curve().at, 0.5),
        (release.performance().decision_curve, 0.5),
        (survival.survival, 50.0),
        (release.quantile, np.float64(0.5)),
    ):
        assert call(one).to_dict() == call([float(one)]).to_dict()
    for stratum in (1, "1", ["1"], np.int64(1), [1]):
        assert release.curve(stratum).strata == ("1",)
    assert release.roc(0, 1).auc == release.roc().auc
    assert release.campaign.to_positions(0.5, 1).positions.tolist() == [128 + 50]
    assert release.campaign.to_positions([0.5, 0.6], "1").positions.tolist() == [128 + 50, 128 + 60]
    assert release.histogram(np.int64(5)).counts.size == 5


def test_floats_that_are_whole_name_strata_and_others_do_not(release: Release) -> None:
    """As pandas has whole numbers in a column with gaps."""
    assert release.campaign.to_positions([0.5], pd.Series([1.0])).positions.tolist() == [128 + 50]
    for bad in ([True], [0.5], [None], [2]):
        with pytest.raises(InvalidValue, match="is not one of '0', '1'"):
            release.campaign.to_positions([0.5], bad)


def test_dates_of_numpy_and_pandas() -> None:
    campaign = new_campaign(grid={"kind": "linear", "values": "date", "from": "2026-01-01", "to": "2026-12-31"})
    expected = campaign.to_positions([date(2026, 3, 31)]).positions.tolist()
    for given in (np.array(["2026-03-31"], "datetime64[D]"), pd.Series(pd.to_datetime(["2026-03-31"])), "2026-03-31"):
        assert campaign.to_positions(given).positions.tolist() == expected
    assert many(date(2026, 3, 31)) == [date(2026, 3, 31)]
    assert many(x for x in (1, 2)) == [1, 2]


def test_a_party_inside_a_running_loop(pair: LivePair, tmp_path: Path) -> None:
    """As in a notebook: fetch, upload, withdraw, and nothing of asyncio is left."""
    campaign = make(pair)

    async def cell() -> int:
        at = sites(pair, campaign)
        placed = at.fetch_campaign().to_positions(pd.Series([1, 2, 3]))
        assert dealer.upload(placed, campaign, at, receipt=tmp_path / "r.json").sent == 3
        assert stored(pair, campaign) == [3, 3]
        return dealer.withdraw(at, receipt=tmp_path / "r.json")

    assert asyncio.run(cell()) == 3
    assert stored(pair, campaign) == [0, 0]


def test_the_client_takes_a_number(pair: LivePair) -> None:
    campaign = new_campaign(grid=SCORES, strata=["0", "1"])
    pair.create(campaign)
    pair.upload_values(campaign, campaign.to_positions(np.linspace(0, 1, 2000), [0, 1] * 1000).positions)
    pair.seal(campaign)
    pair.wait_ready(campaign)
    url = f"{pair.url(0)}/v1/campaigns/{campaign.model_dump(mode='json')['id']}"
    with Client(url, pair.servers[0].analyst, pair.folder / "ca.pem") as client:
        assert client.quantile(0.5).to_dict() == client.quantile([0.5]).to_dict()
        assert client.ecdf(0.5, 1).to_dict() == client.ecdf([0.5], "1").to_dict()
