"""fss-analyst plan: expected errors of a campaign before it exists. Asks nobody."""

import argparse
import math
from typing import Any

from analyst.present.table import Columns, Tabular
from analyst.present.terminal import show
from fss_ecdf.campaign.errors import InvalidInput
from fss_ecdf.campaign.noise import planning
from fss_ecdf.campaign.noise.proportions import Layout, area_error, check_proportions
from fss_ecdf.campaign.noise.registry import mechanism


class _Plan(Tabular):
    """Expected errors for every n and epsilon."""

    def __init__(self, args: argparse.Namespace) -> None:
        if args.proportions is not None:
            args.strata = len(args.proportions)
        self._grid = {"thresholds": args.thresholds, "strata": args.strata}
        more = {**self._grid, "values_per_person": args.values_per_person}
        self._target_error = args.target_error
        pairs = [(n, epsilon) for n in args.n for epsilon in args.epsilon]
        self._errors = [planning.expected_errors(n=n, epsilon=epsilon, **more) for n, epsilon in pairs]
        self._needed: dict[str, list[float]] = {}
        self._rarest = {} if args.proportions is None else _rarest(args, pairs)
        if args.target_error is not None:
            self._needed["parties_needed"] = [
                planning.required_n(args.target_error, epsilon=epsilon, **more) for _, epsilon in pairs
            ]

    def columns(self) -> Columns:
        errors = self._errors
        return {
            "n": [e.n for e in errors],
            "epsilon": [e.epsilon for e in errors],
            "point_error": [e.point for e in errors],
            "band_95": [e.band for e in errors],
            "quantile_steps": [e.quantile_steps for e in errors],
            **self._rarest,
            **self._needed,
        }

    def metadata(self) -> dict[str, Any]:
        return {**self._grid, "accuracy": self._target_error}


def _rarest(args: argparse.Namespace, pairs: list[tuple[int, float]]) -> dict[str, list[float]]:
    """Errors of the rarest stratum as fractions of its own values, and of the AUC between it and the largest."""
    shares = check_proportions(args.proportions, args.strata)
    found: dict[float, tuple[float, float]] = {}
    each, levels = (1 << (k - 1).bit_length() for k in (args.thresholds, args.strata))
    for epsilon in dict.fromkeys(epsilon for _, epsilon in pairs):
        noise = mechanism("slice-tree", (each * levels).bit_length() - 1, epsilon, args.values_per_person)
        layout = Layout(noise, args.thresholds, each, args.strata, args.thresholds)
        rarest, largest = shares.index(min(shares)), shares.index(max(shares))
        area = area_error(layout, largest, rarest, (shares[largest], shares[rarest])) if args.strata > 1 else math.nan
        found[epsilon] = layout.errors(rarest).point / shares[rarest], area
    return {
        "rarest_point_error": [found[epsilon][0] / n for n, epsilon in pairs],
        "auc_error": [found[epsilon][1] / n for n, epsilon in pairs],
    }


def plan(args: argparse.Namespace) -> None:
    show(args, _Plan(args))
    if args.json or args.csv:
        return
    print("\npoint error: one standard error of the curve at a threshold, as a fraction of n")
    print("band 95: the whole curve is within this fraction of n of the truth, with probability 95 %")
    print("quantile steps: standard error of a quantile in steps of the grid, for values spread evenly over it")
    if args.proportions is not None:
        print("rarest point error: the same of the rarest stratum, as a fraction of its own values")
        print("auc error: one standard error of the AUC between the rarest and the largest stratum")
    if args.target_error is not None:
        more = {"thresholds": args.thresholds, "strata": args.strata, "values_per_person": args.values_per_person}
        for n in args.n:
            try:
                needed = f"{planning.required_epsilon(args.target_error, n=n, **more):.2g}"
            except InvalidInput:
                needed = "more than any campaign may have"
            print(f"for a point error of {args.target_error:g} with n = {n}: epsilon {needed}")
