"""fss-server as an operator uses it, and the one clear line that wrong settings get."""

import gc
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fss
from fss_ecdf.campaign.campaign import Campaign
from fss_ecdf.cli.server import main
from tests.commands import Done, call
from tests.harness.server_pair import ROOT, LivePair, envelopes, name
from tests.servers.conftest import answering

CAMPAIGN = """
title = "Waiting time"
question = "How many days did your last patient wait for the operation?"
epsilon = 1.0
min_uploads = 5
[[variables]]
name = "waiting time"
[variables.grid]
kind = "linear"
values = "integer"
from = 0
to = 365
step = 1
"""


def run(*args: str, stdin: str = "") -> Done:
    return call(main, *args, stdin=stdin)


def start(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """As a process of its own."""
    command, env = [sys.executable, "-m", "fss_ecdf.cli.server", *args], {**os.environ, **env}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_campaign_from_creation_to_deletion(pair: LivePair, tmp_path: Path) -> None:
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    created = run(*operator, "create", str(tmp_path / "c.toml"))
    assert created.returncode == 0, created.stderr
    lines = {line.split()[0]: line.split()[-1] for line in created.stdout.splitlines() if line.strip()}
    campaign_id, token = lines["id"], lines["upload"]
    assert "fss-server campaign seal $FSS_CAMPAIGN_ID" in created.stdout
    variables = (tmp_path / "c.env").read_text()
    assert f"export FSS_CAMPAIGN_ID={campaign_id}\n" in variables
    assert f"export FSS_UPLOAD_TOKEN={token}\n" in variables
    assert (tmp_path / "c.env").stat().st_mode & 0o777 == 0o600

    shown = run(*operator, "show", campaign_id)
    campaign = Campaign.from_toml(shown.stdout)
    assert name(campaign) == campaign_id
    listed = run(*operator, "list")
    assert "Waiting time" in listed.stdout
    for role, data in enumerate(envelopes(campaign, np.arange(20))):
        assert pair.upload(role, campaign, data, token).status_code == 200
    status = run(*operator, "status", campaign_id)
    assert "server 0: open, 20 uploads" in status.stdout
    sealed = run(*operator, "seal", campaign_id)
    assert sealed.returncode == 0, sealed.stderr
    assert "sealed 20 uploads" in sealed.stdout
    token_file = pair.folder / "server0" / "analyst.token"
    out = tmp_path / "out"
    exported = run(*operator, "export", campaign_id, "--out", str(out), "--analyst-token-file", str(token_file))
    assert exported.returncode == 0, exported.stderr
    assert len((out / "curve-0.csv").read_text().splitlines()) == 367
    assert Campaign.from_toml((out / "campaign.toml").read_text()) == campaign
    kept = run(*operator, "delete", campaign_id, stdin="n\n")
    assert "nothing was erased" in kept.stdout
    assert run(*operator, "delete", campaign_id, "--yes").returncode == 0
    gone = run(*operator, "status", campaign_id)
    assert gone.returncode == 77
    assert "[campaign-deleted]" in gone.stdout


def test_create_into_a_pipe_that_closes_writes_its_files(pair: LivePair, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    create = f"campaign --operator-config {pair.folder / 'operator.toml'} create {tmp_path / 'c.toml'}"
    line = f"{sys.executable} -u -m fss_ecdf.cli.server {create} | true"
    subprocess.run(["bash", "-c", line], cwd=ROOT, check=True, timeout=60, stderr=subprocess.DEVNULL)
    assert {"c.env", "c.tokens.json"} <= {path.name for path in tmp_path.iterdir()}
    assert "FSS_UPLOAD_TOKEN=" in (tmp_path / "c.env").read_text()


def test_invitations_to_an_open_campaign_are_an_error(pair: LivePair, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    done = run(*operator, "create", str(tmp_path / "c.toml"), "--invitations", "3")
    assert done.returncode == 64
    assert "--invitations is for campaigns with admission" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


def test_deleting_where_nobody_can_be_asked(pair: LivePair) -> None:
    done = run("campaign", "--operator-config", str(pair.folder / "operator.toml"), "delete", "x")
    assert done.returncode == 64
    assert "nobody is there to be asked: erase it with --yes" in done.stderr


def test_a_campaign_at_one_server_only_is_named(pair: LivePair, tmp_path: Path) -> None:
    text = (pair.folder / "operator.toml").read_text()
    lonely = pair.folder / "one.toml"
    lonely.write_text(text[: text.rindex("[[server]]")])
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    created = run("campaign", "--operator-config", str(lonely), "create", str(tmp_path / "c.toml"))
    assert "one server only" in created.stdout
    campaign_id = next(line.split()[-1] for line in created.stdout.splitlines() if line.strip().startswith("id"))
    status = run("campaign", "--operator-config", str(pair.folder / "operator.toml"), "status", campaign_id)
    assert status.returncode == 77
    assert "it says of the other server" in status.stdout
    assert "[unknown-campaign]" in status.stdout
    listed = run("campaign", "--operator-config", str(pair.folder / "operator.toml"), "list")
    assert "not at server 1" in listed.stdout


def test_repeating_create_completes_it(pair: LivePair, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    create = ["campaign", "--operator-config", str(pair.folder / "operator.toml"), "create", str(tmp_path / "c.toml")]
    pair.stop(1)
    failed = run(*create)
    assert failed.returncode == 75
    assert "the other server cannot be reached" in failed.stderr  # whose commitment is needed
    pair.start(1)
    assert run(*create).returncode == 0
    pair.stop(1)
    again = run(*create)
    assert again.returncode == 75
    assert "it exists at server 0 only" in again.stderr
    pair.start(1)
    done = [run(*create) for _ in range(2)]
    assert done[0].returncode == done[1].returncode == 0
    assert done[0].stdout == done[1].stdout
    lines = {line.split()[0]: line.split()[-1] for line in done[0].stdout.splitlines() if line.strip()}
    with pair.client(0) as client:
        campaign = Campaign.from_dict(client.get(f"/v1/campaigns/{lines['id']}").json()["campaign"])
    for role, data in enumerate(envelopes(campaign, np.arange(5))):
        assert pair.upload(role, campaign, data, lines["upload"]).status_code == 200
    assert (tmp_path / "c.tokens.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("change", "has_id"),
    [
        (
            lambda text: text.replace("How many days", "How many\\\n id = 7\\\n days").replace('"How', '"""\nHow', 1),
            False,
        ),
        (lambda text: f'"id" = "{"A" * 43}"\n{text}', True),
    ],
    ids=["in a text of many lines", "in quotes"],
)
def test_an_id_is_found_as_toml_has_it(
    pair: LivePair, tmp_path: Path, change: Callable[[str], str], has_id: bool
) -> None:
    text = change(CAMPAIGN)
    if not has_id:
        text = text.replace('operation?"', 'operation?"""')
    (tmp_path / "c.toml").write_text(text)
    created = run(
        "campaign", "--operator-config", str(pair.folder / "operator.toml"), "create", str(tmp_path / "c.toml")
    )
    assert created.returncode == 0, created.stderr
    assert ("A" * 43 in created.stdout) == has_id


def test_the_program_leaves_no_connection_open(pair: LivePair) -> None:
    """Python itself says so when what is forgotten is collected."""
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    for command in (["list"], ["status", "nonsense"], ["seal", "nonsense"]):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", ResourceWarning)
            run(*operator, *command)
            gc.collect()
        assert not [str(warning.message) for warning in seen]


def test_a_busy_port_is_noticed_before_anything_is_begun(pair: LivePair, tmp_path: Path) -> None:
    second = LivePair(tmp_path)
    path = second.folder / "server0" / "server.toml"
    path.write_text(path.read_text().replace(str(second.ports[0]), str(pair.ports[0])))
    done = start("run", "--config", str(path))
    assert done.returncode == 75
    *log, last = done.stderr.splitlines()
    said = json.loads(last)
    assert said["why"] == f"another program listens on 127.0.0.1:{pair.ports[0]}; end it or change `listen`"
    assert said["event"] == "not-started"
    assert [json.loads(line)["event"] for line in log] == ["starting"]
    assert not (second.folder / "server0" / "data" / "server.db").exists()


def test_an_address_of_another_machine_is_a_wrong_setting(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    path = pair.folder / "server0" / "server.toml"
    path.write_text(path.read_text().replace(f"127.0.0.1:{pair.ports[0]}", f"192.0.2.1:{pair.ports[0]}", 1))
    done = run("run", "--config", str(path))
    assert done.returncode == 64
    assert "192.0.2.1" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_server_that_evaluated_ends_with_nothing_left_over(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    pair.start(1)
    pair.nursery = None  # Python's own end belongs to it
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            pair.start(0)
            answering(pair)
            process = pair.processes[0]
            assert process is not None
            os.kill(process.pid, number)
            assert pair.exited(0) == 0
            assert "leaked" not in pair.log(0)
            assert pair.events(0)[-1]["event"] == "stopped"
            assert pair.log(0).splitlines()[-1].startswith("{")
    finally:
        for role in (0, 1):
            pair.stop(role)


def test_errors_are_one_line(pair: LivePair, tmp_path: Path) -> None:
    operator = ["campaign", "--operator-config", str(pair.folder / "operator.toml")]
    (tmp_path / "bad.toml").write_text(CAMPAIGN.replace("epsilon = 1.0", "epsilon = 500.0"))
    for args, code, message in (
        ([*operator, "create", str(tmp_path / "bad.toml")], 65, "at most 20, got 500"),
        ([*operator, "create", str(tmp_path / "none.toml")], 64, "No such file"),
        ([*operator, "seal", "nonsense"], 77, "[unknown-campaign]"),
        (["campaign", "--operator-config", str(tmp_path / "none"), "list"], 64, "cannot be read"),
    ):
        done = run(*args)
        assert done.returncode == code, done.stderr
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert "Traceback" not in done.stderr


def test_a_server_that_is_down_is_exit_code_75(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    done = run("campaign", "--operator-config", str(pair.folder / "operator.toml"), "list")
    assert done.returncode == 75
    assert "cannot be reached" in done.stderr


def replace(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "server.toml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace("server = 0", "server = 2"), "server: Input should be 0 or 1"),
        (replace("server = 0\n", ""), "server: Field required"),
        (replace("server = 0", "server = 0\ncolour = 1"), "colour: unknown setting"),
        (replace("[peer]\n", "[peer]\ncolour = 1\n"), "peer.colour: unknown setting"),
        (replace("listen = ", 'listen = "x"\n#'), "listen: String should match pattern"),
        (replace('url = "https', 'url = "http'), "peer.url: must be https"),
        (replace("[tokens]", "[tokens"), "not TOML"),
        (lambda f: (f / "key.pem").chmod(0o644), "must be readable by its owner only"),
        (lambda f: (f / "cert.pem").unlink(), "cert.pem does not exist"),
        (lambda f: (f / "server.toml").unlink(), "cannot be read (No such file or directory)"),
    ],
)
def test_wrong_settings_stop_it_with_one_line(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    pair = LivePair(tmp_path)
    folder = pair.folder / "server0"
    damage(folder)
    done = run("run", "--config", str(folder / "server.toml"))
    assert done.returncode == 64
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_first_log_line_names_the_back_end(pair: LivePair) -> None:
    first = pair.events(0)[0]
    assert (first["event"], first["backend"]) == ("starting", fss.backend())


def test_a_wrong_back_end_stops_it_with_one_line(tmp_path: Path) -> None:
    assert run("init-pair", str(tmp_path / "pair")).returncode == 0
    done = start("run", "--config", str(tmp_path / "pair" / "server0" / "server.toml"), FSS_BACKEND="fpga")
    assert done.returncode == 64
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["why"] == "FSS_BACKEND must be native or numpy, got 'fpga'"


def test_the_same_token_twice_is_a_contradiction(tmp_path: Path) -> None:
    pair = LivePair(tmp_path)
    path = pair.folder / "server0" / "server.toml"
    text = path.read_text()
    operator = text.split('operator = "')[1][:64]
    analyst = text.split('analyst = "')[1][:64]
    path.write_text(text.replace(analyst, operator))
    assert "must have different tokens" in run("run", "--config", str(path)).stderr


def test_init_for_one_organisation_says_what_is_next(tmp_path: Path) -> None:
    done = run("init", str(tmp_path / "s"), "--server", "1", "--peer-url", "https://other.example:8443")
    assert done.returncode == 0, done.stderr
    assert "give the other server's operator these two lines" in done.stdout
    started = run("run", "--config", str(tmp_path / "s" / "server.toml"))
    assert started.returncode == 64
    assert "tokens.peer: Field required" in started.stderr
    again = run("init", str(tmp_path / "s"), "--server", "1", "--peer-url", "https://other.example:8443")
    assert again.returncode == 64
    assert "not empty" in again.stderr
