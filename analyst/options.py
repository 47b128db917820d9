"""What can be chosen, in a module that loads nothing: the command line's help names it."""

from typing import Literal

Smoothing = Literal["none", "isotonic", "limited", "l1", "l2"]

QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
