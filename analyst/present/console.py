"""What `fss-analyst console` answers its page: all numbers come from `analyst.Client`, none is computed in the page."""

import argparse
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from analyst.client import Client
from analyst.present.commands import open_client
from analyst.present.table import Tabular, plain
from analyst.release import Release
from analyst.statistics.curve import Curve
from analyst.statistics.distribution import Lorenz
from analyst.statistics.survival import Arm
from fss_ecdf.campaign.errors import InvalidQuery, Problem
from fss_ecdf.campaign.noise import planning
from fss_ecdf.pages.console import console_page
from fss_ecdf.pages.local_server import Answer, Console, Download, Query, Routes

# Points of a curve that are drawn; of a longer one, this many spread over it.
MOST_DRAWN = 2000
MOST_BINS = 200


def console(args: argparse.Namespace) -> None:
    """Serve until interrupted. The address is printed once the campaign could be read."""
    with open_client(args) as client:
        client.campaign()
        served = Console(console_page("analyst"), routes(client), args.port)
        print(f"{client.campaign().title}\n\nopen once, in a browser on this machine:\n  {served.link}", flush=True)
        print("\nthe token stays in this program; end it with Ctrl-C", flush=True)
        try:
            served.serve()
        except KeyboardInterrupt:
            return


def routes(client: Client) -> Routes:
    def about(name: Callable[[Release, Query], Answer]) -> Callable[[Query], Answer]:
        return lambda query: name(client.release(), query)

    found = {
        "distribution": distribution,
        "histogram": histogram,
        "comparison": comparison,
        "roc": roc,
        "calibration": calibration,
        "decision": decision,
        "survival": survival,
        "report": report,
    }
    answers = {f"/api/{name}": about(answer) for name, answer in found.items()}
    answers |= {"/api/campaign": lambda _: campaign(client), "/api/plan": plan}
    answers["/api/trend"] = lambda query: trend(client, query)
    return Routes(get=answers)


def campaign(client: Client) -> dict[str, Any]:
    """What stands at the top of the page, and which views there are."""
    from analyst.present.report import privacy_statement

    release = client.release()
    made, grid = release.campaign, release.campaign.variable.grid
    ends = grid.labels(np.array([0, grid.size - 1]))
    budget = client.budget()
    return {
        "title": made.title,
        "question": made.question,
        "unit": made.variable.unit,
        "kind": made.kind,
        "n": release.n,
        "epsilon": made.epsilon,
        "total_epsilon": made.total_epsilon,
        "digest": made.digest.hex(),
        "mechanism": made.variable.mechanism,
        "promise": privacy_statement(made, release.n),
        "strata": list(made.strata),
        "totals": {name: plain(total) for name, total in release.totals.items()},
        "grid": {"kind": grid.kind, "values": grid.values, "size": grid.size, "first": ends[0], "last": ends[1]},
        "budget": {"reserve": budget.reserve, "spent": budget.spent, "remaining": budget.remaining},
        "views": views(release),
    }


def views(release: Release) -> list[str]:
    """What this campaign has; two strata of probabilities have most."""
    made, grid = release.campaign, release.campaign.variable.grid
    if made.kind == "survival":
        return ["survival", "distribution", "histogram", "plan"]
    found = ["distribution", "histogram", *(["trend"] if made.waves is not None else [])]
    if len(made.strata) > 1:
        found.append("comparison")
    if len(made.strata) == 2:
        found.append("roc")
        if grid.values == "float" and grid.all_thresholds[0] >= 0 and grid.all_thresholds[-1] <= 1:
            found += ["calibration", "decision"]
    return [*found, "plan"]


def _kind(query: Query) -> Any:
    kind = query.text("interval", "population")
    if kind not in ("noise", "population"):
        raise InvalidQuery(f"interval is noise or population, not {kind[:40]!r}")
    return kind


def _confidence(query: Query) -> float:
    return query.number("confidence", 0.95)


def _curves(release: Release, query: Query) -> list[Curve]:
    """Those of the chosen strata, one by one or pooled."""
    chosen = query.texts("stratum") or list(release.campaign.strata)
    if query.text("pooled") == "1":
        return [release.curve(chosen)]
    if len(chosen) > 6:
        raise InvalidQuery("choose at most six strata, or pool them")
    return [release.curve(name) for name in chosen]


