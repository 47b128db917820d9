"""Waves of a campaign: what they may be, when they close, what is released of them and what parties consent to."""

import json
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np
import pytest

from fss import DomainError, challenge
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery
from fss_ecdf.campaign.noise.registry import mechanism, summed
from fss_ecdf.campaign.noise.simulate import noise_curves
from fss_ecdf.campaign.release import CURVE, Release, ReleaseName, cumulative, releases_of
from fss_ecdf.campaign.waves import Pooled, Waves
from tests.campaign.helpers import campaign

OPENS = "2026-01-31T08:00:00Z"


def weekly(**changes: Any) -> dict[str, Any]:
    return {"every": "week", "count": 52, "pooled": [{"through": 26, "epsilon": 0.5}], **changes}


def test_what_a_party_consents_to() -> None:
    pooled = [{"through": 26, "epsilon": 0.5}, {"through": "end", "epsilon": 0.25}]
    made = campaign(waves=weekly(pooled=pooled), opens=OPENS, epsilon=0.5)
    assert made.total_epsilon == made.epsilon_for_party(1) == made.epsilon_for_party(26) == 1.25
    assert made.epsilon_for_party(27) == made.epsilon_for_party(52) == 0.75
    assert campaign(epsilon=0.5, reserve=0.5).total_epsilon == 1.0


def test_the_cap_is_on_all_that_a_party_consents_to() -> None:
    """Three pools of 20 each were 80 in all once."""
    pools = [{"through": at, "epsilon": 20.0} for at in (10, 20, 30)]
    for changes in (
        {"epsilon": 20.0, "waves": weekly(pooled=pools), "opens": OPENS},
        {"epsilon": 10.0, "waves": weekly(pooled=pools[:1]), "opens": OPENS},
        {"epsilon": 1.0, "reserve": 19.5},
    ):
        with pytest.raises(InvalidCampaign, match=r"may have epsilon 20 in all, not (80|30|20\.5)"):
            campaign(**changes)
    assert campaign(epsilon=1.0, reserve=19.0).total_epsilon == 20.0
    assert (
        campaign(epsilon=5.0, waves=weekly(pooled=[{"through": 9, "epsilon": 15.0}]), opens=OPENS).total_epsilon == 20.0
    )


def test_a_campaign_of_waves_is_the_same_after_writing() -> None:
    made = campaign(waves=weekly(), opens=OPENS)
    assert Campaign.from_json(made.canonical) == made
    assert Campaign.from_toml(made.to_toml()).digest == made.digest
    assert made.digest != campaign(opens=OPENS).digest
    assert made.digest != campaign(waves=weekly(count=51), opens=OPENS).digest
    assert '"waves":{"count":52,"every":"week","pooled":[{"epsilon":0.5,"through":26}]}' in made.canonical.decode()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"waves": weekly()}, "need opens"),
        ({"waves": weekly(), "opens": OPENS, "closes": "2027-01-01T00:00:00Z"}, "leave out closes"),
        ({"waves": weekly(every="day"), "opens": OPENS}, "waves.every"),
        ({"waves": weekly(every=0), "opens": OPENS}, "waves.every"),
        ({"waves": weekly(every=99)}, "smaller than min_uploads"),
        ({"waves": weekly(every=True)}, "waves.every"),
        ({"waves": weekly(count=0), "opens": OPENS}, "waves.count"),
        ({"waves": weekly(count=1001), "opens": OPENS}, "waves.count"),
        ({"waves": weekly(count=25), "opens": OPENS}, "waves.pooled"),
        ({"waves": weekly(pooled=[{"through": 3, "epsilon": 1.0}] * 2), "opens": OPENS}, "waves.pooled"),
        ({"waves": weekly(pooled=[{"through": "end", "epsilon": 1.0}, {"through": 52, "epsilon": 1.0}])}, "opens"),
        ({"waves": weekly(pooled=[{"through": 3, "epsilon": 0.0}]), "opens": OPENS}, "epsilon"),
        ({"waves": weekly(pooled=[{"through": 3, "epsilon": 21.0}]), "opens": OPENS}, "epsilon"),
        ({"waves": weekly(colour="blue"), "opens": OPENS}, "unknown field"),
        ({"waves": weekly(), "opens": OPENS, "grid": {"kind": "linear", "from": 0.0, "to": 1e7}}, "evaluated whole"),
    ],
)
def test_what_waves_cannot_be(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidCampaign, match=said):
        campaign(**changes)


