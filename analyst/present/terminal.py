"""A result on the screen: as people read it, as JSON, or as CSV."""

import argparse
import sys

from analyst.present.table import Tabular, short
from fss_ecdf.campaign.campaign import Campaign


def show(args: argparse.Namespace, result: Tabular, campaign: Campaign | None = None) -> None:
    """Print a result in the wanted form."""
    if args.json:
        print(result.to_json(), end="")
    elif args.csv:
        print(result.to_csv(), end="")
    else:
        if campaign is not None:
            print(campaign.title)
        about = {name: value for name, value in result.metadata().items() if name != "notes"}
        for name, value in about.items():
            # strata add up to n as they are printed
            text = f"{value:.1f}" if name.startswith("n_") and isinstance(value, float) else short(value)
            print(f"  {name.replace('_', ' '):<34} {text}")
        print(f"\n{result.to_text()}")
        for note in result.metadata().get("notes", []):
            print(f"\nnote: {note}")
    for warning in result.warnings:
        print(warning, file=sys.stderr)
