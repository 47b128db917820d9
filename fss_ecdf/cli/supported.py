"""What a campaign supports, for `fss-server campaign preview`: every statistic of the analysts' registry."""

from collections.abc import Iterator

from analyst.needs import WHOLE_CURVES
from analyst.registry import Statistic, statistics
from fss import SCHEMES
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.expected_errors import LEVELS, ExpectedErrors, quantile_questions

_HIDDEN = "no: a stratum's total is lost in the noise: fewer strata, more parties or a larger epsilon"


def supported(campaign: Campaign, best: ExpectedErrors) -> Iterator[tuple[str, str]]:
    """Each statistic with yes, or why not and what to change."""
    too_large = WHOLE_CURVES.missing(campaign)
    if too_large and not SCHEMES[campaign.variable.scheme].is_cumulative:
        yield "Anything at all", f'no: {too_large}; or take scheme = "dcf", which answers points'
        return
    for statistic in statistics().values():
        missing = statistic.missing(campaign)
        if missing:
            yield statistic.title, f"no: {missing}"
        elif best.total_share >= 0.5:
            yield statistic.title, _HIDDEN
        else:
            by_points = [_by_points(campaign, statistic)] if too_large else []
            yield statistic.title, ", ".join(filter(None, ["yes", *by_points, statistic.naming(campaign)]))


def _by_points(campaign: Campaign, statistic: Statistic) -> str:
    if statistic.method != "quantile":
        return "by asking points"
    return f"by asking points: at most {quantile_questions(campaign)} questions for {LEVELS}"
