"""Parameters that statistics share: their types in Python, and the options that the command line makes of them.

This module loads nothing else, because the command line's help needs it.
"""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

if TYPE_CHECKING:
    from analyst.estimation.estimate import Interval as Interval
    from analyst.release import Stratum as Stratum
    from fss_ecdf.campaign.array_inputs import Values as Values

Smoothing = Literal["none", "isotonic", "limited", "l1", "l2"]

QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def numbers(text: str) -> list[float]:
    """Numbers separated by commas; the error says so."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"numbers separated by commas, got {text!r}") from None


@dataclass(frozen=True)
class Option:
    """How a parameter is typed: its help, how its text is read, and what else argparse is told."""

    help: str
    read: Callable[[str], Any] | None = None
    flag: str = ""  # where it is not the parameter's name
    more: Mapping[str, Any] = field(default_factory=dict)


Smooth = Annotated[Smoothing, Option("smoothing of the curve", str, more={"choices": get_args(Smoothing)})]
Confidence = Annotated[float, Option("confidence level of intervals and bands", float)]
Strata = Annotated[
    "Stratum",
    Option("select a stratum; repeat it to pool several; default: all", more={"action": "append", "metavar": "NAME"}),
]


def named_stratum(help: str) -> Option:
    return Option(help, more={"action": "append", "metavar": "NAME"})


Negative = Annotated["Stratum", named_stratum("the stratum without the outcome; default: the first of two")]
Positive = Annotated["Stratum", named_stratum("the stratum with the outcome; default: the second of two")]


def options_of(compute: Callable[..., Any]) -> Iterator[tuple[Parameter, Option]]:
    """Each option of a statistic with the parameter that it sets; the first parameter is what it is computed from."""
    for parameter in [*signature(compute).parameters.values()][1:]:
        for option in getattr(parameter.annotation, "__metadata__", ()):
            yield parameter, option
