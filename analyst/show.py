"""A result on the screen: as people read it, as JSON, or as CSV."""

import argparse

from analyst.table import Tabular, short
from campaign.spec import Campaign


def show(args: argparse.Namespace, made: Tabular, campaign: Campaign | None = None) -> None:
    """Print a result in the wanted form."""
    if args.json:
        print(made.to_json(), end="")
    elif args.csv:
        print(made.to_csv(), end="")
    else:
        if campaign is not None:
            print(campaign.title)
        about = {name: value for name, value in made.about().items() if name != "notes"}
        for name, value in about.items():
            print(f"  {name.replace('_', ' '):<34} {short(value)}")
        print(f"\n{made.to_text()}")
        for note in made.about().get("notes", []):
            print(f"\nnote: {note}")