def _drawn(size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.unique(np.linspace(0, size - 1, min(size, MOST_DRAWN)).astype(np.int64))


def _table(made: Tabular, rows: np.ndarray[Any, Any] | None = None) -> dict[str, Any]:
    """A result as the page gets it: what holds for all of it, and columns."""
    columns = {name: [plain(v) for v in values] for name, values in made.columns().items()}
    if rows is not None:
        columns = {name: [values[i] for i in rows] for name, values in columns.items()}
    return {"about": {name: _plain(value) for name, value in made.metadata().items()}, "columns": columns}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else plain(value)


def _numbers(values: Sequence[float] | np.ndarray[Any, Any]) -> list[Any]:
    return [plain(float(value)) for value in values]


def distribution(release: Release, query: Query) -> Answer:
    """Curves with bands; where asked, the share up to a threshold and the threshold of a share."""
    confidence, kind, found = _confidence(query), _kind(query), []
    for curve in _curves(release, query):
        rows = _drawn(curve.counts.size)
        low, high = curve.band(confidence, interval=kind)
        one = _table(curve, rows) | {"name": curve.stratum, "band": [_numbers(low[rows]), _numbers(high[rows])]}
        if query.text("at"):
            one["point"] = _table(curve.at([_threshold(release, query.text("at"))], confidence))
        if query.text("level"):
            one["quantile"] = _table(curve.quantile([query.number("level", 0.5)], confidence))
        one["summary"] = _table(release.summary(curve.strata, confidence=confidence))
        if curve.values[0] >= 0:
            one["gini"] = _table(Lorenz(release.curve(curve.strata, smoothing="isotonic")))["about"]
        found.append(one)
    return {"curves": found}


def _threshold(release: Release, text: str) -> object:
    return text if release.campaign.variable.grid.values == "date" else text.strip()


def histogram(release: Release, query: Query) -> Answer:
    bins = query.whole("bins", 20)
    if not 1 <= bins <= MOST_BINS:
        raise InvalidQuery(f"between 1 and {MOST_BINS} bins")
    made = [(c.stratum, c.histogram(bins, _confidence(query))) for c in _curves(release, query)]
    return {"histograms": [_table(found) | {"name": name} for name, found in made]}


def comparison(release: Release, query: Query) -> Answer:
    strata = release.campaign.strata
    first, second = query.text("first", strata[0]), query.text("second", strata[-1])
    made = release.compare(first, second, confidence=_confidence(query))
    return {"comparison": _table(made)}


def roc(release: Release, query: Query) -> Answer:
    made = release.roc()
    region = made.region(_confidence(query), interval=_kind(query))
    limits = [_numbers(x) for x in (region.least_false, region.most_false, region.least_true, region.most_true)]
    found = _table(made)
    return {"roc": found, "region": limits}


def calibration(release: Release, query: Query) -> Answer:
    groups = query.whole("groups", 10)
    found: dict[str, Any] = {"calibration": _table(release.calibration(groups))}
    try:
        found["smooth"] = _table(release.calibration_curve(confidence=_confidence(query)))
    except Problem as problem:
        found["smooth_problem"] = problem.detail
    return found


def decision(release: Release, query: Query) -> Answer:
    model = release.performance(confidence=_confidence(query))
    threshold = query.number("threshold", 0.5)
    return {"decision": _table(model.decision_curve()), "performance": _table(model.performance(threshold))}


def survival(release: Release, query: Query) -> Answer:
    confidence, kind = _confidence(query), _kind(query)
    made = release.survival(confidence=confidence)
    found = {"table": _table(made), "summary": _table(release.survival_summary(confidence=confidence))}
    return found | {"arms": [_arm(arm, kind, confidence) for arm in made.arms]}


def _arm(arm: Arm, kind: Any, confidence: float) -> dict[str, Any]:
    """A whole curve with its band, from time 0 on."""
    index = np.arange(arm.last + 1)
    at, low, high = arm.band(kind, confidence)
    return {
        "name": arm.name,
        "columns": {"time": _numbers(arm.times[index]), "survival": _numbers(arm.survival[index])},
        "band": [_numbers(arm.times[at]), _numbers(low), _numbers(high)],
    }


def trend(client: Client, query: Query) -> Answer:
    """Of a campaign of waves: quartiles of every wave, and each against the one before it; as it is now."""
    found, confidence = client.trend(), _confidence(query)
    chosen = query.texts("stratum") or None
    quantiles = found.quantiles(stratum=chosen, confidence=confidence)
    return {"quantiles": _table(quantiles), "changes": _table(found.changes(chosen, confidence=confidence))}


def plan(query: Query) -> Answer:
    """Expected errors around the wanted n and epsilon."""
    n, epsilon = query.whole("n", 5000), query.number("epsilon", 1.0)
    grid: dict[str, Any] = {"thresholds": query.whole("thresholds", 1000), "strata": query.whole("strata", 1)}
    if n < 1 or not math.isfinite(epsilon):
        raise InvalidQuery("a plan needs at least one value and a finite epsilon")
    # Noise does not depend on n, so all errors are those of one value, divided.
    one = planning.expected_errors(n=1, epsilon=epsilon, **grid)
    sizes = [int(10 ** (k / 4)) for k in range(8, 25)]
    columns = {
        "n": sizes,
        "point_error": _numbers([one.point / size for size in sizes]),
        "band_95": _numbers([one.band / size for size in sizes]),
    }
    found = {
        "n": n,
        "epsilon": epsilon,
        "point": one.point / n,
        "band": one.band / n,
        "quantile_steps": one.quantile_steps / n,
    }
    return {"here": {name: plain(value) for name, value in found.items()}, "columns": columns}


def report(release: Release, query: Query) -> Answer:  # noqa: ARG001
    from analyst.present import report as pages

    return Download("report.html", "text/html; charset=utf-8", pages.page(release, datetime.now(UTC)).encode())
