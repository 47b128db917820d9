"""Function secret sharing: keys for comparison (`dcf`) and point functions (`dpf`), generated and evaluated in batches,
and tables of many counts at once (`table`).

This package knows bits and field elements, nothing of thresholds or privacy. Read `dcf`, then `path` (generation),
`walk` and `plan` (evaluation), `keys` (what a key looks like), `prg` and `field`; `check`, `proof` and `challenge` are
how two servers refuse keys of other functions. That is the reference, in numpy;
`native/` does the same in C where it can be built, and `backend()` says which is in use.
"""

from fss import dcf, dpf, field, table
from fss.backends import backend
from fss.errors import (
    BackendError,
    CheckFormatError,
    DomainError,
    FssError,
    KeyFormatError,
    KeyMismatchError,
    SelfCheckError,
    ShapeError,
    TableFormatError,
)
from fss.keys import KeyBatch, KeyType, Scheme
from fss.schemes import SCHEMES, scheme_of

__all__ = [
    "SCHEMES",
    "BackendError",
    "CheckFormatError",
    "DomainError",
    "FssError",
    "KeyBatch",
    "KeyFormatError",
    "KeyMismatchError",
    "KeyType",
    "Scheme",
    "SelfCheckError",
    "ShapeError",
    "TableFormatError",
    "backend",
    "dcf",
    "dpf",
    "field",
    "scheme_of",
    "table",
]
