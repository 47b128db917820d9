"""What `python -m bench communication` runs, and what follows from the runs: rows of sweeps, crossovers, results."""

from dataclasses import asdict, dataclass

from bench.communication import pointwise
from bench.communication.model import Model, Row, as_row, crossover
from bench.communication.traffic import OURS, Run
from bench.output import Result
from tests.harness.proxy import Count

Key = tuple[str, bool]  # protocol, and whether connections are kept alive
Runs = list[Run]


@dataclass(frozen=True)
class Plan:
    """What is run, and up to where it is extrapolated."""

    n: int
    bits: int
    kept: tuple[int, ...]  # numbers of questions, connections kept alive
    fresh: tuple[int, ...]  # the same, a connection for every message
    crowds: tuple[int, ...]
    crowd_queries: int
    grids: tuple[int, ...]
    grid_n: int
    grid_queries: int
    more_queries: tuple[int, ...] = (300, 1000, 3000, 10_000)
    more_crowds: tuple[int, ...] = (1000, 100_000, 1_000_000)
    more_grids: tuple[int, ...] = (24, 32)

    def studies(self) -> list[tuple[int, int, int, bool]]:
        """(n, bits, questions, connections kept alive), each once."""
        wanted = [(self.n, self.bits, q, True) for q in self.kept]
        wanted += [(self.n, self.bits, q, False) for q in self.fresh]
        wanted += [(n, self.bits, self.crowd_queries, alive) for n in self.crowds for alive in (True, False)]
        wanted += [(self.grid_n, bits, self.grid_queries, alive) for bits in self.grids for alive in (True, False)]
        return list(dict.fromkeys(wanted))


@dataclass(frozen=True)
class Found:
    """All runs, and what follows from them."""

    plan: Plan
    runs: Runs
    bare: Count
    parts: dict[str, float]
    models: dict[Key, Model]
    confirmed: dict[str, bool]

    def ours(self, queries: int, bits: int | None = None) -> float:
        return self.models[OURS, True].party(queries, bits)

    def crossover(self, keep_alive: bool, bits: int | None = None) -> int | None:
        """Questions from which on a party sends and receives less with our protocol."""
        return crossover(self.models[pointwise.NAME, keep_alive].party, lambda q: self.ours(q, bits))

    def crossover_of_bodies(self) -> int | None:
        theirs, ours = self.models[pointwise.NAME, True], self.models[OURS, True]
        return crossover(theirs.body, ours.body)

    def crossover_of_totals(self, n: int, keep_alive: bool) -> int | None:
        theirs, ours = self.models[pointwise.NAME, keep_alive], self.models[OURS, keep_alive]
        return crossover(lambda q: theirs.row(n, q).total, lambda q: ours.row(n, q).total)

    def row(self, line: Key, n: int, queries: int, bits: int) -> Row:
        """Measured where it was, extrapolated where it was not."""
        for run in self.runs:
            if (run.protocol, run.keep_alive, run.n, run.queries, run.bits) == (*line, n, queries, bits):
                return as_row(run)
        return self.models[line].row(n, queries, bits)

    def along_queries(self, line: Key) -> list[Row]:
        plan = self.plan
        return [self.row(line, plan.n, q, plan.bits) for q in (*plan.kept, *plan.more_queries)]

    def along_crowds(self, line: Key) -> list[Row]:
        plan = self.plan
        return [self.row(line, n, plan.crowd_queries, plan.bits) for n in (*plan.crowds, *plan.more_crowds)]

    def along_grids(self, line: Key) -> list[Row]:
        plan = self.plan
        return [self.row(line, plan.grid_n, plan.grid_queries, b) for b in (*plan.grids, *plan.more_grids)]

    def results(self) -> list[Result]:
        off = sum(abs(r.bodies[kind] - p) for r in self.runs for kind, p in r.predicted.items())
        model = max(model.worst() for model in self.models.values())
        each = [m.party(2) - m.party(1) for m in (self.models[pointwise.NAME, alive] for alive in (True, False))]
        confirmed = sum(self.confirmed.values()) / len(self.confirmed)
        once = f"a party, once and for all, N = 2^{self.plan.bits}, both servers, proofs included"
        fresh = "the same, a new connection every time"
        at_both = "share of runs just below and just at the crossovers that came out on the side they should"
        counted = f"bytes by which bodies counted by the servers differ from the formulas, {len(self.runs)} runs"
        distance = "largest relative distance of the extrapolation from a measured total"
        return [
            Result.at_most("party_bytes_ours", self.ours(1), 6800, once),
            Result("query_bytes_kept", each[0], "pointwise, per party and question, connections kept alive"),
            Result("query_bytes_fresh", each[1], fresh),
            Result(
                "crossover_kept", self.crossover(True), "questions from which on ours costs a party less, kept alive"
            ),
            Result("crossover_fresh", self.crossover(False), fresh),
            Result("crossover_bodies", self.crossover_of_bodies(), "the same by HTTP bodies alone"),
            Result.at_least("crossovers_confirmed", confirmed, 1, at_both),
            Result.at_most("formula_off_bytes", off, 0, counted),
            Result.at_most("model_off", model, 0.02, distance),
        ]

    def as_json(self) -> dict[str, object]:
        rows = {
            name: [asdict(row) for line in self.models for row in along(line)]
            for name, along in (
                ("queries", self.along_queries),
                ("crowds", self.along_crowds),
                ("grids", self.along_grids),
            )
        }
        runs = [
            {**asdict(as_row(r)), "bodies": r.bodies, "predicted": r.predicted, "requests": r.requests}
            for r in self.runs
        ]
        return {"sweeps": rows, "crossovers": self._crossovers(), "runs": runs, "parts": self.parts}

    def _crossovers(self) -> dict[str, object]:
        """By what a party sends and receives, for every grid; by all traffic, for every number of parties."""
        plan, modes = self.plan, {"kept_alive": True, "new_connections": False}
        grids, crowds = (*plan.grids, *plan.more_grids), (*plan.crowds, *plan.more_crowds)
        return {
            "party_by_bits": {b: {mode: self.crossover(alive, b) for mode, alive in modes.items()} for b in grids},
            "total_by_parties": {
                n: {mode: self.crossover_of_totals(n, alive) for mode, alive in modes.items()} for n in crowds
            },
            "confirmed": self.confirmed,
        }
