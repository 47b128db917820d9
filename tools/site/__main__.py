"""python -m tools.site: build the site into site/, strictly: a broken link or a page without a place fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tools.site.kinds import DOCS, ROOT, nav, placed, unplaced
from tools.site.reference import PAGES

SOURCE, SITE = ROOT / "build" / "docs", ROOT / "site"

CONFIG = {
    "site_name": "fss-ecdf",
    "docs_dir": str(SOURCE),
    "site_dir": str(SITE),
    "use_directory_urls": False,  # so that pages open from a folder, too
    "strict": True,
    # No font, icon or script comes from elsewhere: `font` would be fetched, so the system's is used.
    "theme": {
        "name": "material",
        "font": False,
        "features": ["navigation.tabs", "navigation.sections", "navigation.top", "content.code.copy", "search.suggest"],
        "palette": [
            {"media": "(prefers-color-scheme: light)", "scheme": "default"},
            {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
        ],
    },
    "plugins": ["search", "offline"],  # the second one lets a page from a folder read the search's index
    "markdown_extensions": [
        "tables",
        "def_list",
        {"toc": {"permalink": True}},
        "pymdownx.highlight",
        "pymdownx.superfences",
    ],
    "extra": {"generator": False, "polyfills": ["iframe-worker.js"]},
    "extra_css": ["print.css"],
    "validation": {
        "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
        "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn", "unrecognized_links": "warn"},
    },
}

CDN = "https://unpkg.com/"

# On paper tables break between rows, lines of 120 characters fit, and no heading stands alone at the end of a page.
PRINT = """@page { margin: 15mm }
@media print {
  .md-header, .md-tabs, .md-sidebar, .md-footer, .md-top, .md-clipboard, .md-code__nav, .headerlink {
    display: none !important }
  .md-grid { max-width: none }
  .md-content__inner { margin: 0 }
  .md-typeset__scrollwrap, .md-typeset__table { display: block; overflow: visible; margin: 0; padding: 0 }
  .md-typeset table:not([class]) { display: table; width: 100% }
  h1, h2, h3, thead, p:has(+ pre), p:has(+ .highlight), p:has(+ .md-typeset__scrollwrap) { break-after: avoid }
  pre, tr, img { break-inside: avoid }
  .md-typeset pre > code { font-size: 7pt; white-space: pre-wrap }
}
"""


def main() -> int:
    lost = unplaced()
    if lost:
        print(f"no place in tools/site/kinds.py for {', '.join(lost)}")
        return 1
    assemble(SOURCE)
    config = SOURCE.with_name("mkdocs.yml")
    config.write_text(yaml.safe_dump({**CONFIG, "nav": nav()}, sort_keys=False))
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(config)]
    if subprocess.run(words, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode:
        return 1
    without_fallbacks(SITE)
    wrong = fetched_from_elsewhere(SITE) + broken_blocks(SITE)
    if wrong:
        print("\n".join(wrong))
        return 1
    print("read it: open site/index.html, or python -m http.server --bind 127.0.0.1 --directory site")
    return 0


def without_fallbacks(site: Path) -> None:
    """The theme would load two libraries from a CDN: one for browsers of 2019, one for diagrams that we do not have."""
    for path in site.rglob("*.js"):
        text = path.read_text()
        if CDN in text:
            path.write_text(text.replace(CDN, "left-out/"))


def broken_blocks(site: Path) -> list[str]:
    """Blocks of code that were not understood, and stand in the text as they were written."""
    return [
        f"{path.relative_to(site)}: a block of code is broken"
        for path in site.rglob("*.html")
        if "```" in path.read_text()
    ]


def fetched_from_elsewhere(site: Path) -> list[str]:
    """What a browser would load over the network: scripts, styles, fonts, pictures; not links to click on."""
    there = r"""=["']?((?:https?:)?//[^"' >]+)"""
    loads = f"<(?:script|img|iframe)[^>]+src{there}|<link(?![^>]+canonical)[^>]+href{there}"
    patterns = {
        "*.html": loads,
        "*.css": r"(url\(\s*[\"']?https?://[^)]+)()",
        "*.js": rf"({CDN}|[\"'`]https?://[^\"'`]+\.(?:js|css|woff2?)[\"'`])()",
    }
    return [
        f"{path.relative_to(site)} would load {a or b}"
        for names, pattern in patterns.items()
        for path in site.rglob(names)
        for a, b in re.findall(pattern, path.read_text())
    ]


def assemble(target: Path) -> None:
    """What MkDocs reads: the pages of docs/ with their mentions of each other as links, and those made of the code."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.json"))
    for path in target.rglob("*.md"):
        path.write_text(linked(path.read_text(), path.relative_to(target)))
    for name, made in PAGES.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(made())
    (target / "print.css").write_text(PRINT)
    shutil.copy(Path(__file__).with_name("iframe-worker.js"), target)


def linked(text: str, page: Path) -> str:
    """`docs/x.md` as a link with that page's title, outside of blocks of code; of these, whose they are as a title."""
    up, titles = "../" * (len(page.parts) - 1), placed()

    def link(match: re.Match[str]) -> str:
        name = match[1]
        return f"[{titles[name]}]({up}{name})" if name in titles and name != page.as_posix() else match[0]

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        re.sub(r"^```(\w+) (\w+)$", r'```\1 title="\2"', part, flags=re.MULTILINE)
        if part.startswith("```")
        else re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`", link, part)
        for part in parts
    )


if __name__ == "__main__":
    sys.exit(main())
