"""The repository's habits are the same wherever they are written: make, pre-commit, the workflow, versions."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import release, update

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())


def recipe(target: str) -> list[str]:
    """A target's commands."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found, target
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in found[1].splitlines()]


def targets(text: str) -> set[str]:
    return set(re.findall(r"\bmake ([a-z][a-z-]*)", text))


def workflow_targets() -> set[str]:
    return set().union(*(targets(step.get("run", "")) for job in WORKFLOW["jobs"].values() for step in job["steps"]))


def test_pre_commit_checks_what_make_lint_checks() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == recipe("lint")
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in hooks)


def test_the_workflow_runs_what_ci_runs_on_every_python_we_name() -> None:
    python = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python ::" in line]
    assert python == named
    assert PROJECT["requires-python"] == f">={python[0]}"
    assert targets((ROOT / ".ci" / "run").read_text()) <= workflow_targets()


def test_every_target_that_is_named_exists() -> None:
    named = workflow_targets() | targets((ROOT / ".ci" / "run").read_text())
    for page in ("CONTRIBUTING.md", ".github/SECURITY.md", ".github/pull_request_template.md"):
        named |= targets((ROOT / page).read_text())
    assert {"test", "slow", "release", "update"} <= named
    for target in named:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_the_version_is_written_once_and_repeated_right() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == PROJECT["version"] == release.version(ROOT)
    assert cited["references"][0]["version"] == PROJECT["version"]
    assert cited["license"] == PROJECT["license"]


def test_a_release_takes_its_own_section_of_the_changelog() -> None:
    log = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0\n\n- second\n\n## 0.1.0 (a day)\n\n- first\n"
    assert release.notes(log, "0.2.0") == "## 0.2.0\n\n- second\n"
    assert release.notes(log, "0.1.0") == "## 0.1.0\n\n- first\n"
    assert release.notes(log, "0.3.0") == "## 0.3.0\n\n- new\n"
    with pytest.raises(SystemExit, match=r"no section"):
        release.notes("# Changelog\n\n## Unreleased\n", "0.3.0")
    assert release.notes((ROOT / "CHANGELOG.md").read_text(), PROJECT["version"])


def test_pins_are_sorted_whole_and_compared() -> None:
    frozen = "b==2\nA==1\n# a comment\n-e git+x\nc @ file:///x\n"
    assert update.pins(frozen) == ["A==1", "b==2"]
    assert update.changes(["A==1", "x==1"], ["A==2", "b==2"]) == [
        "x 1 is not needed any more",
        "b 2 is new",
        "A 1 -> 2",
    ]
    kept = (ROOT / "constraints.txt").read_text().splitlines()
    assert update.pins("\n".join(kept)) == kept


def test_no_file_is_longer_than_400_lines() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.endswith((".py", ".js", ".c", ".h", ".css", ".html")):
            assert len((ROOT / name).read_text().splitlines()) <= 400, name


def test_people_are_told_where_to_go() -> None:
    for name in (
        ".github/SECURITY.md",
        ".github/CODE_OF_CONDUCT.md",
        "CITATION.cff",
        ".github/pull_request_template.md",
    ):
        assert (ROOT / name).stat().st_size > 200, name
    for template in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        head = yaml.safe_load(template.read_text().split("---")[1])
        assert set(head) == {"name", "about"}, template
