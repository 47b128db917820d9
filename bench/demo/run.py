"""make demo: forty hospitals, two servers, one risk score. Everything is real but the patients.

The servers and every hospital are processes of their own, talking HTTPS; the commands are the ones you would type. At
the end the published answers stand beside the truth, which only this simulation knows.
"""

import argparse
import contextlib
import csv
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from analyst import Client, Release, plot, report
from bench.communication import formulas
from bench.demo import consoles, waves
from campaign.spec import Campaign
from fss.evaluate import cores
from harness.live import Pair

STRATA = ("no event", "event")
MARK = ".made-by-make-demo"

CAMPAIGN = f"""\
title = "Ten-year risk of heart disease"
question = "Which risk did the score give each of your patients, and did an event follow within ten years?"
epsilon = 1.0
reserve = 0.5
strata = ["{STRATA[0]}", "{STRATA[1]}"]
min_uploads = 1000

[grid]
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


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="where everything is written")
    parser.add_argument("--hospitals", type=int, default=40)
    parser.add_argument("--patients", type=int, help="in all hospitals together, at least 1000; default: 20 000")
    parser.add_argument("--waves", action="store_true", help="a year of weekly waiting times instead, week by week")
    parser.add_argument("--weeks", type=int, default=52, help="with --waves")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the servers up and print commands to try")
    args = parser.parse_args(argv)
    start, out = time.monotonic(), _empty(args.out)
    args.patients = args.patients or (waves.PATIENTS if args.waves else 20_000)
    if args.waves:
        return _year(args, out)
    patients = Patients.simulate(args.hospitals, args.patients, args.seed)
    pair = Pair(out)
    try:
        with step("two servers start, each with its own database, over HTTPS"), contextlib.ExitStack() as stack:
            stack.enter_context(pair)
            stack.pop_all()  # they are stopped below, or kept
        env = _create(out)
        _upload(out, patients, env)
        with step("the servers agree on the set of uploads and evaluate the whole curve"):
            program(["fss-server", "campaign", "seal", env["FSS_ID"]], env)
        with Client(env["FSS_CAMPAIGN"].split()[0], pair.servers[0].analyst, env["FSS_CA0"], on_grid=True) as client:
            release = client.release()
        _show(release, patients)
        _show_bytes(pair, release.campaign, patients)
        _write(out, release, patients)
        print(f"\n{time.monotonic() - start:.0f} s in all.", end=" ")
        if args.keep:
            _keep(pair, out, env)
            return 0
    finally:
        if not args.keep:
            pair.stop(0)
            pair.stop(1)
    print("The servers are stopped; nothing is left running.")
    return 0


def _year(args: argparse.Namespace, out: Path) -> int:
    start, year = time.monotonic(), waves.Year.simulate(args.weeks, args.patients, args.seed)
    with Pair(out) as pair:
        trend = waves.run(pair, out, year)
    waves.show(trend, year)
    plot.save(waves.drawn(trend, year), out / "year.png")
    print(f"\npicture: {out / 'year.png'}\n{time.monotonic() - start:.0f} s in all. The servers are stopped.")
    return 0


def _empty(out: Path) -> Path:
    """A fresh folder; only one that an earlier demo made is emptied."""
    if out.exists():
        if not (out / MARK).exists():
            raise SystemExit(f"{out} exists and was not made by the demo: name another folder with --out")
        shutil.rmtree(out)
    (out / "hospitals").mkdir(parents=True)
    (out / MARK).touch()
    return out.resolve()


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    print(f"{what} ...", end=" ", flush=True)
    start = time.monotonic()
    yield
    print(f"{time.monotonic() - start:.1f} s")


def program(command: list[str], env: dict[str, str]) -> str:
    """One of our programs, as installed beside the interpreter that runs this."""
    file = Path(sys.executable).with_name(command[0])
    done = subprocess.run([file, *command[1:]], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"\n{shlex.join(command)} failed:\n{done.stderr}")
    return done.stdout


def _create(out: Path) -> dict[str, str]:
    """The campaign at both servers; returns the environment in which parties and analysts run."""
    (out / "campaign.toml").write_text(CAMPAIGN)
    env = {**os.environ, "FSS_OPERATOR": str(out / "pair" / "operator.toml")}
    with step("an operator creates a campaign at both"):
        program(["fss-server", "campaign", "create", str(out / "campaign.toml")], env)
    for line in (out / "campaign.env").read_text().splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        env[name] = shlex.split(value)[0]
    return env


def _upload(out: Path, patients: Patients, env: dict[str, str]) -> None:
    """Every hospital runs the dealer on its own file."""

    def send(number: int) -> None:
        path = out / "hospitals" / f"{number:02}.csv"
        mine = patients.hospital == number
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["score", "outcome"])
            writer.writerows(zip(patients.score[mine].tolist(), patients.outcome[mine].tolist(), strict=True))
        command = ["fss-dealer", "upload", "--csv", str(path), "--column", "score", "--stratum-column", "outcome"]
        program([*command, "--yes", "--receipt", str(path.with_suffix(".receipt.json"))], env)

    with ThreadPoolExecutor(cores()) as pool:
        work = pool.map(send, range(patients.hospitals))
        list(
            tqdm(work, total=patients.hospitals, desc="hospitals upload, once each", unit=" hospitals", file=sys.stdout)
        )


def truth(campaign: Campaign, patients: Patients) -> Release:
    """What would be published without noise."""
    positions = campaign.place(patients.score, patients.outcome.tolist()).positions
    whole = np.cumsum(np.bincount(positions, minlength=1 << campaign.bits))
    return Release.of_whole(campaign, len(patients), whole, on_grid=True)


def _show(release: Release, patients: Patients) -> None:
    exact = truth(release.campaign, patients)
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


def _show_bytes(pair: Pair, campaign: Campaign, patients: Patients) -> None:
    """HTTP bodies: ours as the servers logged them, the pointwise scheme's by its formula (bench/formulas.py)."""
    requests = [event for role in (0, 1) for event in pair.events(role) if event["event"] == "request"]
    sent = sum(request["received"] for request in requests if request["route"].endswith("/uploads"))
    questions, each = len(STRATA) * campaign.grid.size, len(patients) / patients.hospitals
    pointwise = 2 * formulas.pointwise_party(questions)
    mine = sent / patients.hospitals
    print(f"\na hospital sent {mine / 1e3:.0f} kB, once, for about {each:.0f} patients, and went off line")
    print(f"asked pointwise for the same {questions} numbers it would be on line for {questions} rounds, and send")
    print(
        f"  {pointwise / 1e3:.0f} kB if it adds up its patients itself, {each * pointwise / 1e6:.0f} MB if each answers"
    )


