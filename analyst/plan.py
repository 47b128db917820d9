"""Which epsilon, and how many parties? Expected errors as a table."""

import argparse
from typing import Any

from analyst.table import Columns, Tabular
from campaign.noise import planning


class Plan(Tabular):
    """Expected errors for every n and epsilon."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._grid = {"thresholds": args.thresholds, "strata": args.strata}
        more = {**self._grid, "instances": args.instances}
        self._accuracy = args.accuracy
        pairs = [(n, epsilon) for n in args.n for epsilon in args.epsilon]
        self._errors = [planning.expected_errors(n=n, epsilon=epsilon, **more) for n, epsilon in pairs]
        self._needed: dict[str, list[float]] = {}
        if args.accuracy is not None:
            self._needed["parties_needed"] = [
                planning.parties_for(args.accuracy, epsilon=epsilon, **more) for _, epsilon in pairs
            ]

    def columns(self) -> Columns:
        errors = self._errors
        return {
            "n": [e.n for e in errors],
            "epsilon": [e.epsilon for e in errors],
            "point_error": [e.point for e in errors],
            "band_95": [e.band for e in errors],
            "quantile_steps": [e.quantile_steps for e in errors],
            **self._needed,
        }

    def about(self) -> dict[str, Any]:
        return {**self._grid, "accuracy": self._accuracy}
