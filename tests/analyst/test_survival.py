"""Survival: lifelines' numbers without noise, honest intervals with it, and defined behaviour at the edges."""

import numpy as np
import pytest
from lifelines import KaplanMeierFitter, NelsonAalenFitter
from lifelines.statistics import logrank_test
from lifelines.utils import restricted_mean_survival_time

from analyst.estimation import uncertainty
from analyst.release import Release
from analyst.statistics import survival
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery, TooNoisy
from tests.analyst.helpers import Array, publish
from tests.campaign.helpers import campaign

DAYS = {"kind": "linear", "values": "integer", "from": 1, "to": 365}
ARMS = ("placebo", "drug")
STRATA = [f"{arm}: {status}" for arm in ARMS for status in ("event", "censored")]


def patients(n: int, seed: int, effect: float = 0.6) -> tuple[Array, Array, Array]:
    """Days, whether the event was seen, and whether the drug was given."""
    rng = np.random.default_rng(seed)
    drug = rng.random(n) < 0.5
    until = rng.exponential(np.where(drug, 250 / effect, 250))
    lost = rng.uniform(60, 500, n)
    days = np.clip(np.ceil(np.minimum(until, lost)), 1, 365)
    return days, (until <= lost) & (until <= 365), drug


def trial(n: int, seed: int, noise_seed: int | None = None, effect: float = 0.6, **changes: float) -> Release:
    days, seen, drug = patients(n, seed, effect)
    names = [f"{ARMS[int(d)]}: {'event' if s else 'censored'}" for d, s in zip(drug, seen, strict=True)]
    spec = campaign(kind="survival", grid=DAYS, strata=STRATA, **changes)
    return publish(spec, days, names, noise_seed)


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_it_is_lifelines(seed: int) -> None:
    release, (days, seen, drug) = trial(3000, seed), patients(3000, seed)
    table = release.survival(at=[30, 90, 180, 364])
    for arm, mine in (("placebo", ~drug), ("drug", drug)):
        fitted = KaplanMeierFitter().fit(days[mine], seen[mine])
        aalen = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(days[mine], seen[mine])
        ours = table[arm]
        at = np.arange(ours.last + 1)
        assert ours.survival[at] == pytest.approx(fitted.predict(at + 1).to_numpy(), abs=1e-12)
        assert ours.hazard[at] == pytest.approx(aalen.predict(at + 1).to_numpy(), abs=1e-12)
        assert ours.at_risk[29] == (days[mine] >= 30).sum()
        median = fitted.median_survival_time_
        assert ours.median("noise")[0] == median
        mean = restricted_mean_survival_time(fitted, 300)
        assert ours.restricted_mean(300.0)[0] == pytest.approx(mean, abs=1e-9)
        # lifelines' limits are those of log(-log S): the variance behind them is Greenwood's
        low = fitted.confidence_interval_survival_function_.iloc[:, 0]
        s, error = ours.survival[89], np.sqrt(ours.greenwood[89])
        expected = s ** np.exp(uncertainty.z_score(0.95) * error / -np.log(s))
        assert low.loc[90] == pytest.approx(expected, abs=1e-9)
    theirs = logrank_test(days[~drug], days[drug], seen[~drug], seen[drug])
    exact = survival.log_rank(*release.arms())
    noise = np.sqrt(theirs.test_statistic / exact[0])
    assert noise >= 1  # the same score over a variance that the noise only increases
    assert table.columns()["time"] == [30, 90, 180, 364] * 2


def test_the_log_rank_score_is_lifelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "error_of_sum", lambda *_: 0.0)
    days, seen, drug = patients(2000, 4, effect=0.95)
    theirs = logrank_test(days[~drug], days[drug], seen[~drug], seen[drug])
    assert theirs.p_value > 1e-3  # so small a p-value would equal any other
    first, second = trial(2000, 4, epsilon=20.0, effect=0.95).arms()
    assert first.last == second.last == 364
    assert survival.log_rank(first, second) == pytest.approx((theirs.test_statistic, theirs.p_value), rel=1e-9)


def numeric(function, cells: list[Array], step: float = 1e-4) -> list[Array]:  # type: ignore[no-untyped-def]
    """Derivatives by every cell, one by one."""
    slopes = []
    for which, cell in enumerate(cells):
        out = np.zeros(cell.size)
        for i in range(cell.size):
            values = []
            for sign in (1, -1):
                moved = [c.copy() for c in cells]
                moved[which][i] += sign * step
                values.append(function(moved))
            out[i] = (values[0] - values[1]) / (2 * step)
        slopes.append(out)
    return slopes


def test_slopes_are_derivatives() -> None:
    arm = trial(3000, 1).arms()[0]
    at = 120

    def log_survival(cells: list[Array]) -> float:
        at_risk = np.cumsum((cells[0] + cells[1])[::-1])[::-1]
        return float(np.log(1 - cells[0] / at_risk)[: at + 1].sum())

    def hazard(cells: list[Array]) -> float:
        return float((cells[0] / np.cumsum((cells[0] + cells[1])[::-1])[::-1])[: at + 1].sum())

    cells = [arm.event.cells, arm.censored.cells]
    for slopes, function in ((arm.slopes, log_survival), (arm.hazard_slopes, hazard)):
        for mine, theirs in zip(slopes(np.array([at])), numeric(function, cells), strict=True):
            assert mine[0] == pytest.approx(theirs, abs=1e-7)


