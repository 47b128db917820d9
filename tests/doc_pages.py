"""Pages that people follow: their blocks, and a page's whole session as one script."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.harness.ports import free_ports
from tests.harness.server_pair import ROOT

# Commands that meet a server which is still starting say so (exit code 75) and are repeated, as a person would.
PREAMBLE = """set -eu
trap 'kill $(jobs -p) 2>/dev/null || :; wait' EXIT
again() {
  for _ in $(seq 150); do "$@" && return 0; code=$?; [ $code = 75 ] || return $code; sleep 0.2; done
  return 75
}
"""


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """A page's blocks in these languages, in order: language and code."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [(language, code) for language, code in found if language in languages]


def session(page: Path) -> str:
    """All commands and Python of a page as one script; only the ports, which may be taken, are others."""
    ports, lines = tuple(map(str, free_ports())), [PREAMBLE]
    for language, code in blocks(page, "sh", "python"):
        lines += [f"python - <<'END'\n{code}END"] if language == "python" else map(_command, code.splitlines())
    script = "\n".join(lines).replace("init-pair pair", f"init-pair pair --ports {ports[0]} {ports[1]}")
    return script.replace("127.0.0.1:8440", f"127.0.0.1:{ports[0]}").replace("127.0.0.1:8441", f"127.0.0.1:{ports[1]}")


def _command(line: str) -> str:
    line = line.split("  #")[0].strip()
    if line.startswith("make "):
        return ""
    return f"again {line}" if line.startswith("fss-") and not line.endswith("&") else line


def follow(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Do what a page says, in an empty folder with the examples."""
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "FSS_RECEIPTS": str(folder)}
    words = ["bash", "-c", session(page)]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
