"""Metrics on a port of their own, of every kind of process; logs with levels and ids of requests; start-up errors."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from fss_ecdf.campaign.errors import problems
from fss_ecdf.cli.server import main
from servers.certificates import expiry
from servers.server import TURN_S, Server
from tests.commands import call
from tests.harness.ports import free_ports
from tests.harness.postgres import Postgres
from tests.harness.server_pair import ROOT, LivePair, name
from tests.servers.conftest import new_campaign
from tests.servers.rollbacks import config


def read(pair: LivePair, port: int, token: str | None, path: str = "/metrics") -> httpx.Response:
    with pair.client(0, token) as client:
        return client.get(f"https://127.0.0.1:{port}{path}")


def test_metrics_are_for_whoever_has_their_token_and_open_nothing_else(pair: LivePair) -> None:
    token = (pair.folder / "server0" / "metrics.token").read_text().strip()
    port = pair.metrics_ports[0]
    assert read(pair, port, token).status_code == 200
    assert read(pair, port, token, "/").status_code == 404
    for wrong in (None, "x", pair.servers[0].operator, pair.servers[0].analyst):
        assert read(pair, port, wrong).status_code == 401
    with pair.client(0, token) as client:
        assert client.get("/v1/campaigns").status_code == 401
        assert client.get("/metrics").status_code == 404
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{port}/metrics")
    assert read(pair, port, token).status_code == 200  # nor is it held up by one who speaks no TLS


def test_supervisors_ask_there_whether_a_process_works_without_a_token(pair: LivePair) -> None:
    """As they ask the routes of these names; a worker has no other port."""
    port = pair.metrics_ports[0]
    assert read(pair, port, None, "/healthz").json() == {"status": "ok"}
    assert read(pair, port, None, "/readyz").json() == {"status": "ready"}
    asked = ("health", "--config", str(config(pair)), "--metrics")
    assert call(main, *asked).stdout == call(main, *asked, f"127.0.0.1:{port}").stdout == "ready\n"
    assert call(main, *asked, f"127.0.0.1:{free_ports()[0]}").returncode == 75


def test_a_process_whose_loop_hangs_does_not_live() -> None:
    """The thread that tells metrics goes on where the rest stands still."""
    hangs = Server.__new__(Server)

    async def hang() -> None:
        hangs._loop = asyncio.get_running_loop()
        assert await asyncio.to_thread(hangs.turns) == "ok"
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(hangs.turns)
            time.sleep(TURN_S + 0.5)  # noqa: ASYNC251  (this is what hangs)
            with pytest.raises(TimeoutError):
                asked.result(0)

    asyncio.run(hang())


def test_counters_exist_before_their_first_event(pair: LivePair) -> None:
    """Prometheus sees no increase in what begins with 1."""
    text = pair.metrics(0)
    for kind in problems():
        assert f'fss_refusals_total{{code="{kind.code}"}}' in text


@pytest.mark.slow
@pytest.mark.parametrize("what", ["api", "worker"])
def test_every_kind_of_process_tells_its_metrics(tmp_path: Path, postgres: Postgres, what: str) -> None:
    pair, (port, _) = LivePair(tmp_path), free_ports()
    pair.configure(0, database=f'"{postgres.database()}"')
    command = [sys.executable, "-m", "fss_ecdf.cli.server", what, "--config", str(config(pair))]
    process = subprocess.Popen([*command, "--metrics", f"127.0.0.1:{port}"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        token = (pair.folder / "server0" / "metrics.token").read_text().strip()
        until = time.monotonic() + 60
        while True:
            try:
                text = read(pair, port, token).text
                break
            except httpx.HTTPError:
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.1)
        assert 'fss_jobs{phase="failed"} 0.0' in text
        assert 'fss_waves{state="open"} 0.0' in text
        ends = next(line for line in text.splitlines() if line.startswith("fss_certificate_not_after_seconds "))
        assert float(ends.split()[1]) == expiry(pair.folder / "server0" / "cert.pem").timestamp()
        if what == "worker":  # it compares histories, and nobody is there; an alert looks at this
            _until(lambda: "fss_peer_failures_total 0.0" not in read(pair, port, token).text)
        if what == "worker":  # it listens nowhere else
            os.kill(process.pid, signal.SIGHUP)
            time.sleep(0.5)
            assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(40) == 0


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_what_belongs_to_a_request_has_its_id(pair: LivePair) -> None:
    campaign, start = new_campaign(), len(pair.log(0))
    pair.create(campaign)
    with pair.operator(0) as client:
        given = client.get(f"/v1/campaigns/{name(campaign)}/status", headers={"X-Request-Id": "from-a-proxy.1"})
        own = client.get("/v1/campaigns", headers={"X-Request-Id": "no\tgood " + "x" * 99})
    assert given.headers["x-request-id"] == "from-a-proxy.1"
    assert len(own.headers["x-request-id"]) == 16
    until, found = time.monotonic() + 30, dict[str, dict[str, object]]()
    while own.headers["x-request-id"] not in found:  # a line comes after its answer
        assert time.monotonic() < until
        found = {event["request"]: event for event in pair.events(0, start) if event["event"] == "request"}
    assert found["from-a-proxy.1"]["route"] == "/v1/campaigns/{cid}/status"
    assert found[own.headers["x-request-id"]]["level"] == "info"


def test_the_level_of_the_log_changes_while_it_runs(tmp_path: Path) -> None:
    with LivePair(tmp_path) as pair:
        path, process = config(pair), pair.processes[0]
        assert process is not None
        path.write_text('log_level = "warning"\n' + path.read_text())
        os.kill(process.pid, signal.SIGHUP)
        until = time.monotonic() + 30
        while True:
            start = len(pair.log(0))
            with pair.operator(0) as client:
                client.get("/v1/campaigns")
            time.sleep(0.1)
            if not [event for event in pair.events(0, start) if event["event"] == "request"]:
                break
            assert time.monotonic() < until


def test_why_a_server_does_not_start_is_json(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    pair.configure(0, nonsense="1")
    done = call(main, "run", "--config", str(config(pair)))
    assert done.returncode == 64
    said = json.loads(done.stderr.splitlines()[-1])
    assert (said["event"], said["level"], said["exit_code"]) == ("not-started", "error", 64)
    assert "nonsense: unknown setting" in said["why"]
