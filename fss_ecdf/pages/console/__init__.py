"""The consoles' pages: markup, style and script of each."""

from pathlib import Path

from fss_ecdf.pages.bundle import bundle
from fss_ecdf.pages.local_server import Page

HERE = Path(__file__).parent


def console_page(name: str) -> Page:
    """The page of one console, joined from its modules."""
    sheets = (HERE.parent / "base.css", HERE.parent / "charts.css", HERE / "console.css")
    style = "".join(sheet.read_text() for sheet in sheets)
    return Page((HERE / f"{name}.html").read_text(), style, bundle(HERE / f"{name}.js"))
