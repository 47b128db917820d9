"""Digests of a set by its ids' first digits: two servers find what only one of them has without sending lists.

The set is a tree of fan-out 16. A leaf holds the entries whose ids begin with so many hexadecimal digits; its digest
covers them, a node's digest covers its sixteen children. Both servers read their entries once, in order; then they
compare from the root down, and only below digests that differ; and the entries themselves only of leaves that differ.
An entry is an id with what its server was given under it (`storage/entries.py`), so that what does not belong together
is found.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.binary_messages import UPLOAD_ID_BYTES
from fss_ecdf.campaign.errors import InvalidPeerResponse
from servers.storage.entries import ENTRY_BYTES, as_table, id_of, set_hash, split

FAN_OUT = 16
LEAF_IDS = 256  # about, at most
MAX_DEPTH = 5  # enough for MAX_UPLOADS; a tree of this depth has 22 MB
NODES_AT_ONCE = 2048  # in one question about digests
LEAVES_AT_ONCE = 512  # and about ids
ENTRIES_AT_ONCE = 1 << 15
DIGEST_BYTES = 16  # whoever makes two sets collide, with 2^64 hashes, stops a sealing: the set's checksum has 32

NODE = np.dtype([("count", "<u4"), ("digest", f"V{DIGEST_BYTES}")])
Nodes = NDArray[np.void]


def depth_for(count: int) -> int:
    depth = 0
    while count > LEAF_IDS << (4 * depth) and depth < MAX_DEPTH:
        depth += 1
    return depth


def leaf_range(leaf: int, depth: int) -> tuple[bytes, bytes | None]:
    """The first id of a leaf, and the first one behind it, if there is one."""
    shift = 8 * UPLOAD_ID_BYTES - 4 * depth
    first, behind = leaf << shift, (leaf + 1) << shift
    last = None if behind >> (8 * UPLOAD_ID_BYTES) else behind.to_bytes(UPLOAD_ID_BYTES, "big")
    return first.to_bytes(UPLOAD_ID_BYTES, "big"), last


@dataclass(frozen=True)
class IdTree:
    """By level, from the root on: each node's number of ids, and its digest, zero where there are none."""

    levels: Sequence[Nodes]
    checksum: bytes  # of the whole set, for it was read anyway

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    @staticmethod
    def of(parts: Iterable[bytes], depth: int) -> "IdTree":
        """Of entries in the order of their ids, given part by part."""
        whole = set_hash()
        levels = [_leaves(_hashed(parts, whole), depth)]
        for _ in range(depth):
            levels.append(_parents(levels[-1]))
        return IdTree(levels[::-1], whole.digest())

    def children(self, level: int, nodes: Sequence[int]) -> Nodes:
        """Of some nodes of a level, all their children, one node's after the other's."""
        below = self.levels[level + 1].reshape(-1, FAN_OUT)
        return np.ascontiguousarray(below[np.array(nodes, np.int64)]).reshape(-1)


def _hashed(parts: Iterable[bytes], whole: "hashlib._Hash") -> Iterator[bytes]:
    for part in parts:
        whole.update(part)
        yield part


def _leaves(parts: Iterable[bytes], depth: int) -> Nodes:
    leaves, current, hashed = np.zeros(FAN_OUT**depth, NODE), -1, hashlib.sha256()
    for leaf, entries in _segments(parts, depth):
        if leaf != current:
            _finish(leaves, current, hashed)
            current, hashed = leaf, hashlib.sha256()
        hashed.update(entries)
        leaves["count"][leaf] += len(entries) // ENTRY_BYTES
    _finish(leaves, current, hashed)
    return leaves


def _finish(leaves: Nodes, leaf: int, hashed: "hashlib._Hash") -> None:
    if leaf >= 0:
        leaves["digest"][leaf] = np.void(hashed.digest()[:DIGEST_BYTES])


def _segments(parts: Iterable[bytes], depth: int) -> Iterator[tuple[int, bytes]]:
    """Pieces of the parts whose entries are of one leaf."""
    for part in parts:
        leaf = np.ascontiguousarray(as_table(part)[:, :4]).view(">u4")[:, 0].astype(np.int64) >> (32 - 4 * depth)
        starts = [0, *(np.flatnonzero(np.diff(leaf)) + 1).tolist(), len(leaf)]
        for start, stop in pairwise(starts):
            yield int(leaf[start]), part[ENTRY_BYTES * start : ENTRY_BYTES * stop]


def _parents(children: Nodes) -> Nodes:
    families = children.reshape(-1, FAN_OUT)
    parents = np.zeros(len(families), NODE)
    parents["count"] = families["count"].sum(axis=1)
    for i in np.flatnonzero(parents["count"]):
        parents["digest"][i] = np.void(hashlib.sha256(families[i].tobytes()).digest()[:DIGEST_BYTES])
    return parents


@dataclass(frozen=True)
class Difference:
    """Ids under which only one side has anything, or has something else: sorted, one after the other."""

    here: bytes
    there: bytes


AskChildren = Callable[[int, Sequence[int]], Awaitable[bytes]]
AskEntries = Callable[[Sequence[int]], Awaitable[bytes]]


async def difference(mine: IdTree, children: AskChildren, ours: AskEntries, theirs: AskEntries) -> Difference:
    """Walk down to the leaves that differ, and compare their entries."""
    nodes: list[int] = [0]
    for level in range(mine.depth):
        below: list[int] = []
        for some in _some(nodes, NODES_AT_ONCE):
            below += _differing(mine, level, some, await children(level, some))
        nodes = below
    here, there = [], []
    for some in _some(nodes, LEAVES_AT_ONCE):
        a, b = set(split(await ours(some))), set(split(await theirs(some)))
        here += sorted(map(id_of, a - b))
        there += sorted(map(id_of, b - a))
    return Difference(b"".join(here), b"".join(there))


def _differing(mine: IdTree, level: int, nodes: Sequence[int], answer: bytes) -> list[int]:
    if len(answer) != NODE.itemsize * FAN_OUT * len(nodes):
        raise InvalidPeerResponse("the other server's digests of its uploads are not well-formed")
    theirs = np.frombuffer(answer, NODE)
    other = np.flatnonzero(mine.children(level, nodes) != theirs)
    return [FAN_OUT * nodes[i // FAN_OUT] + i % FAN_OUT for i in other.tolist()]


def _some(nodes: Sequence[int], count: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(nodes), count):
        yield nodes[start : start + count]
