"""The Lorenz curve and the Gini coefficient."""

from typing import TYPE_CHECKING

from analyst.needs import AMOUNTS, DISTRIBUTION
from analyst.options import Smooth, Strata
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.present.section import Section, StratumPart
    from analyst.release import Release
    from analyst.statistics.distribution import Lorenz


def lorenz(release: "Release", stratum: Strata = None, *, smoothing: Smooth = "isotonic") -> "Lorenz":
    """Compute which fraction of the sum of all values the lowest fraction of people has, and the Gini coefficient.

    Returns `Lorenz`, one row for each threshold.
    Raises `InvalidQuery` if values can be negative, `TooNoisy` if the noise hides how many values there are.
    """
    from analyst.statistics.distribution import Lorenz

    return Lorenz(release.curve(stratum, smoothing=smoothing))


def _section(release: "Release") -> "Section | None":
    from analyst import plots
    from analyst.present.section import Section

    if len(release.campaign.strata) == 1:
        return None
    title, strata = plots.drawn_strata(release.campaign)
    drawn = plots.lorenz(*(release.lorenz(stratum) for stratum in strata))
    return Section(title, [], {"lorenz": ("Lorenz curves of the strata with their Gini coefficients", drawn)})


def _stratum_section(release: "Release", part: "StratumPart") -> "Section":
    from analyst import plots
    from analyst.present.section import Section

    result, key = release.lorenz(part.stratum), f"{part.key}-lorenz"
    caption = f"Lorenz curve of {part.name} with its Gini coefficient"
    figures = {key: (caption, plots.lorenz(result))} if len(release.campaign.strata) == 1 else {}
    return Section(part.title, [], figures, {key: result})


LORENZ = Statistic(
    lorenz,
    "Lorenz curve, Gini coefficient",
    order=50,
    needs=(AMOUNTS,),
    report_needs=(DISTRIBUTION,),
    shown=Shown(section=_section, stratum_section=_stratum_section, in_console=False),
)
