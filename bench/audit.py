"""python -m bench audit: known vulnerabilities of the pinned packages, by pip-audit. Needs the network.

Ends with 1 if there are any, and with 2 if not all packages could be looked up: silence is not a clean bill.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OPTIONS = [
    "--requirement",
    "constraints.txt",
    "--no-deps",
    "--disable-pip",
    "--format",
    "json",
    "--progress-spinner",
    "off",
]


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__)
        return 0
    run = subprocess.run([sys.executable, "-m", "pip_audit", *OPTIONS], cwd=ROOT, capture_output=True, text=True)
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = run.stderr.strip().splitlines()[-1:] or ["no output"]
        print(f"pip-audit did not finish: {last[0]}\nIs the network there? Nothing is known about the pinned packages.")
        return 2
    text, code = report(packages)
    print(text)
    return code


def report(packages: list[dict[str, Any]]) -> tuple[str, int]:
    """What was found, in words, and the exit code."""
    lines = [
        f"{p['name']} {p['version']}: {v['id']}, fixed in {', '.join(v['fix_versions']) or 'no version yet'}"
        for p in packages
        for v in p.get("vulns", [])
    ]
    unknown = [p["name"] for p in packages if "skip_reason" in p]
    if unknown:
        lines.append(
            f"{len(unknown)} of {len(packages)} packages could not be looked up ({', '.join(unknown[:5])}, ...): "
            "the index and its advisories cannot be reached from here. Run this where they can."
        )
    if not lines:
        lines.append(f"{len(packages)} packages, no known vulnerability")
    vulnerable = any(p.get("vulns") for p in packages)
    return "\n".join(lines), 1 if vulnerable else 2 if unknown else 0
