"""Which page is of which kind. A page that stands nowhere breaks the build; one that does not exist is left out."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Reference pages of these names are made of the code when the site is built.
MADE = {
    "reference/cli.md": "Command lines",
    "reference/rest.md": "REST",
    "reference/campaign-fields.md": "Fields of a campaign",
    "reference/problems.md": "Problems",
    "reference/statistics.md": "Statistics",
    "reference/python.md": "Python",
    "reference/files.md": "Every file",
}

KINDS: dict[str, dict[str, str]] = {
    "Tutorial": {"tutorial.md": "One study, from idea to report"},
    "How to": {
        "how-to/plan.md": "Choose epsilon, grid and size",
        "how-to/two-organisations.md": "Run one server in each of two organisations",
        "how-to/sites.md": "Admit hospitals as sites",
        "how-to/data-manager.md": "Prepare and upload a hospital's file",
        "how-to/check-page.md": "Check a party's page",
        "how-to/analyse.md": "Query a sealed campaign",
        "how-to/python.md": "Upload and query from Python",
        "how-to/audit.md": "Audit a server",
        "how-to/backup.md": "Back up and restore",
        "operations.md": "Run two servers",
        "scale.md": "Past one machine",
    },
    "Reference": {
        **MADE,
        "campaigns.md": "Campaigns",
        "protocol.md": "Protocol",
        "specification.md": "Specification",
        "compatibility.md": "Compatibility",
        "data-model.md": "Data model",
    },
    "Explanation": {
        "privacy.md": "Privacy",
        "security.md": "Security",
        "statistics.md": "Statistics",
        "paper.md": "The papers, and where we depart",
        "browser.md": "Pages in the browser",
        "reliability.md": "Reliability",
        "performance.md": "Performance",
        "benchmarks.md": "Benchmarks",
        "architecture.md": "Architecture",
    },
    "Gallery": {"gallery.md": "Gallery"},
    "Glossary": {"glossary.md": "Glossary"},
}


def placed() -> dict[str, str]:
    """Every page that has a place, with its title."""
    return {page: title for pages in KINDS.values() for page, title in pages.items()}


def unplaced() -> list[str]:
    """Pages that nobody would find."""
    found = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    return sorted(set(found) - set(placed()) - {"index.md"})


def nav() -> list[dict[str, object]]:
    """What MkDocs calls nav."""
    tree: list[dict[str, object]] = [{"Start": "index.md"}]
    for kind, pages in KINDS.items():
        there = {page: title for page, title in pages.items() if page in MADE or (DOCS / page).is_file()}
        tree.append({kind: [{title: page} for page, title in there.items()]})
    return tree
