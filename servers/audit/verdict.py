"""The three verdicts of an audit, each with its exit status."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fss import FssError
from fss_ecdf.campaign.errors import Problem

HONEST, WRONG, NOTHING = "honest", "wrong", "nothing to compare"
# Distinct from those of all programs (`fss_ecdf/cli/common.py`), from Python's own 1 and from argparse's 2.
EXIT_STATUS = {HONEST: 0, WRONG: 3, NOTHING: 4}


@dataclass(frozen=True)
class Finding:
    """What was compared, the verdict, what is wrong or missing, and which server it is wrong at."""

    what: str
    verdict: str
    detail: str = ""
    server: int | None = None
    numbers: int = 0  # that were computed again and compared

    def __str__(self) -> str:
        by = "" if self.server is None else f", by server {self.server}"
        return f"{self.verdict}{by}" + (f": {self.detail}" if self.detail else "")


class Wrong(Exception):
    """A server signed, published or handed over something that is not right."""

    def __init__(self, server: int, detail: str) -> None:
        super().__init__(detail)
        self.server = server


class Nothing(Exception):
    """There is nothing to compare with; that is nobody's fault."""


def finding(what: str, whose: int, compare: Callable[[], int]) -> Finding:
    """What `compare` finds; it returns how many numbers it compared. Malformed files are wrong at server `whose`."""
    try:
        return Finding(what, HONEST, numbers=compare())
    except Wrong as wrong:
        return Finding(what, WRONG, str(wrong), wrong.server)
    except Nothing as nothing:
        return Finding(what, NOTHING, str(nothing))
    except (Problem, FssError, ValueError, EOFError) as malformed:
        return Finding(what, WRONG, str(malformed), whose)


def overall(findings: Sequence[Finding]) -> str:
    """Wrong where anything is; honest where numbers were compared and nothing that was signed is left uncompared."""
    verdicts = {found.verdict for found in findings}
    if WRONG in verdicts:
        return WRONG
    compared = any(found.numbers for found in findings)
    return HONEST if compared and NOTHING not in verdicts else NOTHING
