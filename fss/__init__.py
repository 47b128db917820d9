"""Function secret sharing: keys for comparison (`dcf`) and point functions (`dpf`), generated and evaluated in numpy.

This package knows bits and field elements, nothing of thresholds or privacy. Read `dcf`, then `path` (generation),
`walk` and `plan` (evaluation), `keys` (what a key looks like), `prg` and `field`.
"""

from fss import dcf, dpf, field
from fss.errors import DomainError, FssError, KeyFormatError, KeyMismatchError, ShapeError
from fss.keys import KeyBatch, KeyType, Scheme

__all__ = [
    "DomainError",
    "FssError",
    "KeyBatch",
    "KeyFormatError",
    "KeyMismatchError",
    "KeyType",
    "Scheme",
    "ShapeError",
    "dcf",
    "dpf",
    "field",
]
