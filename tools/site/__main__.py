"""python -m tools.site: build the site into site/, strictly: a broken link or a page without a place fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tools.site.kinds import DOCS, ROOT, nav, unplaced
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
    "markdown_extensions": ["tables", "fenced_code", "def_list", {"toc": {"permalink": True}}, "pymdownx.highlight"],
    "extra": {"generator": False, "polyfills": ["iframe-worker.js"]},
    "extra_css": ["print.css"],
    "validation": {
        "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
        "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn", "unrecognized_links": "warn"},
    },
}

PRINT = """@media print {
  .md-header, .md-tabs, .md-sidebar, .md-footer, .headerlink { display: none !important }
  pre, table, img { break-inside: avoid }
  pre code { white-space: pre-wrap }
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
    foreign = fetched_from_elsewhere(SITE)
    if foreign:
        print("the site would load from elsewhere:\n" + "\n".join(foreign))
        return 1
    print("read it: open site/index.html, or python -m http.server --bind 127.0.0.1 --directory site")
    return 0


def fetched_from_elsewhere(site: Path) -> list[str]:
    """What a browser would load over the network: scripts, styles, fonts, pictures; not links to click on."""
    there = r"""=["']?((?:https?:)?//[^"' >]+)"""
    loads = f"<(?:script|img|iframe)[^>]+src{there}|<link(?![^>]+canonical)[^>]+href{there}"
    found = []
    for path in site.rglob("*.html"):
        found += [f"{path.relative_to(site)}: {a or b}" for a, b in re.findall(loads, path.read_text())]
    for path in site.rglob("*.css"):
        found += [
            f"{path.relative_to(site)}: {url}"
            for url in re.findall(r"url\(\s*[\"']?(https?://[^)]+)", path.read_text())
        ]
    return found


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
    """`docs/x.md` as a link to it, outside of blocks of code."""
    up = "../" * (len(page.parts) - 1)

    def link(match: re.Match[str]) -> str:
        name = match[1]
        return f"[{match[0]}]({up}{name})" if (DOCS / name).is_file() and name != page.as_posix() else match[0]

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`", link, part) for part in parts
    )


if __name__ == "__main__":
    sys.exit(main())