def test_when_waves_close() -> None:
    opens = datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert Waves(every="week", count=2).end(opens, 2) == datetime(2026, 2, 14, 8, tzinfo=UTC)
    monthly = Waves(every="month", count=14)
    assert [monthly.end(opens, k) for k in (1, 2, 13)] == [
        datetime(2026, 2, 28, 8, tzinfo=UTC),
        datetime(2026, 3, 31, 8, tzinfo=UTC),
        datetime(2027, 2, 28, 8, tzinfo=UTC),
    ]
    assert Waves(every="manual", count=2).end(opens, 1) is None
    assert campaign(waves=weekly(), opens=OPENS).uploads_end == datetime(2027, 1, 30, 8, tzinfo=UTC)


def test_nobody_is_in_two_releases_of_waves_and_nobody_is_forgotten() -> None:
    """Every way in which four waves can be small or not: own releases are disjoint, in order and large enough."""
    waves = Waves(every="manual", count=4, pooled=(Pooled(through=2, epsilon=0.5), Pooled(through="end", epsilon=2.0)))
    for counts in product((0, 4, 6, 20), repeat=4):
        plans = releases_of(waves, 1.0, 10, counts)
        own = [plan for plan in plans if plan.kind == "wave"]
        held = [wave for plan in own for wave in plan.waves]
        assert held == sorted(set(held)) == list(range(1, len(held) + 1))
        assert all(sum(counts[k - 1] for k in plan.waves) >= 10 for plan in own)
        assert sum(counts[len(held) :]) < 10  # who waits is too few
        pools = {plan.through: plan for plan in plans if plan.kind == "pooled"}
        assert set(pools) == {at for at in (2, 4) if sum(counts[:at]) >= 10}
        assert all(plan.waves == tuple(range(1, at + 1)) for at, plan in pools.items())
        for sealed in range(4):  # what was released stays what it was while waves follow
            assert releases_of(waves, 1.0, 10, counts[:sealed]) == [plan for plan in plans if plan.through <= sealed]
        for until in range(1, 5):
            chosen = cumulative(plans, until)
            everybody = [wave for plan in chosen for wave in plan.waves]
            assert len(everybody) == len(set(everybody))
            assert {wave for plan in own if plan.through <= until for wave in plan.waves} <= set(everybody)


def test_the_running_curve_takes_the_way_with_less_noise() -> None:
    waves = Waves(every="manual", count=8, pooled=(Pooled(through=4, epsilon=1.0), Pooled(through=6, epsilon=0.1)))
    plans = releases_of(waves, 1.0, 10, [10] * 8)
    assert [str(plan.name) for plan in cumulative(plans, 3)] == ["wave 1", "wave 2", "wave 3"]
    assert [str(plan.name) for plan in cumulative(plans, 8)] == ["pooled 4", *(f"wave {k}" for k in (5, 6, 7, 8))]
    # Wave 4 is in wave 5's release and in the pool: it must not be counted twice.
    merged = releases_of(waves, 1.0, 10, [10, 10, 10, 5, 10, 10, 10, 10])
    assert [str(plan.name) for plan in cumulative(merged, 8)] == [f"wave {k}" for k in (1, 2, 3, 5, 6, 7, 8)]
    assert merged[3:5] == [
        Release(ReleaseName("pooled", 4), (1, 2, 3, 4), 1.0),
        Release(ReleaseName("wave", 5), (4, 5), 1.0),
    ]


