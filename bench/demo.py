"""python -m bench demo: what the core does, end to end, in a few seconds."""

import os
import time

import numpy as np

from fss import dcf, field

PATIENTS = 20_000
BITS = 7


def main(argv: list[str]) -> int:
    del argv
    ages = np.clip(np.random.default_rng(1).normal(58, 16, PATIENTS), 0, 127).astype(np.int64)
    start = time.perf_counter()
    binder = os.urandom(32)
    key0, key1 = dcf.gen(ages, bits=BITS, binder=binder, rand=os.urandom(dcf.RAND_BYTES * PATIENTS))
    made = time.perf_counter()
    share0, share1 = dcf.sum_over_domain(key0), dcf.sum_over_domain(key1)
    done = time.perf_counter()
    counts = field.decode(field.add(share0, share1))

    print(f"{PATIENTS} simulated patients turn their age into two keys of {key0.type.key_bytes} bytes, one per server")
    print(f"  server 0 holds {key0}\n  server 1 holds {key1}")
    print(f"  keys made in {made - start:.2f} s, the whole curve evaluated by both servers in {done - made:.2f} s\n")
    print(f"{'age':>4}  {'share of server 0':>20}  {'share of server 1':>20}  {'sum':>6}  {'truth':>6}")
    for age in range(20, 110, 10):
        truth = int((ages <= age).sum())
        print(f"{age:>4}  {share0[age]:>20}  {share1[age]:>20}  {counts[age]:>6}  {truth:>6}  {_bar(truth)}")
    exact = np.array_equal(counts, np.cumsum(np.bincount(ages, minlength=1 << BITS)))
    print(
        f"\neach share alone is a uniform number modulo 2^61 - 1; their sum is exact at all {1 << BITS} ages: {exact}"
    )
    return 0 if exact else 1


def _bar(count: int) -> str:
    return "#" * round(30 * count / PATIENTS)
