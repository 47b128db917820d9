"""python -m tests.vectors.make_noise: write noise.json from the oracle. Frozen: a change breaks running campaigns."""

import json
from pathlib import Path

from fss_ecdf.campaign.noise.paper_tree import ExactPaperTree, PaperTree
from fss_ecdf.campaign.noise.registry import mechanism
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from tests.oracle.noise import Oracle

CASES = [
    ("slice-tree", 1, 1.0, 1),
    ("slice-tree", 4, 0.5, 1),
    ("slice-tree", 10, 1.0, 3),
    ("slice-tree", 32, 1.0, 1),
    ("paper-tree", 5, 1.0, 1),
    ("paper-tree-exact", 16, 2.0, 2),
]


def positions(depth: int) -> list[int]:
    top = (1 << depth) - 1
    return sorted({0, 1, top // 3, top // 2, top // 2 + 1, max(top - 1, 0), top})


def case(name: str, depth: int, epsilon: float, instances: int) -> dict[str, object]:
    m = mechanism(name, depth, epsilon, instances)
    assert isinstance(m, SliceTree | PaperTree | ExactPaperTree)
    seed, covers = bytes(range(depth, depth + 32)), bytes(range(100, 228))
    noise = {server: Oracle(seed, server, covers, m) for server in (0, 1)}
    return {
        "mechanism": name,
        "depth": depth,
        "epsilon": epsilon,
        "instances": instances,
        "seed": seed.hex(),
        "covers": covers.hex(),
        "positions": positions(depth),
        "noise": [[noise[server].noise(t) for t in positions(depth)] for server in (0, 1)],
    }


def main() -> None:
    provenance = "Made by tests/oracle/noise.py (python -m tests.vectors.make_noise)."
    body = {"provenance": provenance, "cases": [case(*c) for c in CASES]}
    (Path(__file__).parent / "noise.json").write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
