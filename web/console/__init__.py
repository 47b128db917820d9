"""The consoles' pages: markup, style and script of each."""

from pathlib import Path

from web.join import joined
from web.local import Page

HERE = Path(__file__).parent


def console_page(name: str) -> Page:
    """The page of one console, joined from its modules."""
    style = (HERE.parent / "base.css").read_text() + (HERE / "console.css").read_text()
    return Page((HERE / f"{name}.html").read_text(), style, joined(HERE / f"{name}.js"))
