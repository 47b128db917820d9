"""Forty hospitals, two servers, one risk score. Everything is real but the patients.

The servers and every hospital are processes of their own that talk HTTPS; the commands are the ones you would type. At
the end the released statistics stand beside the truth, which only this simulation knows.
"""

import argparse
import csv
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from analyst import Client, Release
from analyst.plots import curves
from analyst.present import report
from fss.evaluate import cores
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.cli.common import OK, UsageError
from fss_ecdf.demo import consoles, pointwise, programs, waves
from fss_ecdf.demo.programs import Servers, step

STRATA = ("no event", "event")
PATIENTS = 20_000
COMMANDS = ("quantile --stratum event", "roc --plot roc.png", "ecdf --at 0.1,0.2,0.5", "calibration --groups 5")
MARK = ".made-by-the-demo"

CAMPAIGN = f"""\
title = "Ten-year risk of heart disease"
question = "Which risk did the score give each of your patients, and did an event follow within ten years?"
epsilon = 1.0
reserve = 0.5
strata = ["{STRATA[0]}", "{STRATA[1]}"]
min_uploads = 1000

[[variables]]
name = "predicted risk"

[variables.grid]
kind = "linear"
from = 0.0
to = 1.0
step = 0.001
"""


@dataclass(frozen=True)
class Patients:
    """What no server and no analyst ever sees."""

    hospital: NDArray[np.int64]
    score: NDArray[np.float64]
    event: NDArray[np.bool_]

    @staticmethod
    def simulate(hospitals: int, patients: int, seed: int) -> "Patients":
        rng = np.random.default_rng(seed)
        hospital = rng.integers(0, hospitals, patients)
        logit = -1.9 + rng.normal(0, 0.25, hospitals)[hospital] + rng.normal(0, 1.2, patients)
        score = np.round(1 / (1 + np.exp(-logit)), 3)
        return Patients(hospital, score, rng.random(patients) < score)

    @property
    def hospitals(self) -> int:
        return int(self.hospital.max()) + 1

    def __len__(self) -> int:
        return self.score.size

    @property
    def outcome(self) -> NDArray[np.str_]:
        return np.where(self.event, STRATA[1], STRATA[0])


def run(args: argparse.Namespace) -> int:
    """What `fss-ecdf demo` does."""
    start, out = time.monotonic(), _empty(args.out)
    with Servers(out) as servers:
        env = _year(servers, out, args) if args.waves else _campaign(servers, out, args)
        print(f"\n{time.monotonic() - start:.0f} s in all.", end=" ")
        if args.keep:
            _keep(servers, out, env, waves.COMMANDS if args.waves else COMMANDS)
            servers.keep = True
            return OK
    print("The servers are stopped; nothing is left running.")
    return OK


def _campaign(servers: Servers, out: Path, args: argparse.Namespace) -> dict[str, str]:
    """One campaign, from its creation to the report; returns the environment in which analysts run."""
    patients = Patients.simulate(args.hospitals, args.patients or PATIENTS, args.seed)
    (out / "campaign.toml").write_text(CAMPAIGN)
    with step("an operator creates a campaign at both"):
        env = servers.create(out / "campaign.toml")
    _upload(out, patients, env)
    with step("the servers agree on the set of uploads and evaluate the whole curve"):
        programs.run(["fss-server", "campaign", "seal", env["FSS_CAMPAIGN_ID"]], env)
    with Client(env["FSS_CAMPAIGN_URLS"].split()[0], servers.analyst_token, env["FSS_CA0"], on_grid=True) as client:
        release = client.release()
    exact = truth(release.campaign, patients)
    _show(release, exact)
    _show_bytes(servers.uploaded_bytes(), release.campaign, patients)
    _write(out, release, exact)
    return env


def _year(servers: Servers, out: Path, args: argparse.Namespace) -> dict[str, str]:
    """A campaign of waves, to a picture of its trend; returns the environment in which analysts run."""
    year = waves.Year.simulate(args.weeks, args.patients or waves.PATIENTS, args.seed)
    (out / "campaign.toml").write_text(waves.campaign(year))
    with step("an operator creates a campaign of waves at both servers"):
        env = servers.create(out / "campaign.toml")
    trend = waves.run(servers, out, year, env)
    waves.show(trend, year)
    curves.save(waves.drawn(trend, year), out / "year.png")
    print(f"\npicture: {out / 'year.png'}")
    return env


def _empty(out: Path) -> Path:
    """A fresh folder; only one that an earlier demo made is emptied."""
    if out.exists():
        if not (out / MARK).exists():
            raise UsageError(f"{out} exists and was not made by the demo: name another folder with --out")
        shutil.rmtree(out)
    (out / "hospitals").mkdir(parents=True)
    (out / MARK).touch()
    return out.resolve()


def _upload(out: Path, patients: Patients, env: dict[str, str]) -> None:
    """Every hospital runs the dealer on its own file."""

    def send(number: int) -> None:
        path = out / "hospitals" / f"{number:02}.csv"
        mine = patients.hospital == number
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["score", "outcome"])
            writer.writerows(zip(patients.score[mine].tolist(), patients.outcome[mine].tolist(), strict=True))
        command = ["fss-dealer", "upload", "--file", str(path), "--column", "score", "--stratum-column", "outcome"]
        programs.run([*command, "--yes", "--receipt", str(path.with_suffix(".receipt.json"))], env)

    with ThreadPoolExecutor(cores()) as pool:
        work = pool.map(send, range(patients.hospitals))
        list(
            tqdm(work, total=patients.hospitals, desc="hospitals upload, once each", unit=" hospitals", file=sys.stdout)
        )


