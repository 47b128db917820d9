"""python -m bench scale: PostgreSQL beside SQLite, a Dask cluster beside the local pool, and sealing, on this machine.

Both databases flush every commit to the disk. What is compared runs in turn; a figure is the median of its ratios.
"""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import output
from bench.output import Result, print_table, write_json
from bench.scale import evaluation, ingest, sealing
from bench.system.uploading import new_campaign
from tests.harness.postgres import NoPostgres, Postgres


def main(argv: list[str]) -> int:
    parser = output.parser("scale", __doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="keys of the bulk measurement")
    parser.add_argument("--singles", type=int, default=20_000, help="uploads of one key")
    parser.add_argument("--many", type=int, default=0, help="fill one campaign to so many, e.g. 10000000")
    parser.add_argument("--evaluated", type=int, default=200_000, help="keys of the evaluation; 0 leaves it out")
    parser.add_argument(
        "--sealed", type=int, default=200_000, help="ids of the sealing, e.g. 10000000; 0 leaves it out"
    )
    parser.add_argument("--bits", type=int, default=15)
    parser.add_argument("--writers", type=int, default=2, help="processes that write to PostgreSQL")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)
    output.print_machine(args.seed)
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with Postgres(durable=True) as postgres:
                results = _ingest(args.repeats, args.keys, args.singles, args.writers, figures, folder, postgres)
                results.append(_many(args.many, postgres))
                sealed, sealings = sealing.results(args.sealed, args.seed, folder, postgres)
        except NoPostgres as error:
            print(error)
            results = []
            sealed, sealings = sealing.results(args.sealed, args.seed, folder, None)
        results += sealed
        results += _evaluation(args.repeats, args.evaluated, args.bits, args.seed, figures, folder)
    print_table(results)
    write_json(args.json, results, args.seed, figures=figures, sealings=sealings)
    return 0


def _ingest(
    repeats: int,
    keys: int,
    singles: int,
    writers: int,
    figures: dict[str, list[float]],
    folder: Path,
    postgres: Postgres,
) -> list[Result]:
    fresh = ingest.databases(folder, postgres)
    work: dict[str, Callable[[], float]] = {
        "sqlite_keys_per_s": lambda: ingest.bulk(fresh["sqlite"](), new_campaign(16), keys, 1),
        "pg_keys_per_s": lambda: ingest.bulk(fresh["postgres"](), new_campaign(16), keys, writers),
        "pg_one_writer_keys_per_s": lambda: ingest.bulk(fresh["postgres"](), new_campaign(16), keys, 1),
        "sqlite_singles_per_s": lambda: ingest.singles(fresh["sqlite"](), new_campaign(16), singles),
        "pg_singles_per_s": lambda: ingest.singles(fresh["postgres"](), new_campaign(16), singles),
    }
    for _ in range(repeats):
        for name, run in work.items():
            figures.setdefault(name, []).append(round(run(), 1))
    bulk = _ratio(figures, "pg_keys_per_s", "sqlite_keys_per_s")
    single = _ratio(figures, "pg_singles_per_s", "sqlite_singles_per_s")
    one = _ratio(figures, "pg_one_writer_keys_per_s", "sqlite_keys_per_s")
    return [
        Result.at_least("pg_ingest_vs_sqlite", bulk, 1.5, f"keys a second, {writers} processes against SQLite's one"),
        Result("pg_ingest_one_vs_sqlite", one, "the same by one process"),
        Result.at_least("pg_single_vs_sqlite", single, 1.0, "uploads of one key a second, one process each"),
        Result("pg_keys_per_s", statistics.median(figures["pg_keys_per_s"]), "keys a second, 1000 a commit"),
        Result("pg_singles_per_s", statistics.median(figures["pg_singles_per_s"]), "uploads of one key a second"),
    ]


def _many(many: int, postgres: Postgres) -> Result:
    value = None
    if many:
        first, last = ingest.fill(postgres.database(), new_campaign(16, max_uploads=many), many)
        value = last / first
    return Result("pg_ingest_10m_vs_100k", value, "keys a second of the last tenth of a campaign over the first tenth")


def _evaluation(
    repeats: int, keys: int, bits: int, seed: int, figures: dict[str, list[float]], folder: Path
) -> list[Result]:
    what = f"processor time of {keys} keys, 2^{bits}, by Dask over the local pool"
    if not keys:
        return [Result.at_most("dask_cpu_vs_pool", None, 1.15, what)]
    file = evaluation.key_file(folder, keys, bits, seed)
    with evaluation.cluster(folder, 2) as dask:
        chunk = min(49_152, -(-keys // 4))
        evaluation.by_dask(file, dask, chunk)  # workers read their modules
        for _ in range(repeats):
            pool, dasked = evaluation.by_pool(file, 2), evaluation.by_dask(file, dask, chunk)
            if pool[2] != dasked[2]:
                raise RuntimeError("the sums differ")
            for name, (cpu, seconds, _) in (("pool", pool), ("dask", dasked)):
                figures.setdefault(f"{name}_cpu_s", []).append(round(cpu, 3))
                figures.setdefault(f"{name}_s", []).append(round(seconds, 3))
    ratio = _ratio(figures, "dask_cpu_s", "pool_cpu_s")
    us = 1e6 * statistics.median(figures["pool_cpu_s"]) / keys
    return [
        Result.at_most("dask_cpu_vs_pool", ratio, 1.15, what + "; the sums are the same bytes"),
        Result("evaluation_us_per_key", us, f"processor time of one key at all 2^{bits} positions"),
    ]


def _ratio(figures: dict[str, list[float]], above: str, below: str) -> float:
    return statistics.median(a / b for a, b in zip(figures[above], figures[below], strict=True))
