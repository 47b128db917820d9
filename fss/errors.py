"""What this package raises. Every error is a ValueError that names what was given and what was expected.

FssError
+-- DomainError       a number of bits, a point, an alpha or a payload outside its range
+-- ShapeError        an array of the wrong shape, length or dtype
+-- KeyFormatError    bytes or a file that are not exactly one well-formed batch of keys
|   +-- KeyMismatchError  keys that do not belong together (scheme, domain, party, campaign)
+-- CheckFormatError  bytes that are not well-formed proofs or messages of a check
+-- TableFormatError  bytes that are not exactly the words of one table
+-- SelfCheckError    a table that its own maker's check does not accept; nothing was sent
+-- BackendError      FSS_BACKEND asks for what is not here
"""


class FssError(ValueError):
    """Base of all errors of this package."""


class BackendError(FssError):
    """A back end that does not exist or is not installed."""


class DomainError(FssError):
    """A value outside the range that the scheme is defined on."""


class ShapeError(FssError):
    """An array whose shape, length or dtype does not fit."""


class KeyFormatError(FssError):
    """Bytes that are not exactly one well-formed batch of keys."""


class CheckFormatError(FssError):
    """Bytes that are not exactly as many well-formed proofs, or messages of a check, as were expected."""


class TableFormatError(FssError):
    """Bytes that are not exactly the words, the seed or the messages of one table."""


class SelfCheckError(FssError):
    """What was just made is wrong: an error of this machine or of this program, not of what was given."""


class KeyMismatchError(KeyFormatError):
    """Keys of different schemes, domains, parties or campaigns, used together."""