def _write(out: Path, release: Release, patients: Patients) -> None:
    (out / "report.html").write_text(report.page(release, datetime.now(UTC)), encoding="utf-8")
    exact = truth(release.campaign, patients)
    plot.save(_beside_the_truth(release, exact), out / "truth.png")
    print(f"\nreport:   {out / 'report.html'} (open it in a browser)\npicture:  {out / 'truth.png'}")


def _beside_the_truth(release: Release, exact: Release) -> Figure:
    def draw(axes: Axes) -> None:
        for stratum, (colour, dashes) in zip(STRATA, plot.INKS, strict=False):
            curve, right = release.curve(stratum), exact.curve(stratum)
            lower, upper = curve.band(interval="noise")
            x = curve.thresholds
            axes.fill_between(x, lower, upper, color=colour, alpha=plot.BAND_ALPHA, linewidth=0)
            axes.plot(
                x, curve.fractions, color=colour, linestyle=dashes, label=f"published: {stratum} (95% band, noise)"
            )
            axes.plot(x, right.fractions, color="black", linewidth=0.8, label="truth" if stratum == STRATA[0] else None)
        axes.set_xlabel("risk score")
        axes.set_ylabel("fraction at or below")
        axes.legend(loc="lower right")
        axes.set_title(f"{release.n} patients: published curves and the truth")

    return plot.figure(draw, f"n = {release.n}, epsilon = {release.campaign.epsilon:g}, noise from both servers")


def _keep(pair: Pair, out: Path, env: dict[str, str]) -> None:
    more, places = consoles.start(pair, out, env)
    running = [process.pid for process in pair.processes if process is not None]
    processes = " ".join(map(str, [*running, *more]))
    folder = os.path.relpath(out)
    print(f"The servers are still up (processes {processes}). Try, in this folder:\n")
    print(f"  . {folder}/campaign.env; export FSS_ANALYST_TOKEN=$(cat {folder}/pair/server0/analyst.token)")
    for command in (
        "quantile --stratum event",
        "roc --plot roc.png",
        "ecdf --at 0.1,0.2,0.5",
        "calibration --groups 5",
    ):
        print(f"  .venv/bin/fss-analyst {command}")
    print("\n" + "\n".join(places))
    print(f"\nWhen you are done:  kill {processes}")
