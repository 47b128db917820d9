"""fss-ecdf demo --waves: a year of weekly waiting times at two live servers, drawn beside the truth.

Every week some patients' hospitals send how long they waited, and the week's wave is closed: by hand, so that a year
takes minutes. A strike in the thirtieth week makes people wait longer; an analyst who watches the share that waited at
most ninety days is alerted. At half-time and at the end all waves are pooled.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

import dealer
from analyst import Client
from analyst.plots import curves
from analyst.statistics.trend import Trend
from fss_ecdf.demo.programs import Servers, step
from fss_ecdf.operators import servers as operators

LIMIT_DAYS = 90
LEAST_SHARE = 0.6
PATIENTS = 40_000
STRIKE = range(30, 36)  # weeks
COMMANDS = ("trend --plot trend.png",)

CAMPAIGN = """\
title = "Waiting time for hip replacement"
question = "How many days did each of your patients wait, from referral to operation?"
epsilon = 1.0
min_uploads = 50

[waves]
every = "manual"
count = {weeks}

[[waves.pooled]]
through = {half}
epsilon = 0.5

[[waves.pooled]]
through = "end"
epsilon = 0.5

[[variables]]
name = "waiting time"
unit = "days"

[variables.grid]
kind = "linear"
values = "integer"
from = 0
to = 365
"""


@dataclass(frozen=True)
class Year:
    """What no server and no analyst ever sees: each week's waiting times."""

    weeks: list[NDArray[np.int64]]

    @staticmethod
    def simulate(weeks: int, patients: int, seed: int) -> "Year":
        rng, found = np.random.default_rng(seed), []
        for week in range(1, weeks + 1):
            mean = 75 + 12 * np.sin(2 * np.pi * week / 52) + (55 if week in STRIKE else 0)
            count = int(rng.poisson(patients / weeks))
            found.append(np.minimum(rng.gamma(4, mean / 4, count), 365).round().astype(np.int64))
        return Year(found)

    def quantile(self, level: float) -> list[float]:
        return [float(np.quantile(week, level, method="inverted_cdf")) for week in self.weeks]


def campaign(year: Year) -> str:
    """The campaign of such a year, as its operator writes it."""
    weeks = len(year.weeks)
    return CAMPAIGN.format(weeks=weeks, half=max(weeks // 2, 1))


def run(servers: Servers, out: Path, year: Year, env: dict[str, str]) -> Trend:
    """Every week's uploads and its end; returns what an analyst then gets."""
    urls, authorities = env["FSS_CAMPAIGN_URLS"].split(), [env["FSS_CA0"], env["FSS_CA1"]]
    with (
        dealer.ServerPair(urls, env["FSS_UPLOAD_TOKEN"], authorities, digest=env["FSS_CAMPAIGN_DIGEST"]) as pair,
        operators.clients_of(servers.operator_config) as remotes,
    ):
        asked = pair.fetch_campaign()
        for number, values in enumerate(tqdm(year.weeks, desc="a week passes", unit=" weeks"), 1):
            receipt = out / "hospitals" / f"week-{number:02}.receipt.json"
            dealer.upload(asked.to_positions(values.tolist()), asked, pair, receipt=receipt)
            operators.seal(remotes, env["FSS_CAMPAIGN_ID"], number)
        with step("the servers check and evaluate the last waves, an analyst fetches all releases"):
            operators.wait_until_ready(remotes, env["FSS_CAMPAIGN_ID"], lambda _: None, len(year.weeks))
            with Client(urls[0], servers.analyst_token, authorities[0], on_grid=True) as client:
                return client.waves()


def show(trend: Trend, year: Year) -> None:
    """What was published beside the truth, and the alerts."""
    shares = trend.fractions(LIMIT_DAYS, limits=(LEAST_SHARE, 1.0))
    true = {k: float(np.mean(week <= LIMIT_DAYS)) for k, week in enumerate(year.weeks, 1)}
    print(f"\nshare that waited at most {LIMIT_DAYS} days, by week; the truth is known to this simulation only\n")
    print(f"{'week':>6}{'published':>11}{'95 % noise interval':>22}{'truth':>8}")
    for row in shares.rows:
        mark = "  ALERT" if row["outside"] else ""
        span = f"{row['noise_lower']:.2f} to {row['noise_upper']:.2f}"
        print(f"{row['wave']:>6}{row['share']:>11.2f}{span:>22}{true[row['wave']]:>8.2f}{mark}")
    everybody = np.concatenate(year.weeks)
    for release, about in ((trend.cumulative(), "all that was published, with the least noise"), *_pools(trend)):
        median = release.quantile([0.5])
        low, high = (ends[0] for ends in median.ranges["noise"])
        exact = np.quantile(everybody if release.n == everybody.size else _first(year, release.n), 0.5)
        print(f"median of {release.n} patients, {about}: {median.thresholds[0]} ({low} to {high}), truth {exact:g}")


def _pools(trend: Trend) -> list[tuple[Any, str]]:
    return [(trend.release(plan), f"pooled after week {plan.through}") for plan in trend.pooled]


def _first(year: Year, count: int) -> NDArray[np.int64]:
    return np.concatenate(year.weeks)[:count]


def drawn(trend: Trend, year: Year) -> Figure:
    """Quartiles week by week with bands, and the truth in black."""
    levels = (0.25, 0.5, 0.75)
    table = trend.quantiles(levels)

    def draw(axes: Axes) -> None:
        for level, (colour, dashes) in zip(levels, curves.INKS, strict=False):
            rows = [row for row in table.rows if row["level"] == level and "value" in row]
            weeks = [row["wave"] for row in rows]
            low, high = ([row[f"noise_{end}"] for row in rows] for end in ("lower", "upper"))
            axes.fill_between(weeks, low, high, color=colour, alpha=curves.BAND_ALPHA, linewidth=0)
            label = "median" if level == 0.5 else f"{level:.0%} quantile"
            axes.plot(weeks, [row["value"] for row in rows], color=colour, linestyle=dashes, label=label)
            exact = year.quantile(level)
            axes.plot(range(1, len(exact) + 1), exact, color="black", linewidth=0.7)
        alerts = trend.fractions(LIMIT_DAYS, limits=(LEAST_SHARE, 1.0)).alerts
        axes.plot(alerts, [0.0] * len(alerts), "^", color="#c14a00", markersize=7, label="alert", clip_on=False)
        axes.plot([], [], color="black", linewidth=0.7, label="truth")
        axes.set_ylim(0, 250)
        axes.set_xlabel("week")
        axes.set_ylabel("days waited")
        axes.legend(loc="upper left", ncol=2)
        axes.set_title("A year of weekly waiting times, published week by week")

    total = sum(week.size for week in year.weeks)
    return curves.figure(draw, f"n = {total}, epsilon = {trend.campaign.epsilon:g} a week, 95% bands (noise)")
