"""The studies that the gallery's pictures are about, made as people make them: by the command line, at two servers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.harness.server_pair import ROOT, LivePair
from tools.gallery.pictures import ALONE, OPEN, RISK, SITES, SURVIVAL, WAVES

SEND = "fss-dealer upload --file {csv} --column {column} --stratum-column {strata} --yes --receipt {csv}.{study}.json"
HOSPITALS = {"North": 700, "South": 260, "Lakeside": 430, "Hill": 90}
QUOTA = 800
WAITED, IN_A_WAVE = (70, 74, 78, 80, 128, 122, 88, 82), 2000  # mean days of each wave


class Studies:
    """All of them in one folder; each is made when it is first asked for."""

    def __init__(self, pair: LivePair, folder: Path) -> None:
        self.pair, self.folder = pair, folder
        shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
        self._made: set[str] = {ALONE}

    def run(self, study: str, command: str) -> str:
        """A command in a study's environment; returns what it printed."""
        self.need(study)
        known = f". ./{study}.env\n" if study != ALONE else ""
        return self._bash(known + command)

    def environment(self) -> dict[str, str]:
        """What an operator and an analyst have; a study's own variables are in its file."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        mine = {"FSS_OPERATOR_CONFIG": str(self.pair.folder / "operator.toml"), "FSS_RECEIPTS": str(self.folder)}
        token = self.pair.servers[0].analyst
        return {**os.environ, **mine, "FSS_ANALYST_TOKEN": token, "PATH": path, "PYTHONPATH": str(ROOT)}

    def variables(self, study: str) -> dict[str, str]:
        lines = self.run(study, "env").splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith("FSS_"))

    def need(self, study: str) -> None:
        if study in self._made:
            return
        self._made.add(study)
        {RISK: self._risk, SURVIVAL: self._survival, SITES: self._sites, OPEN: self._open, WAVES: self._waves}[study]()

    def _bash(self, script: str) -> str:
        words = ["bash", "-c", f"set -e\n{script}"]
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{script}\nfailed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _create(self, study: str, text: str) -> None:
        (self.folder / f"{study}.toml").write_text(text)
        self._bash(f"fss-server campaign create {study}.toml")

    def _example(self, name: str) -> str:
        return (self.folder / "docs" / "examples" / f"{name}.toml").read_text()

    def _risk(self) -> None:
        self._create(RISK, self._example("risk-score"))
        about = {"csv": "docs/examples/risk-scores.csv", "column": "score", "strata": "outcome", "study": RISK}
        self.run(RISK, f"{SEND.format(**about)}\nfss-server campaign seal $FSS_CAMPAIGN_ID")

    def _survival(self) -> None:
        self._create(SURVIVAL, self._example("survival"))
        head = (self.folder / "docs" / "examples" / "survival.csv").read_text().split("\n", 1)[0].strip().split(",")
        about = {"csv": "docs/examples/survival.csv", "column": head[0], "strata": head[1], "study": SURVIVAL}
        self.run(SURVIVAL, f"{SEND.format(**about)}\nfss-server campaign seal $FSS_CAMPAIGN_ID")

    def _waves(self) -> None:
        """Waiting times that grow a little, and much for two waves; each wave is closed by hand."""
        pooled = '[[waves.pooled]]\nthrough = "end"\nepsilon = 0.25\n\n[[variables]]'
        waves = f'[waves]\nevery = "manual"\ncount = {len(WAITED)}\n\n{pooled}'
        plain = self._example("waiting-time").replace('strata = ["public", "private"]\n', "")
        self._create(WAVES, plain.replace("[[variables]]", waves))
        rng = np.random.default_rng(1)
        for number, mean in enumerate(WAITED, 1):
            days = np.minimum(rng.gamma(4, mean / 4, IN_A_WAVE), 365).round().astype(int)
            (self.folder / f"wave-{number}.csv").write_text("\n".join(["days", *map(str, days)]) + "\n")
            send = f"fss-dealer upload --file wave-{number}.csv --column days --yes --receipt wave-{number}.json"
            self.run(WAVES, f"{send}\nfss-server campaign seal $FSS_CAMPAIGN_ID")

    def _open(self) -> None:
        self._create(OPEN, self._example("risk-score"))

    def _sites(self) -> None:
        """Hospitals that have sent some of what they may."""
        self._create(
            SITES, self._example("risk-score").replace("min_uploads = 100", 'min_uploads = 1000\nadmission = "sites"')
        )
        labels = " ".join(HOSPITALS)
        self.run(SITES, f"fss-server campaign sites add $FSS_CAMPAIGN_ID {labels} --quota {QUOTA} --out invitations")
        rows = (self.folder / "docs" / "examples" / "risk-scores.csv").read_text().splitlines(keepends=True)
        for label, count in HOSPITALS.items():
            (self.folder / f"{label}.csv").write_text("".join([rows[0], *rows[1 : count + 1]]))
            about = {"csv": f"{label}.csv", "column": "score", "strata": "outcome", "study": SITES}
            found = f"grep -o 'fss-site-[A-Za-z0-9_-]*' invitations/{label.lower()}-*.md | head -1"
            self.run(SITES, f"export FSS_UPLOAD_TOKEN=$({found})\n{SEND.format(**about)}")
        self.run(SITES, "fss-server campaign sites pause $FSS_CAMPAIGN_ID Hill")
