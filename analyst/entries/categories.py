"""Categories: counts and proportions, and whether strata differ."""

from typing import TYPE_CHECKING, Annotated

from analyst.needs import CATEGORIES, TWO_OR_MORE_STRATA
from analyst.options import Confidence, named_stratum
from analyst.registry import Shown, Statistic

if TYPE_CHECKING:
    from analyst.options import Stratum
    from analyst.present.section import Section
    from analyst.release import Release
    from analyst.statistics.categories import CategoryComparison, CategoryTable

Chosen = Annotated["Stratum", named_stratum("again for several, each by itself; default: all of them")]


def categories(release: "Release", stratum: Chosen = None, *, confidence: Confidence = 0.95) -> "CategoryTable":
    """Count each category, and the missing values, with proportions of each stratum.

    Returns `CategoryTable`, one row for each category of each stratum; of a grid, for known and for missing values.
    Raises `InvalidQuery` if the variable has neither categories nor a count of missing values.
    """
    from analyst.statistics.categories import CategoryTable, category_counts

    return CategoryTable(category_counts(release), release.strata(stratum), _about(release), confidence)


def compare_categories(
    release: "Release", stratum: Chosen = None, *, confidence: Confidence = 0.95
) -> "CategoryComparison":
    """Test whether strata have the same proportions; the noise is included.

    Returns `CategoryComparison`: a chi-square test and the proportions.
    Raises `InvalidQuery` if fewer than two strata are named, `TooNoisy` if the noise hides a stratum.
    """
    from analyst.statistics.categories import category_counts, compare_proportions

    return compare_proportions(category_counts(release), release.strata(stratum), _about(release), confidence)


def _about(release: "Release") -> dict[str, object]:
    campaign = release.campaign
    about: dict[str, object] = {"value": campaign.variable.label, "n": release.n, "epsilon": campaign.epsilon}
    return {**about, "mechanism": campaign.variable.mechanism}


def _section(release: "Release") -> "Section":
    from analyst import plots
    from analyst.present.section import Section

    table = release.categories()
    title = "Categories" if release.campaign.variable.is_categorical else "Missing values"
    _, strata = plots.drawn_strata(release.campaign)
    drawn = plots.categories(release.categories(list(strata)))
    return Section(
        title, [], {"categories": ("Proportions with intervals", drawn)}, {"categories": table}, table.notes, []
    )


def _comparison(release: "Release") -> "Section":
    from analyst.present.section import Section
    from analyst.present.table import p_words

    test = release.compare_categories()
    finding = f"Same proportions in all strata: {p_words(test.p_value)} (chi-square, noise included)."
    return Section("Comparison of categories", [], {}, {}, test.metadata()["notes"], [finding])


COUNTS = Statistic(
    categories, "Categories", order=130, needs=(CATEGORIES,), shown=Shown(section=_section, in_console=False)
)
COMPARED = Statistic(
    compare_categories,
    "Comparison of categories",
    order=131,
    needs=(CATEGORIES, TWO_OR_MORE_STRATA),
    shown=Shown(section=_comparison, in_console=False),
)
