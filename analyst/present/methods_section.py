"""Words for a paper: what was computed, from how many people, with which noise, and what the intervals say."""

from analyst.point_queries import PointRelease
from analyst.release import Release
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.campaign.noise.mechanism import SERVERS
from fss_ecdf.campaign.variable import Variable

_MECHANISM = {
    "flat": "discrete Laplace noise to the count of every category, given that all of it adds up to zero",
    "slice-tree": "a tree of integer noise whose nodes add up to their parents, with tuned weights on its levels",
    "paper-tree": "discrete Laplace noise on every node of a binary tree over the grid",
    "paper-tree-exact": "discrete Laplace noise on every node of a binary tree over the grid, at its exact sensitivity",
}


_WHOLE = (
    "Estimates. Counts were conditioned on what is public (n, and that nobody is in the padding of the grid) and made "
    "non-decreasing by isotonic regression, ending at each stratum's total; distribution functions and histograms were "
    "moved towards the splits that are likely given the release, by at most one standard error each (limited "
    "translation). Moments and calibration slopes come from raw counts."
)
_FLAT = (
    "Estimates. Proportions are noisy counts of categories over the noisy number of values of their stratum (Fieller's "
    "and Wilson's intervals); strata are compared by a chi-square test whose covariance includes the noise."
)
_BY_POINTS = (
    "Estimates. The grid is too large for whole curves: counts were asked for at single thresholds, quantiles found by "
    "binary search on them, with intervals that hold for all steps of the search together (Bonferroni)."
)


def _scale(variable: Variable) -> str:
    missing = ", missing values being counted apart" if variable.missing else ""
    if variable.is_categorical:
        return f"Each value is one of {variable.value_count} public categories ({variable.name}){missing}"
    grid, unit = variable.grid, f" {variable.unit}" if variable.unit else ""
    ends = f"{grid.label(0)} to {grid.label(grid.size - 1)}{unit}"
    return f"Values were placed on a public grid of {grid.size} thresholds from {ends} ({variable.name}){missing}"


def sentences(release: Release | PointRelease) -> list[str]:
    """One paragraph each: data, privacy, estimates, intervals."""
    campaign = release.campaign
    variable, strata = campaign.variable, len(campaign.strata)
    each = "" if campaign.max_values_per_person == 1 else f" (at most {campaign.max_values_per_person} from one party)"
    asked = campaign.question.rstrip(".?!")
    return [
        f"Data. Parties were asked: \u201c{asked}?\u201d {release.n} values{each} were collected by function secret "
        "sharing between two servers that do not collude; neither saw a value. "
        + (
            "Uploads that did not share exactly one value were detected and left out. "
            if campaign.check_keys
            else "Uploads were not checked: dishonest parties could have changed counts by more than one. "
        )
        + _scale(variable)
        + (f", in {strata} strata ({', '.join(campaign.strata)})." if strata > 1 else "."),
        f"Privacy. {_released(campaign)}-differential privacy for each party "
        "(replacement of its values; n is public)"
        + (f", and {campaign.reserve:g} in reserve" if campaign.reserve else "")
        + f". Each of {SERVERS} servers added {_MECHANISM[variable.mechanism]} before anything left it; the "
        "guarantee holds towards readers and towards either server. All statistics are post-processing of this one "
        "release.",
        _BY_POINTS if isinstance(release, PointRelease) else _FLAT if variable.is_categorical else _WHOLE,
        "Intervals. \u201cNoise\u201d intervals describe how far a published number may be from that of the people "
        "who took part, from the exact covariance of the noise. \u201cPopulation\u201d intervals add sampling "
        "variation (binomial, DeLong, Greenwood or infinitesimal jackknife; Dvoretzky-Kiefer-Wolfowitz-Massart for "
        "bands). Unless said otherwise, 95 % intervals are population intervals. p-values include the noise.",
        f"Source. fss-ecdf, campaign {campaign.digest.hex()[:16]}; cite this release by that number, and the software "
        "by its name and version.",
    ]


def _released(campaign: Campaign) -> str:
    if campaign.waves is None:
        return f"The distribution was released once, with {campaign.epsilon:g}"
    return (
        f"Each party was in one of up to {campaign.waves.count} waves, each released once, and in the releases that "
        f"pool waves, with {campaign.total_epsilon:g} at most in all"
    )


def text(release: Release | PointRelease) -> str:
    """For a methods section."""
    return "\n\n".join(sentences(release))