def truth(campaign: Campaign, patients: Patients) -> Release:
    """What would be published without noise."""
    positions = campaign.to_positions(patients.score, patients.outcome.tolist()).positions
    whole = np.cumsum(np.bincount(positions, minlength=1 << campaign.bits))
    return Release.from_curve(campaign, len(patients), whole, on_grid=True)


def _show(release: Release, exact: Release) -> None:
    print(f"\nepsilon = {release.campaign.epsilon:g}, n = {release.n}; the truth is known to this simulation only\n")
    print(f"{'':36}{'published':>10} {'95 % noise interval':>20} {'truth':>10}")
    for stratum in STRATA:
        levels = (0.25, 0.5, 0.75, 0.95)
        quantiles, right = release.quantile(levels, stratum), exact.quantile(levels, stratum).thresholds
        for i, level in enumerate(levels):
            low, high = (ends[i] for ends in quantiles.ranges["noise"])
            span = f"{low:.3f} to {high:.3f}"
            _line(f"risk, {stratum}: {level:.0%} quantile", f"{quantiles.thresholds[i]:.3f}", span, f"{right[i]:.3f}")
    points, right_points = release.curve(STRATA[1]).at([0.1, 0.3]), exact.curve(STRATA[1]).at([0.1, 0.3])
    for i, at in enumerate(points.thresholds):
        half = 1.96 * points.fraction_errors[i]
        span = f"{points.fractions[i] - half:.3f} to {points.fractions[i] + half:.3f}"
        name = f"events with a risk of at most {at:g}"
        _line(name, f"{points.fractions[i]:.3f}", span, f"{right_points.fractions[i]:.3f}")
    roc, calibrated, right_made = release.roc(), release.calibration(), exact.calibration()
    low, high = roc.auc_interval(interval="noise")
    _line("area under the ROC curve", f"{roc.auc:.4f}", f"{low:.4f} to {high:.4f}", f"{exact.roc().auc:.4f}")
    ratio = right_made.observed_over_expected
    _line("observed over expected events", f"{calibrated.observed_over_expected:.3f}", "", f"{ratio:.3f}")
    _line("Hosmer-Lemeshow finds a slope of 0.6", f"{calibrated.power:.0%}", "", "")
    if calibrated.informative:
        low, high = calibrated.corrected_interval()
        span = f"{low:.1f} to {high:.1f}"
        _line("Hosmer-Lemeshow H, noise taken off", f"{calibrated.corrected:.1f}", span, f"{right_made.statistic:.1f}")
        _line("  p, noise included", f"{calibrated.p_value:.3f}", "", f"{right_made.chi_square_p:.3f}")


def _line(name: str, value: str, span: str, right: str) -> None:
    print(f"{name:<36}{value:>10} {span:>20} {right:>10}")


def _show_bytes(sent: int, campaign: Campaign, patients: Patients) -> None:
    """HTTP bodies: ours as the servers logged them, those of the pointwise scheme by its formula."""
    thresholds, each = len(STRATA) * campaign.variable.grid.size, len(patients) / patients.hospitals
    alone = 2 * pointwise.party_bytes(thresholds)
    print(f"\na hospital sent {sent / patients.hospitals / 1e3:.0f} kB, once, for about {each:.0f} patients, and left")
    print(f"asked for the same {thresholds} numbers one by one, it would stay online for {thresholds} rounds, and send")
    print(f"  {alone / 1e3:.0f} kB if it adds up its patients itself, {each * alone / 1e6:.0f} MB if each answers")


def _write(out: Path, release: Release, exact: Release) -> None:
    (out / "report.html").write_text(report.page(release, datetime.now(UTC)), encoding="utf-8")
    curves.save(_beside_the_truth(release, exact), out / "truth.png")
    print(f"\nreport:   {out / 'report.html'} (open it in a browser)\npicture:  {out / 'truth.png'}")


def _beside_the_truth(release: Release, exact: Release) -> Figure:
    def draw(axes: Axes) -> None:
        for stratum, (colour, dashes) in zip(STRATA, curves.INKS, strict=False):
            curve, right = release.curve(stratum), exact.curve(stratum)
            lower, upper = curve.band(interval="noise")
            x = curve.thresholds
            axes.fill_between(x, lower, upper, color=colour, alpha=curves.BAND_ALPHA, linewidth=0)
            axes.plot(
                x, curve.fractions, color=colour, linestyle=dashes, label=f"published: {stratum} (95% band, noise)"
            )
            axes.plot(x, right.fractions, color="black", linewidth=0.8, label="truth" if stratum == STRATA[0] else None)
        axes.set_xlabel("risk score")
        axes.set_ylabel("fraction at or below")
        axes.legend(loc="lower right")
        axes.set_title(f"{release.n} patients: published curves and the truth")

    return curves.figure(draw, f"n = {release.n}, epsilon = {release.campaign.epsilon:g}, noise from both servers")


def _keep(servers: Servers, out: Path, env: dict[str, str], commands: Sequence[str]) -> None:
    more, places = consoles.start(servers, out, {**env, "FSS_ANALYST_TOKEN": servers.analyst_token})
    processes = " ".join(map(str, [*(process.pid for process in servers.processes), *more]))
    folder, analyst = os.path.relpath(out), os.path.relpath(programs.installed("fss-analyst"))
    print(f"The servers are still running (processes {processes}). Try, in this folder:\n")
    print(f"  . {folder}/campaign.env; export FSS_ANALYST_TOKEN=$(cat {folder}/pair/server0/analyst.token)")
    for command in commands:
        print(f"  {analyst} {command}")
    print("\n" + "\n".join(places))
    print(f"\nTo stop them:  kill {processes}")
