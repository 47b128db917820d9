"""What error messages may repeat: few things, short ones, on one line. Megabytes are not answered with megabytes."""

from collections.abc import Sequence

from fss_ecdf.campaign.text import shown

MOST_LISTED = 10
MOST_LETTERS = 60


def short(text: str, most: int = MOST_LETTERS) -> str:
    """
    >>> short("a" * 100, 10)
    'aaaaaaaaaa...'
    """
    return shown(text) if len(text) <= most else shown(text[:most]) + "..."


def listed(parts: Sequence[str], separator: str = "; ") -> str:
    """
    >>> listed([str(i) for i in range(12)], ", ")
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more'
    """
    more = [f"and {len(parts) - MOST_LISTED} more"] if len(parts) > MOST_LISTED else []
    return separator.join([*parts[:MOST_LISTED], *more])
