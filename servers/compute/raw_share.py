"""A share without noise, wrapped up: it may be made and kept on this server, and opened in one file only."""

from typing import NoReturn

from fss import field
from fss.field import Words


class RawShare:
    """Uniform numbers, as long as they stay on this server; with the other server's they would be exact counts.

    `servers/release/add_noise.py` opens it and adds noise; a test sees to it that nothing else does.
    """

    __slots__ = ("_words",)

    def __init__(self, words: Words) -> None:
        self._words = words

    def open_for_noise(self) -> Words:
        return self._words

    def __add__(self, other: "RawShare") -> "RawShare":
        """The share of two sets of keys together."""
        return RawShare(field.add(self._words, other._words))

    def __repr__(self) -> str:
        return f"<Unnoised {self._words.size}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a share without noise is not sent anywhere")
