"""The program on docs/specification.md: its blocks of Python, run one after the other."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "specification.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@cache
def specified() -> Any:
    """Everything that the page defines. It knows nothing of this project's modules."""
    found: dict[str, Any] = {}
    for number, block in enumerate(blocks()):
        exec(compile(block, f"specification.md, block {number}", "exec"), found)
    return SimpleNamespace(**found)
