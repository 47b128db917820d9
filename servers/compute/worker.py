"""What a worker does: sum some keys of a key file over the whole domain. A pure function of what it is given."""

from dataclasses import dataclass

import numpy as np

from fss import KeyBatch, KeyType, challenge, check, scheme_of
from fss.field import Words
from fss.proof_file import open_proofs


@dataclass(frozen=True, repr=False)
class Check:
    """How keys are checked in the same pass: with these proofs, by this challenge. Does not print it."""

    proofs: str
    digest: bytes
    seeds: tuple[bytes, bytes]

    def challenge(self, type: KeyType) -> challenge.Challenge:
        return challenge.derive(type.scheme, type.bits, self.digest, *self.seeds)


@dataclass(frozen=True)
class Slice:
    """Some keys of a key file."""

    path: str
    type: KeyType
    start: int
    stop: int
    check: Check | None = None


@dataclass(frozen=True, repr=False)
class Part:
    """The share of the sum of some keys at every position, and what the other server is told about each of them."""

    sums: Words
    messages: Words


def slice_sum(task: Slice) -> Part:
    some = slice(task.start, task.stop)
    keys = KeyBatch.open(task.path, task.type.binder, expected=task.type)[some]
    if task.check is not None:
        proofs = open_proofs(task.check.proofs, task.type)[some]
        sums, messages = check.sum_and_messages(keys, proofs, task.check.challenge(task.type))
        return Part(sums, messages.words)
    return Part(scheme_of(task.type).sum_over_domain(keys), np.empty((3, 0), np.uint64))
