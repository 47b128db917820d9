"""Bytes on the wire: what proxies and servers count is what was sent, and all protocols answer alike."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

import dealer
from bench.communication import onehot, pointwise
from bench.communication.findings import Found, Plan
from bench.communication.model import Model, crossover, fit
from bench.communication.plots import draw
from bench.communication.protocols import Study, both_pairs, study_campaign
from bench.communication.run import measure, run_all
from bench.communication.tables import all_tables, summary
from bench.communication.traffic import OURS, BaselinePair, Counted, Run
from fss_ecdf.campaign.errors import InvalidUpload, Problem
from servers.release.noise import NoiseTree
from tests.harness.proxy import Count, Proxy, Records

pytestmark = pytest.mark.slow

SMALL = Plan(
    n=3,
    bits=6,
    kept=(1, 4),
    fresh=(1, 4),
    crowds=(2, 3),
    crowd_queries=4,
    grids=(4, 6),
    grid_n=3,
    grid_queries=4,
    more_queries=(100,),
    more_crowds=(1000,),
    more_grids=(20,),
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Counted, Counted]]:
    with both_pairs(tmp_path_factory.mktemp("live")) as started:
        yield started


@pytest.fixture(scope="module")
def measured(pairs: tuple[Counted, Counted]) -> Found:
    return measure(SMALL, *pairs, 1)


def of(measured: Found, protocol: str) -> list[Run]:
    runs = [run for run in measured.runs if run.protocol == protocol]
    assert runs
    return runs


def test_bodies_have_exactly_the_bytes_of_the_formulas(measured: Found) -> None:
    for run in measured.runs:
        assert {kind: run.bodies[kind] for kind in run.predicted} == run.predicted
        assert set(run.predicted) == {"party", "peer"}
        assert min(run.predicted.values()) > 0
    for run in of(measured, pointwise.NAME):
        assert run.bodies["party"] == 2 * run.n * run.queries * 28
    for run in of(measured, OURS):
        assert run.bodies["party"] > 2 * run.n * (64 + 48 + 16 + 32 + 24 * run.bits + 24)


def test_requests_and_connections_are_those_of_the_protocols(measured: Found) -> None:
    for run in of(measured, pointwise.NAME):
        connections = run.party[0].connections + run.party[1].connections
        assert run.requests["party"] == 2 * run.n * run.queries
        assert connections == (2 * run.n if run.keep_alive else run.requests["party"])
        assert run.round_trips == (2 + run.queries if run.keep_alive else 3 * run.queries)
        assert run.requests["peer"] == run.queries
    for run in of(measured, OURS):
        assert (run.round_trips, run.requests["peer"]) == (7, 11)
        assert run.requests["party"] == 4 * run.n
    for run in of(measured, onehot.NAME):
        assert run.round_trips == 3


def test_the_parts_of_our_bytes_are_all_of_them(measured: Found) -> None:
    whole = next(run.per_party for run in of(measured, OURS) if (run.n, run.bits) == (SMALL.n, SMALL.bits))
    assert sum(measured.parts.values()) == pytest.approx(whole)
    assert min(measured.parts.values()) > 0
    assert measured.parts["key"] == 2 * (24 * (SMALL.bits - 4) + 32 + 16 * 8)


def test_every_row_says_whether_it_was_measured(measured: Found) -> None:
    for line in measured.models:
        assert [row.measured for row in measured.along_queries(line)] == [True, True, False]
        assert [row.measured for row in measured.along_crowds(line)] == [True, True, False]
        assert [row.measured for row in measured.along_grids(line)] == [True, True, False]
    text = "\n".join(table.as_text() for table in all_tables(measured))
    # One extrapolated row in each of three sweeps: four protocols each, and round trips of three; both servers of two
    # and two crossovers; two crossovers.
    assert text.count("≈") == (4 + 3) + (4 + 2 * 2 + 2) + (4 + 2)


def test_results_and_json(measured: Found) -> None:
    results = {result.key: result for result in measured.results()}
    assert results["formula_off_bytes"].value == 0
    assert results["crossovers_confirmed"].value == 1
    assert results["model_off"].met
    body = json.loads(json.dumps(measured.as_json()))
    assert {row["measured"] for row in body["sweeps"]["queries"]} == {True, False}
    assert body["crossovers"]["party_by_bits"]["6"]["kept_alive"] == results["crossover_kept"].value
    assert f"from {results['crossover_kept'].value:.0f} or" in summary(measured)


def test_questions_that_come_too_early_do_not_move_the_extrapolation(measured: Found) -> None:
    """How often servers ask before the other one is ready depends on the machine: here five times, in one run."""
    first, *others = [run for run in of(measured, OURS) if run.keep_alive]
    bodies, requests = (
        {**counts, "early": counts["early"] + 5 * each} for counts, each in ((first.bodies, 280), (first.requests, 1))
    )
    handshake = measured.bare.bytes / measured.bare.connections
    heads = first.peer.bytes - first.peer.connections * handshake - first.bodies["peer"] - first.bodies["early"]
    head = round(heads / (first.requests["peer"] + first.requests["early"]))  # of a question and its answer
    slow = replace(first, peer=first.peer + Count(0, 5 * head, 5 * 280, 10), bodies=bodies, requests=requests)
    calm, busy = (Model([run, *others], SMALL.bits, handshake) for run in (first, slow))
    assert busy.worst() < 0.02 < 5 * (head + 280) / first.total
    assert busy.row(10, 4).total == pytest.approx(calm.row(10, 4).total, rel=0.03)


def test_plots_are_drawn(measured: Found, tmp_path: Path) -> None:
    for path, caption in draw(measured, tmp_path):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 100_000
        assert caption


def test_all_protocols_answer_alike_and_exactly_but_for_the_noise(pairs: tuple[Counted, Counted]) -> None:
    ours, baseline = pairs
    rng, asked = np.random.default_rng(2), [*range(0, 63, 4), 63]
    study = Study(study_campaign(6, rng.bytes(32)), rng.integers(0, 64, 5).tolist(), asked, rng.bytes)
    answers = [run.answers for run in run_all(ours, baseline, study)]
    noise = np.zeros(64, np.int64)
    for role in (0, 1):
        seed, context = ours.pair.noise_secrets(role, study.campaign)
        noise += NoiseTree(seed, server=role, covers=context, mechanism=study.campaign.noise).curve()
    truth = [sum(x <= t for x in study.values) for t in asked]
    assert noise[asked].any()
    assert answers == 3 * [[int(t + z) for t, z in zip(truth, noise[asked], strict=True)]]


def test_baselines_refuse_what_does_not_fit() -> None:
    campaign, rng = study_campaign(5, bytes(32)), np.random.default_rng(1)
    share, _ = pointwise.split(3, 31, bytes(16), rng.bytes)
    for wrong in (share[:-1], share + b"x", b"\xff" * pointwise.SHARE_BYTES):
        with pytest.raises(InvalidUpload):
            pointwise.decode(wrong, 32)
    with pytest.raises(InvalidUpload):
        pointwise.decode(share, 31)
    seed, vector = onehot.split(3, campaign, bytes(16), rng.bytes)
    for wrong, role in ((seed, 1), (vector, 0), (vector[:-8] + b"\xff" * 8, 1)):
        with pytest.raises(InvalidUpload):
            onehot.decode(wrong, campaign, role)


def test_a_party_cannot_answer_a_question_twice(pairs: tuple[Counted, Counted]) -> None:
    _, baseline = pairs
    assert isinstance(baseline.pair, BaselinePair)
    campaign, rng = study_campaign(5, np.random.default_rng(3).bytes(32)), np.random.default_rng(3)
    baseline.pair.hold(pointwise.NAME, campaign, [(bytes(32), b"")] * 2)
    share, _ = pointwise.split(3, 7, bytes(16), rng.bytes)
    statuses = [baseline.pair.upload_sealed(0, campaign, share).status_code for _ in range(2)]
    assert statuses == [204, 409]
    assert baseline.pair.upload_sealed(0, campaign, share, "another token").status_code == 401


def request_counting(context: ssl.SSLContext, port: int, request: bytes) -> tuple[int, int, bytes]:
    """One request over TLS, with every byte of ciphertext counted where the TLS library hands it over."""
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(came, goes, server_hostname="127.0.0.1")
    sent = received = 0
    with socket.create_connection(("127.0.0.1", port)) as wire:

        def exchange(step: Callable[[], bytes | int | None]) -> bytes | int | None:
            nonlocal sent, received
            while True:
                try:
                    done, result = True, step()
                except ssl.SSLWantReadError:
                    done, result = False, None
                out = goes.read()
                wire.sendall(out)
                sent += len(out)
                if done:
                    return result
                data = wire.recv(1 << 16)
                received += len(data)
                came.write(data) if data else came.write_eof()

        exchange(tls.do_handshake)
        exchange(lambda: tls.write(request))
        answer = b""
        while part := exchange(lambda: tls.read(1 << 16)):
            assert isinstance(part, bytes)
            answer += part
    return sent, received, answer


def test_the_proxy_counts_what_the_sockets_carried(pairs: tuple[Counted, Counted]) -> None:
    ours, _ = pairs
    proxy = ours.party[1]
    before = proxy.settled()
    request = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    sent, received, answer = request_counting(ours.pair.context, proxy.port, request)
    assert answer.startswith(b"HTTP/1.1 200")
    passed = proxy.settled() - before
    assert (passed.connections, passed.up, passed.down) == (1, sent, received)


def test_all_protocols_greet_alike(pairs: tuple[Counted, Counted]) -> None:
    """A party that also offers old versions of TLS says twice as much in its first message."""
    ours, baseline = pairs
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as beside:
        base = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def greeting(request: Callable[[], object]) -> int:
            """The bytes before anything is answered."""
            heard = beside.submit(hang_up, listener)
            with pytest.raises((Problem, httpx.HTTPError)):
                request()
            return heard.result(10)

        async def ask() -> None:
            async with baseline.client("token", keep_alive=True) as client:
                await client.post(base)

        urls = [f"{base}/v1/campaigns/a", "https://127.0.0.1:1/v1/campaigns/a"]
        with dealer.ServerPair(urls, "token", ours.pair.folder / "ca.pem", attempts=1) as sites:
            assert 100 < greeting(sites.fetch_campaign) == greeting(lambda: asyncio.run(ask()))


def hang_up(listener: socket.socket) -> int:
    connection, _ = listener.accept()
    with connection:
        return len(connection.recv(1 << 16))


@pytest.mark.parametrize("chunk", [1, 5, 7, 1000])
def test_records_are_found_however_the_bytes_arrive(chunk: int) -> None:
    records = [(22, 300), (20, 1), (23, 0), (23, 17), (21, 2), (23, 16_400)]
    data = b"".join(bytes([kind, 3, 3]) + size.to_bytes(2, "big") + bytes(size) for kind, size in records)
    reader = Records()
    assert sum(reader.feed(data[at : at + chunk]) for at in range(0, len(data), chunk)) == 3


def test_the_proxy_passes_both_directions_and_their_ends(tmp_path: Path) -> None:
    """One side ends its half first; what the other still sends arrives and counts."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            heard.append(read_all(connection))
            connection.sendall(b"b" * 300_000)

    thread = threading.Thread(target=serve)
    thread.start()
    with listener, Proxy(listener.getsockname()[1]) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.sendall(b"a" * 100_000)
            client.shutdown(socket.SHUT_WR)
            answer = read_all(client)
        thread.join()
        count = proxy.settled()
    assert (heard, len(answer)) == ([b"a" * 100_000], 300_000)
    assert (count.connections, count.up, count.down, count.bytes) == (1, 100_000, 300_000, 400_000)


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while part := connection.recv(1 << 16):
        data += part
    return data


def test_lines_and_where_they_cross() -> None:
    line = fit([1, 2, 5], [10, 13, 22])
    assert line(101) == pytest.approx(310)
    assert fit([3, 3], [4, 6])(1000) == 5
    assert crossover(lambda q: 3 * q, lambda _: 30) == 11
    assert crossover(lambda q: 3 * q, lambda q: 4 * q) is None
