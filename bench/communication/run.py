"""python -m bench communication: bytes on the wire of our protocol, a pointwise and a one-hot one.

All three run for real at small sizes, over TLS, through proxies that count; larger sizes are extrapolated from that
and marked so.
"""

import tempfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench import output
from bench.communication import plots
from bench.communication.findings import Found, Key, Plan, Runs
from bench.communication.model import Model, parts
from bench.communication.protocols import (
    Study,
    bare_connections,
    both_pairs,
    run_onehot,
    run_ours,
    run_pointwise,
    study_campaign,
)
from bench.communication.tables import APPROXIMATELY, Table, all_tables, summary
from bench.communication.traffic import OURS, Counted, Run
from bench.docs import write_between
from bench.output import print_table, write_json
from tests.harness.proxy import Count
from tests.harness.server_pair import ROOT

START, END = "<!-- communication: made by python -m bench communication --docs -->", "<!-- end of communication -->"
BARE = 20


FULL = Plan(30, 16, (1, 3, 10, 30, 100), (1, 3, 10, 30), (10, 20, 40), 10, (8, 12, 16, 20), 4, 50)
QUICK = Plan(6, 16, (1, 10, 30), (1, 3, 10), (3, 6, 12), 10, (8, 12, 16), 2, 30)


def main(argv: list[str]) -> int:
    parser = output.parser("communication", __doc__)
    parser.add_argument("--quick", action="store_true", help="fewer parties and questions: about a minute")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also draw plots there")
    parser.add_argument("--docs", action="store_true", help="also write tables and plots into docs/")
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    with tempfile.TemporaryDirectory() as folder, both_pairs(Path(folder)) as pairs:
        measured = measure(QUICK if args.quick else FULL, *pairs, args.seed)
    tables = all_tables(measured)
    print("\n\n".join(table.as_text() for table in tables) + "\n")
    print_table(measured.results())
    write_json(args.json, measured.results(), args.seed, **measured.as_json())
    if args.out is not None:
        plots.draw(measured, args.out)
    if args.docs:
        write_page(measured, tables, args.seed)
    return 0


def write_page(measured: Found, tables: list[Table], seed: int) -> None:
    """Tables and plots of this run, between the markers of docs/benchmarks.md."""
    about, docs = output.about(seed), ROOT / "docs"
    pictures = plots.draw(measured, docs / "images")
    command = f"`{about['command']}`, commit {about['commit']}, seed {seed}, {about['cpu']}, {about['cores']} cores."
    marks = f"{APPROXIMATELY} marks what was extrapolated from the measured costs of connections and messages."
    shown = [f"![{caption}](images/{path.name})" for path, caption in pictures]
    body = [summary(measured), *shown, *(table.as_markdown() for table in tables), f"Made by {command} {marks}"]
    write_between(docs / "benchmarks.md", START, END, "\n\n".join(body))


def measure(plan: Plan, ours: Counted, baseline: Counted, seed: int) -> Found:
    """Run everything; all protocols must give the same answers."""
    rng, studies = np.random.default_rng(seed), plan.studies()
    bare = bare_connections(ours, BARE)
    runs: Runs = []
    work = sum(n * (2 + queries) for n, _, queries, _ in studies)
    with tqdm(total=work, unit=" messages", desc="counting", mininterval=0.5) as bar:
        for n, bits, queries, alive in studies:
            campaign = study_campaign(bits, rng.bytes(32))
            values, asked = rng.integers(0, 1 << bits, n).tolist(), _different(rng, 1 << bits, queries)
            runs += run_all(ours, baseline, Study(campaign, values, asked, rng.bytes, alive, bar.update))
    main = next(r for r in runs if (r.protocol, r.n, r.bits) == (OURS, plan.n, plan.bits))
    shares = parts(main, bare, study_campaign(plan.bits, bytes(32)))
    measured = Found(plan, runs, bare, shares, _models(plan, runs, bare), {})
    return replace(measured, confirmed=_confirm(measured, baseline, rng))


def _different(rng: np.random.Generator, positions: int, queries: int) -> list[int]:
    return rng.choice(positions, queries, replace=False).tolist()  # type: ignore[no-any-return]


def run_all(ours: Counted, baseline: Counted, study: Study) -> Runs:
    """The three protocols on the same study, with the same noise."""
    first = run_ours(ours, study)
    noise = [ours.pair.noise_secrets(role, study.campaign) for role in (0, 1)]
    others = [run(baseline, study, noise) for run in (run_pointwise, run_onehot)]
    for other in others:
        assert other.answers == first.answers, f"{other.protocol} answers otherwise than ours"
    return [first, *others]


def _models(plan: Plan, runs: Runs, bare: Count) -> dict[Key, Model]:
    def key(run: Run) -> Key:
        return run.protocol, run.keep_alive

    handshake = bare.bytes / bare.connections
    return {k: Model(list(group), plan.bits, handshake) for k, group in groupby(sorted(runs, key=key), key)}


def _confirm(measured: Found, baseline: Counted, rng: np.random.Generator) -> dict[str, bool]:
    """Run the pointwise protocol just below and just at each crossover: is it on the side it should be?"""
    plan, confirmed = measured.plan, {}
    noise = [(rng.bytes(32), rng.bytes(32)) for _ in (0, 1)]
    values = rng.integers(0, 1 << plan.bits, plan.grid_n).tolist()
    for alive in (True, False):
        at = measured.crossover(alive)
        assert at is not None
        for queries in (at - 1, at):
            campaign, asked = study_campaign(plan.bits, rng.bytes(32)), _different(rng, 1 << plan.bits, queries)
            run = run_pointwise(baseline, Study(campaign, values, asked, rng.bytes, alive), noise)
            name = f"{queries} questions, {'kept alive' if alive else 'new connections'}"
            confirmed[name] = (run.per_party > measured.ours(queries)) == (queries >= at)
    return confirmed