@pytest.mark.slow
def test_noise_and_sampling_are_as_predicted() -> None:
    """150 trials: S at 180 days and the restricted mean lie in 95 % intervals of both kinds; 87 % is a false alarm of
    1e-4. Equal arms are told apart at 5 % in at most 14 % (false alarm 1e-4)."""
    held: dict[str, list[bool]] = {"noise": [], "population": []}
    rejected, true_survival = [], float(np.exp(-180 / 250))
    for seed in range(150):
        release, exact = trial(3000, seed, seed, effect=1.0), trial(3000, seed, effect=1.0)
        arm, right = release.arms()[0], exact.arms()[0]
        at = np.array([179])
        for kind, truth in (("noise", right.survival[179]), ("population", true_survival)):
            low, high = arm.limits(at, kind, 1.96)  # type: ignore[arg-type]
            held[kind].append(low[0] <= truth <= high[0])
        rejected.append(survival.log_rank(*release.arms())[1] < 0.05)
    assert np.mean(held["noise"]) > 0.87
    assert np.mean(held["population"]) > 0.87
    assert np.mean(rejected) < 0.14


def test_a_drug_that_works_is_found() -> None:
    summary = trial(4000, 1, 1).survival_summary(horizon=300)
    assert summary["log-rank, drug - placebo"].p_value < 1e-4
    assert summary["restricted mean, drug - placebo"].interval("population")[0] > 0
    low, high = summary["median, placebo"].interval("population")
    assert low <= 250 * np.log(2) <= high


def test_too_few_to_tell() -> None:
    with pytest.raises(TooNoisy, match="its survival cannot be told"):
        trial(30, 1, 1, epsilon=0.5).survival_summary()
    with pytest.raises(InvalidQuery, match="can be followed from 0"):
        trial(3000, 1).survival_summary(horizon=4000)
    with pytest.raises(InvalidQuery, match='kind = "survival"'):
        publish(campaign(), np.array([0.5]), None).survival()
    with pytest.raises(InvalidQuery, match="no arm 'x'"):
        trial(3000, 1).survival()["x"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strata": ["event", "lost"]}, "strata of kind"),
        ({"strata": ["a: censored", "a: event"]}, "strata of kind"),
        ({"strata": ["event", "censored", "b: event", "b: censored"]}, "strata of kind"),
        ({"strata": ["event"]}, "strata of kind"),
        ({"grid": {"kind": "linear", "from": -1.0, "to": 1.0}}, "from 0 on"),
    ],
)
def test_strata_and_times_are_checked(changes: dict[str, object], message: str) -> None:
    fields = {"kind": "survival", "grid": DAYS, "strata": STRATA, **changes}
    with pytest.raises(InvalidCampaign, match=message):
        campaign(**fields)


def test_one_arm() -> None:
    days, seen, _ = patients(2000, 1)
    spec = campaign(kind="survival", grid=DAYS, strata=["event", "censored"])
    summary = publish(spec, days, np.where(seen, "event", "censored").tolist(), 1).survival_summary()
    assert [row.name.split(",")[1] for row in summary.rows] == [" all"] * 3


def test_limits_at_a_time_are_its_own_and_a_band_falls() -> None:
    """What is said of one time does not depend on which others were asked for; the band uses that survival falls."""
    arm = trial(1500, 2, 2).arms()[1]
    every = np.arange(arm.last + 1)
    low, high = arm.limits(every, "population", 1.96)
    for time in (20, 150, 250):
        alone = arm.limits(np.array([time]), "population", 1.96)
        assert (float(alone[0][0]), float(alone[1][0])) == pytest.approx((low[time], high[time]))
    index, under, over = arm.band("population")
    assert (np.diff(under) <= 0).all()
    assert (np.diff(over) <= 0).all()
    widest = arm.limits(index, "population", arm.band_factor("population"))
    assert (under >= widest[0]).all()
    assert (over <= widest[1]).all()
    assert (np.diff(widest[1]) > 0).any()  # else nothing was narrowed


@pytest.mark.slow
def test_the_sampling_error_of_a_restricted_mean_is_that_of_resampled_trials() -> None:
    """200 resampled trials: the deviation of the restricted mean is its error to 20 % (4 standard errors)."""
    days, seen, drug = patients(1500, 3)
    expected = trial(1500, 3).arms()[0].restricted_mean(300.0)[2] ** 0.5
    rng, resampled, mine = np.random.default_rng(1), [], np.flatnonzero(~drug)
    for _ in range(200):
        pick = rng.choice(mine, mine.size)
        fitted = KaplanMeierFitter().fit(days[pick], seen[pick])
        resampled.append(restricted_mean_survival_time(fitted, 300))
    assert np.std(resampled) == pytest.approx(expected, rel=0.2)


def test_the_table_has_every_requested_time_and_the_medians() -> None:
    release = trial(400, 1, 1)
    times = [10.0, 200.0, float(release.campaign.variable.grid.all_thresholds[-1])]
    table = release.survival(times)
    columns = table.to_dict()
    assert columns["time"] == times * len(table.arms)
    followed = [arm.times[arm.last] for arm in table.arms]
    for arm, time, value in zip(columns["arm"], columns["time"], columns["survival"], strict=True):
        end = followed[[a.name for a in table.arms].index(arm)]
        assert (value is None) == (time > end)
    summary = release.survival_summary()
    for arm in table.arms:
        median = summary[f"median, {arm.name}"].value
        assert columns["medians"][arm.name] == (median if np.isfinite(median) else None)
