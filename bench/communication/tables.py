"""The tables of `python -m bench communication`, for the terminal and for docs/benchmarks.md."""

from dataclasses import dataclass

from bench.communication import onehot, pointwise
from bench.communication.findings import Found, Key
from bench.communication.model import Row
from bench.communication.traffic import OURS

APPROXIMATELY = "≈"
CROSSOVERS = ("crossover, kept alive", "crossover, new connections")


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[str]]

    def as_text(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        shown = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([self.title, *shown])

    def as_markdown(self) -> str:
        lines = [self.header, [":---", *["---:"] * (len(self.header) - 1)], *self.rows]
        return "\n".join([f"{self.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)])


def size(value: float, measured: bool = True) -> str:
    """Bytes in a form that can be read; what was extrapolated is marked."""
    unit, name = next((u, n) for u, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")) if value >= u or u == 1)
    return mark(f"{value / unit:.1f} {name}" if unit > 1 else f"{value:.0f} B", measured)


def mark(text: str, measured: bool) -> str:
    return text if measured else f"{APPROXIMATELY}{text}"


LINES: dict[Key, str] = {
    (OURS, True): "ours",
    (pointwise.NAME, True): "pointwise, kept alive",
    (pointwise.NAME, False): "pointwise, new connections",
    (onehot.NAME, True): "one-hot",
}


def summary(measured: Found) -> str:
    """The outcome in two sentences."""
    value = {result.key: result.value or 0.0 for result in measured.results()}
    return (
        f"With ours a party sends and receives {size(value['party_bytes_ours'])}, once, for all questions. Pointwise, "
        f"every question costs a party {size(value['query_bytes_kept'])} on a connection that is kept alive and "
        f"{size(value['query_bytes_fresh'])} on a new one: ours is cheaper from {value['crossover_kept']:.0f} or "
        f"{value['crossover_fresh']:.0f} questions on, by HTTP bodies alone from {value['crossover_bodies']:.0f}."
    )


def all_tables(measured: Found) -> list[Table]:
    return [_by_queries(measured), _by_kind(measured), _by_crowd(measured), _by_grid(measured), _parts(measured)]


def _by_queries(measured: Found) -> Table:
    plan = measured.plan
    columns = [measured.along_queries(line) for line in LINES]
    header = ["questions", *LINES.values(), "round trips: ours", "kept alive", "new connections"]
    rows = []
    for each in zip(*columns, strict=True):
        trips = [mark(f"{row.round_trips:.0f}", row.measured) for row in each[:3]]
        rows.append([str(each[0].queries), *(_party(row) for row in each), *trips])
    return Table(f"What one party sends and receives, n = {plan.n}, N = 2^{plan.bits}", header, rows)


def _party(row: Row) -> str:
    return size(row.party, row.measured)


def _by_kind(measured: Found) -> Table:
    """Measured runs only: wire, bodies and formula, by who talks to whom."""
    plan = measured.plan
    header = ["protocol", "parties: wire", "bodies", "formula", "between servers: wire", "bodies", "formula"]
    rows = []
    for line, label in LINES.items():
        wanted = (*line, plan.n, plan.bits, plan.crowd_queries)
        run = next(r for r in measured.runs if (r.protocol, r.keep_alive, r.n, r.bits, r.queries) == wanted)
        party = [run.party[0].bytes + run.party[1].bytes, run.bodies["party"], run.predicted["party"]]
        peer = [run.peer.bytes, run.bodies["peer"], run.predicted["peer"]]
        analyst = [run.analyst.bytes, run.bodies["analyst"]]
        rows.append([label, *(f"{count:,}" for count in (*party, *peer, *analyst))])
    title = f"Who talks to whom, in bytes, n = {plan.n}, N = 2^{plan.bits}, {plan.crowd_queries} questions"
    return Table(title, [*header, "analyst: wire", "bodies"], rows)


def _by_crowd(measured: Found) -> Table:
    plan = measured.plan
    header = ["parties", *LINES.values(), "ours: server 0 / 1", "kept alive: server 0 / 1", *CROSSOVERS]
    rows = []
    for each in zip(*(measured.along_crowds(line) for line in LINES), strict=True):
        n = each[0].n
        servers = [" / ".join(size(s, row.measured) for s in row.servers) for row in each[:2]]
        crossovers = [mark(str(measured.crossover_of_totals(n, alive)), each[0].measured) for alive in (True, False)]
        rows.append([f"{n:,}", *(size(row.total, row.measured) for row in each), *servers, *crossovers])
    title = f"All traffic, servers and analyst included, N = 2^{plan.bits}, {plan.crowd_queries} questions"
    return Table(title, header, rows)


def _by_grid(measured: Found) -> Table:
    header = ["positions", *LINES.values(), *CROSSOVERS]
    rows = []
    for each in zip(*(measured.along_grids(line) for line in LINES), strict=True):
        crossovers = [mark(str(measured.crossover(alive, each[0].bits)), each[0].measured) for alive in (True, False)]
        rows.append([f"2^{each[0].bits}", *(_party(row) for row in each), *crossovers])
    title = f"What one party sends and receives, {measured.plan.grid_queries} questions, by size of the grid"
    return Table(title, header, rows)


def _parts(measured: Found) -> Table:
    whole = sum(measured.parts.values())
    rows = [[name, f"{value:,.0f}", f"{value / whole:.0%}"] for name, value in measured.parts.items()]
    title = f"Where a party's bytes go with ours, N = 2^{measured.plan.bits}, both servers"
    return Table(title, ["part", "bytes", "share"], [*rows, ["together", f"{whole:,.0f}", "100%"]])
