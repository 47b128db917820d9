"""What a report has to say about a release: sections of words, figures and tables, each made when it is its turn."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from analyst import plots
from analyst.estimation.estimate import Estimate, Estimates
from analyst.plots import curves as plot
from analyst.point_queries import PointRelease
from analyst.present.table import Tabular, p_words, short
from analyst.release import Release
from analyst.statistics.distribution import Lorenz
from analyst.statistics.trend import Trend
from fss_ecdf.campaign.errors import Problem

MOST_STRATA = 12


@dataclass(frozen=True)
class Section:
    """A title, words, and named figures and tables; what is drawn has a caption for those who cannot see it."""

    title: str
    words: list[str] = field(default_factory=list)
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    tables: dict[str, Tabular] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def sections(release: Release | PointRelease) -> Iterator[Section]:
    """All that this campaign allows; what the noise does not allow is said in its place."""
    campaign = release.campaign
    if isinstance(release, PointRelease):
        yield from (_points(release, stratum) for stratum in release.parts)
        return
    if campaign.kind == "survival":
        yield _guarded("Survival", lambda: _survival(release))
        return
    if len(campaign.strata) > 1:
        yield _guarded("All strata", lambda: _together(release))
    for stratum in campaign.strata[:MOST_STRATA]:
        yield _guarded(
            f"Distribution: {stratum}" if len(campaign.strata) > 1 else "Distribution", _one(release, stratum)
        )
    if len(campaign.strata) == 2:
        yield _guarded("Comparison", lambda: _comparison(release))
        yield _guarded("ROC", lambda: _roc(release))
        grid = campaign.variable.grid
        if grid.values == "float" and grid.all_thresholds[0] >= 0 and grid.all_thresholds[-1] <= 1:
            yield _guarded("Prediction model", lambda: _model(release))
            yield _guarded("Calibration", lambda: _calibration(release))


def over_time(trend: Trend | None) -> Iterator[Section]:
    """Of a campaign of waves: what became of quantiles, wave by wave, and which changes are more than chance."""
    if trend is not None and trend.waves:
        yield _guarded("Over time", lambda: _over_time(trend))


def _over_time(trend: Trend) -> Section:
    quantiles, changes = trend.quantiles(), trend.changes()
    figures = {"over-time": ("Quartiles of every wave with bands", plots.over_time(quantiles))}
    tables: dict[str, Tabular] = {"over-time": quantiles, "changes": changes}
    certain = [str(row["wave"]) for row in changes.rows if row["p_adjusted"] < 0.05]
    told = [f"{len(trend.waves)} waves; changed from the one before (Holm-adjusted p < 0.05): "]
    told[0] += f"wave {', '.join(certain)}." if certain else "none."
    return Section("Over time", [], figures, tables, findings=told)


def _guarded(title: str, make: Callable[[], Section]) -> Section:
    try:
        return make()
    except Problem as problem:
        return Section(title, notes=[problem.detail])


def _together(release: Release) -> Section:
    strata = release.campaign.strata[: len(plot.INKS)]
    curves = [release.curve(stratum) for stratum in strata]
    title = "All strata" if len(strata) == len(release.campaign.strata) else f"The first {len(strata)} strata"
    figures = {
        "strata": ("Distribution functions of the strata with bands", plots.ecdf(*curves)),
        "boxes": ("Median, quartiles and central 95 % of each stratum", plots.box(*curves)),
    }
    if curves[0].values[0] >= 0:
        drawn = plots.lorenz(*(Lorenz(release.curve(stratum, smoothing="isotonic")) for stratum in strata))
        figures["lorenz"] = ("Lorenz curves of the strata with their Gini coefficients", drawn)
    return Section(title, [], figures, {"values-in-each-stratum": _totals(release)})


def _totals(release: Release) -> Estimates:
    """How many values each stratum has, and the share of all that this is."""
    curves = [release.curve(stratum) for stratum in release.campaign.strata]
    rows: list[Estimate] = []
    for curve in curves:
        value, error = release.totals[curve.stratum], curve.total_error
        share = min(max(value / max(release.n, 1), 0.0), 1.0)
        rows.append(Estimate(curve.stratum, value, error, math.sqrt(release.n * share * (1 - share)), (0, release.n)))
    return Estimates(rows, {"n": release.n, "epsilon": release.campaign.epsilon})


def _one(release: Release, stratum: str) -> Callable[[], Section]:
    def make() -> Section:
        curve, single = release.curve(stratum), len(release.campaign.strata) == 1
        name, quantiles, bins = release.campaign.title if single else stratum, curve.quantile(), curve.histogram()
        summary = release.summary(stratum)
        key = _slug(stratum)
        figures = {
            f"{key}-curve": (f"Distribution function of {name}", plots.ecdf(curve, quantiles=quantiles)),
            f"{key}-histogram": (f"Histogram of {name}", plots.histogram(bins, f"Histogram: {name}")),
        }
        tables: dict[str, Tabular] = {
            f"{key}-summary": summary,
            f"{key}-quantiles": quantiles,
            f"{key}-histogram": bins,
        }
        if curve.values[0] >= 0:
            shares = Lorenz(release.curve(stratum, smoothing="isotonic"))
            tables[f"{key}-lorenz"] = shares
            if single:
                figures[f"{key}-lorenz"] = (f"Lorenz curve of {name} with its Gini coefficient", plots.lorenz(shares))
        title = "Distribution" if single else f"Distribution: {stratum}"
        told = [f"Median of {name}: {said(summary['median'])}."]
        return Section(title, [], figures, tables, [*curve.notes, *bins.metadata()["notes"]], told)

    return make


def _points(release: PointRelease, stratum: str) -> Section:
    """Of a grid that is too large for whole curves."""
    single, key, found = len(release.parts) == 1, _slug(stratum), release.parts[stratum]
    title = "Distribution" if single else f"Distribution: {stratum}"
    if isinstance(found, str):
        return Section(title, notes=[found])
    curve, quantiles, bins = found
    name = release.campaign.title if single else stratum
    figures = {
        f"{key}-curve": (f"Distribution function of {name} at some values", plots.points(curve, quantiles)),
        f"{key}-histogram": (f"Histogram of {name}", plots.histogram(bins, f"Histogram: {name}")),
    }
    tables: dict[str, Tabular] = {f"{key}-quantiles": quantiles, f"{key}-histogram": bins, f"{key}-points": curve}
    notes = [
        f"This grid has 2^{release.campaign.bits} positions, too many for whole curves: points were asked for. What "
        "needs all of it (means, ROC, calibration, comparisons) is not here.",
        *bins.metadata()["notes"],
    ]
    at = quantiles.levels.index(0.5)
    ends = f"{short(quantiles.lower[at])} to {short(quantiles.upper[at])}"
    told = [f"Median of {name}: {short(quantiles.thresholds[at])} (95 % population interval {ends})."]
    return Section(title, [], figures, tables, notes, told)


def _comparison(release: Release) -> Section:
    comparison = release.compare(*release.campaign.strata)
    first, second = release.campaign.strata
    words = [f"Differences are {second} less {first}. p-values are for the population and count the noise in."]
    told = [f"{second} against {first}: {p_words(comparison.superiority.p_value)} (Mann-Whitney, noise included)."]
    return Section("Comparison", words, {}, {"comparison": comparison}, comparison.metadata()["notes"], told)


def _roc(release: Release) -> Section:
    curves = release.roc()
    figures = {
        "roc": ("ROC curve with the region that holds it", plots.roc(curves)),
        "precision-recall": ("Precision against recall", plots.precision_recall(curves)),
    }
    told = [f"Area under the ROC curve: {said(curves.area)}."]
    return Section("ROC", [], figures, {"roc": curves}, curves.notes, told)


def _model(release: Release) -> Section:
    model = release.performance()
    decision = model.decision_curve()
    figures = {
        "decision": ("Decision curve: net benefit against treating all and none", plots.decision_curve(decision)),
        "calibration-curve": (
            "Smooth calibration curve with a band",
            plots.calibration_curve(release.calibration_curve()),
        ),
    }
    tables: dict[str, Tabular] = {"performance": model.performance(), "decision": decision}
    slope = model.regression()[1]
    return Section("Prediction model", [], figures, tables, [], [f"Calibration slope: {said(slope)}."])


def _calibration(release: Release) -> Section:
    test = release.calibration()
    low, high = test.corrected_interval()
    words = [
        f"Hosmer-Lemeshow H = {short(test.corrected)} (95 % noise interval {short(low)} to {short(high)}; "
        f"{short(test.statistic)} before the noise's share is taken off) "
        f"over {int(test.groups.used.sum())} groups, {p_words(test.p_value)} with the noise included. Chi-square with "
        f"{test.degrees_of_freedom} degrees of freedom, which ignores the noise, would say {short(test.chi_square_p)}. "
        f"Observed over expected: {test.observed_over_expected:.3f}."
    ]
    if not test.informative:
        words = [f"Observed over expected: {test.observed_over_expected:.3f}."]
    figures = {"calibration": ("Share of positives against the mean score of groups", plots.calibration(test))}
    return Section("Calibration", words, figures, {"calibration": test}, test.notes)


def _survival(release: Release) -> Section:
    curves, summary = release.survival(), release.survival_summary()
    figures = {"survival": ("Kaplan-Meier curves with bands and the number at risk", plots.survival(curves))}
    tables: dict[str, Tabular] = {"summary": summary, "survival": curves, "hazard": release.survival(hazard=True)}
    told = [f"{row.name}: {said(row)}." for row in summary.rows if row.name.startswith("median")]
    told += [f"{row.name}: {p_words(row.p_value)}." for row in summary.rows if row.p_value is not None]
    return Section("Survival", [], figures, tables, curves.notes, told)


def said(row: Estimate) -> str:
    """A value with its population interval, as people write it."""
    low, high = row.interval("population")
    if math.isinf(row.value):
        return "not reached"
    to = f"{low:.3g} to {high:.3g}" if math.isfinite(high) else f"from {low:.3g} on"
    if math.isnan(row.value):
        return f"not told, for the noise is too large (95 % population interval {to})"
    return f"{row.value:.3g} (95 % population interval {to})"


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")[:40] or "stratum"
