"""A share without noise is touched in one file only: every other module of the servers is read for it."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

from servers.compute.raw_share import RawShare

ROOT = Path(__file__).parents[2]
ROOM = "servers/release/add_noise.py"
# Where sums of keys are made; what leaves that room is wrapped up.
MAKERS = {
    f"servers/compute/{name}.py" for name in ("worker", "shares", "executor", "sums", "table_sums", "chunks", "cluster")
}
SUMS = {
    "sum_over_domain",
    "sum_at_points",
    "at_point",
    "at_points",
    "over_domain",
    "prefix_sum",
    "slice_sum",
    "chunk_sum",
    "sum_and_messages",
    "add_counts",
}
WRAPPED = {"open_for_noise", "_words"}
NOISE = {"NoiseTree", "DiscreteLaplace", "FineLaplace", "WideLaplace"}


def names(source: str) -> set[str]:
    """Every name, attribute and imported name of a module, and strings that could stand for one."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            used |= {alias.name for alias in node.names} | {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
    return used


def touches(path: str, source: str) -> set[str]:
    """What a module does that only some may."""
    wrong = set()
    if path not in (ROOM, "servers/compute/raw_share.py"):
        wrong |= names(source) & WRAPPED
    if path not in MAKERS:
        wrong |= names(source) & SUMS
    if not path.startswith("servers/release/"):
        wrong |= names(source) & NOISE
    return wrong


def test_only_one_file_opens_shares() -> None:
    modules = [str(path.relative_to(ROOT)) for path in (ROOT / "servers").rglob("*.py")]
    assert ROOM in modules
    assert set(modules) >= MAKERS
    for path in modules:
        assert not touches(path, (ROOT / path).read_text()), path


@pytest.mark.parametrize(
    "line",
    [
        "share.open_for_noise()",
        "getattr(share, 'open_for_noise')()",
        "share._words",
        "dcf.sum_over_domain(keys)",
        "from fss.dpf import sum_over_domain as s",
        "from servers.compute.worker import slice_sum",
        "field.prefix_sum(x)",
        "NoiseTree(seed, server=0, covers=b'', mechanism=m)",
    ],
)
def test_the_check_sees_it(line: str) -> None:
    assert touches("servers/api/analysts.py", line)


def test_a_share_without_noise_does_not_print_or_travel() -> None:
    share = RawShare(np.array([123456789], np.uint64))
    assert "123456789" not in repr(share)
    with pytest.raises(TypeError):
        pickle.dumps(share)