@pytest.mark.parametrize("name", ["slice-tree", "paper-tree", "paper-tree-exact"])
def test_noise_of_several_releases_adds_up(name: str) -> None:
    """Second moments are the sums of the parts', at every position and of every functional."""
    one, two = mechanism(name, 4, 1.0), mechanism(name, 4, 0.3)
    both = summed(name, 4, ((1.0, 3), (0.3, 1)))
    t, rows = np.arange(16), np.random.default_rng(0).normal(size=(3, 16))
    for moment in ("variance",):
        expected = 3 * getattr(one, moment)(t) + getattr(two, moment)(t)
        np.testing.assert_allclose(getattr(both, moment)(t), expected)
    grid = t[:, np.newaxis], t[np.newaxis]
    np.testing.assert_allclose(both.covariance(*grid), 3 * one.covariance(*grid) + two.covariance(*grid), atol=1e-9)
    for moment in ("functional_covariance", "prefix_covariance"):
        expected = 3 * getattr(one, moment)(rows) + getattr(two, moment)(rows)
        np.testing.assert_allclose(getattr(both, moment)(rows), expected, atol=1e-9)
    assert both.mean_variance() == pytest.approx(3 * one.mean_variance() + two.mean_variance())
    # 4000 simulated sums: a variance is off by more than a fifth once in 10^9 runs, were they Gaussian
    drawn = noise_curves(both, 4000, 4, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.var(axis=0)[:15], both.variance(t)[:15], rtol=0.2)


def test_a_campaign_as_a_sum_of_releases_knows_it() -> None:
    made = campaign(waves=weekly(), opens=OPENS)
    seen = made.released(((1.0, 4), (0.5, 1)))
    assert (seen.digest, seen.canonical, seen.epsilon) == (made.digest, made.canonical, 1.0)
    t = np.array([17])
    expected = 4 * made.noise.variance(t) + mechanism("slice-tree", made.bits, 0.5).variance(t)
    np.testing.assert_allclose(seen.noise.variance(t), expected)
    assert made.noise.variance(t) < expected / 4
    assert (seen.total_epsilon, seen.epsilon_for_party(27)) == (made.total_epsilon, made.epsilon_for_party(27))
    pooled = seen.released(((0.5, 1),))
    assert (pooled.epsilon, pooled.total_epsilon, pooled.digest) == (0.5, made.total_epsilon, made.digest)
    assert pooled.original is made
    assert json.loads(pooled.to_json()) == {**json.loads(made.to_json()), "epsilon": 0.5}


def test_a_wave_s_seed_tells_nothing_of_later_waves() -> None:
    """Earlier seeds follow from a later one, each fits its own wave only, and none leads further."""
    secret, name = bytes(range(32)), bytes(32)
    committed = challenge.commitment(0, name, challenge.check_seed(secret, name))
    seeds = {wave: challenge.check_seed(secret, name, wave) for wave in (0, 1, 2, 3, 999, 1000)}
    assert len(set(seeds.values())) == len(seeds)
    for wave, seed in seeds.items():
        for asked in seeds:
            assert challenge.verify_commitment(committed, 0, name, seed, asked) == (asked == wave)
    assert not challenge.verify_commitment(committed, 1, name, seeds[2], 2)
    with pytest.raises(DomainError):
        challenge.check_seed(secret, name, 1001)


def test_release_names_read_back_sort_and_say_how_they_are_asked_for() -> None:
    names = [CURVE, ReleaseName("wave", 1), ReleaseName("pooled", 2), ReleaseName("wave", 2), ReleaseName("wave", 10)]
    assert [str(name) for name in names] == ["curve", "wave 1", "pooled 2", "wave 2", "wave 10"]
    assert [ReleaseName.parse(str(name)) for name in names] == names
    assert sorted((names[k] for k in (3, 0, 4, 2, 1)), key=lambda name: name.order) == names
    assert [name.query for name in names[:3]] == [{}, {"wave": "1"}, {"pooled": "2"}]
    asked = [(None, None), (1, None), (None, 2)]
    assert [ReleaseName.from_query(wave, pooled) for wave, pooled in asked] == names[:3]
    with pytest.raises(InvalidQuery, match="one of wave and pooled"):
        ReleaseName.from_query(1, 2)


@pytest.mark.parametrize("text", ["", "wave", "wave ", "wave 01", "wave -1", "wave 1 2", "pooled x", "curve 0"])
def test_what_is_not_a_release_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no release is called"):
        ReleaseName.parse(text)


def test_a_release_name_finds_its_epsilon_in_the_plan_of_waves() -> None:
    waves = Waves(every="manual", count=4, pooled=(Pooled(through=2, epsilon=0.5),))
    assert [ReleaseName.parse(name).epsilon(waves, 1.5) for name in ("wave 2", "pooled 2")] == [1.5, 0.5]
    for name in ("curve", "pooled 3"):
        with pytest.raises(ValueError, match=f"does not release {name}"):
            ReleaseName.parse(name).epsilon(waves, 1.5)
