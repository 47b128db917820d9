"""What keeps a server well: doctor, backup and restore, new tokens, the log of actions, expiry as a metric."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.cli.common import UsageError
from fss_ecdf.cli.server import main
from fss_ecdf.net.server_identity import Identity
from fss_ecdf.net.tokens import hash_token
from fss_ecdf.operators.setup import init_pair
from servers.api.action_log import latest
from servers.certificates import expiry
from servers.maintenance import diagnostics
from servers.maintenance.backup import backup
from servers.maintenance.diagnostics import OK, WARNING, WRONG
from servers.settings import load
from servers.storage.action_log import ActionLog, LoggedAction
from servers.storage.storage import Storage
from tests.commands import Done, call
from tests.harness.postgres import Postgres
from tests.harness.server_pair import LivePair, name
from tests.servers.conftest import new_campaign

NOW = datetime.now(UTC)


def config(pair: LivePair, role: int = 0) -> Path:
    return pair.folder / f"server{role}" / "server.toml"


def run(*args: str) -> Done:
    return call(main, *args)


def test_a_well_server(pair: LivePair) -> None:
    done = run("doctor", "--config", str(config(pair)))
    assert done.returncode == 0, done.stdout
    found = [line.split()[0] for line in done.stdout.splitlines()]
    assert found == [
        "settings",
        "version",
        "permissions",
        "certificate",
        "peer's",
        "disk",
        "database",
        "HPKE",
        "history",
        "backup",
        "served",
        "clock",
        "peer",
    ]
    assert "is server 1, fss-ecdf" in done.stdout


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """Settings of a server that nobody started; returns their file."""
    init_pair(tmp_path / "pair", ("127.0.0.1", "127.0.0.1"), (1, 2))
    return tmp_path / "pair" / "server0" / "server.toml"


def _said(path: Path, what: str, now: datetime = NOW) -> diagnostics.Diagnosis:
    return next(finding for finding in diagnostics.examine(path, now) if finding.what == what)


def test_a_server_without_its_peer(alone: Path) -> None:
    found = _said(alone, "peer")
    assert (found.verdict, found.detail) == (WRONG, "https://127.0.0.1:2/ cannot be reached (ConnectError)")
    done = run("doctor", "--config", str(alone))
    assert done.returncode == 77
    assert run("doctor", "--offline", "--config", str(alone)).returncode == 0
    assert _said(alone, "database").detail == "none yet; the first start makes it"


def test_wrong_settings_and_permissions(alone: Path) -> None:
    alone.parent.chmod(0o755)
    assert f"can be read by others: chmod 700 {alone.parent}" in _said(alone, "permissions").detail
    (alone.parent / "peer.token").chmod(0o644)
    found = list(diagnostics.examine(alone, NOW))
    assert [(f.what, f.verdict) for f in found] == [("settings", WRONG)]
    assert "must be readable by its owner only" in found[0].detail


@pytest.mark.parametrize(
    ("mode", "by_owner", "by_group"),
    [
        *((mode, True, True) for mode in (0o600, 0o400)),
        *((mode, False, True) for mode in (0o440, 0o640)),
        *((mode, False, False) for mode in (0o660, 0o444, 0o644, 0o450, 0o604)),
    ],
)
def test_a_group_reads_secrets_only_where_the_settings_say_so(
    alone: Path, mode: int, by_owner: bool, by_group: bool
) -> None:
    """Kubernetes mounts secrets as 0440 of root and a group of the pod's own. Others never do."""
    (alone.parent / "identity.secret").chmod(mode)
    assert _loads(alone) == by_owner
    alone.write_text(f'secrets = "group"\n{alone.read_text()}')
    assert _loads(alone) == by_group


def _loads(path: Path) -> bool:
    try:
        load(path)
    except UsageError as error:
        return "must be readable by its owner" not in str(error)
    return True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another group")
def test_a_group_that_is_not_the_process_own_reads_no_secrets(alone: Path) -> None:
    alone.write_text(f'secrets = "group"\n{alone.read_text()}')
    token = alone.parent / "peer.token"
    token.chmod(0o440)
    assert _loads(alone)
    os.chown(token, 0, 4711)
    assert not _loads(alone)


def test_before_a_start_only_this_servers_own_faults_count(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other server may be away, rolled back or have an ended CA, and Dask may be down: all can be mended later."""
    before_start = ("doctor", "--before-start", "--config", str(alone))
    faults = {"history": "the other server was rolled back", "peer's CA": "ended", "cluster": "does not answer"}
    wrong = [diagnostics.Diagnosis(what, WRONG, why) for what, why in faults.items()]
    with monkeypatch.context() as patch:
        patch.setattr(diagnostics, "examine", lambda *_, offline: wrong if offline else [])
        done = run(*before_start)
        assert (done.returncode, done.stdout.count("WRONG")) == (0, 3)
        wrong += [diagnostics.Diagnosis("disk", WRONG, "full")]
        assert run(*before_start).returncode == 77
    assert run(*before_start).returncode == 0
    alone.parent.chmod(0o755)
    assert run(*before_start).returncode == 77


def test_certificates_that_end(alone: Path) -> None:
    assert _said(alone, "certificate").verdict == OK
    soon, late = NOW + timedelta(days=350), NOW + timedelta(days=400)
    assert (_said(alone, "certificate", soon).verdict, _said(alone, "peer's CA", late).verdict) == (WARNING, WRONG)
    assert "put a new one into" in _said(alone, "certificate", soon).detail
    assert "ended on" in _said(alone, "certificate", late).detail
    (alone.parent / "cert.pem").write_text("nonsense")
    assert "is not a certificate in PEM" in _said(alone, "certificate").detail


def test_disk_and_clock() -> None:
    assert [diagnostics.disk(free).verdict for free in (1 << 40, 1 << 30, 1 << 20)] == [OK, WARNING, WRONG]
    date = "Tue, 17 Nov 2026 00:00:00 GMT"
    skews = [datetime(2026, 11, 17, 0, 0, seconds, tzinfo=UTC) for seconds in (3, 30)]
    far = datetime(2026, 11, 17, 0, 5, tzinfo=UTC)
    assert [diagnostics.clock(date, now).verdict for now in (*skews, far)] == [OK, WARNING, WRONG]
    assert "300 s apart from the other server's; set both by NTP" in diagnostics.clock(date, far).detail
    assert "did not say what time it is" in diagnostics.clock("", far).detail


def test_the_last_backup_is_looked_at(alone: Path, tmp_path: Path) -> None:
    assert _said(alone, "backup").detail == "none was made here yet: fss-server backup"
    Storage(f"sqlite:///{alone.parent / 'data' / 'server.db'}").close()
    backup(load(alone), alone, tmp_path / "b", NOW)
    assert _said(alone, "backup").verdict == OK
    late = _said(alone, "backup", NOW + timedelta(days=3))
    assert (late.verdict, "3 days ago; does its timer run?" in late.detail) == (WARNING, True)


def test_a_database_elsewhere_is_looked_at(alone: Path, postgres: Postgres) -> None:
    alone.write_text(f'database = "{postgres.database("doctor")}"\n' + alone.read_text())
    assert "schema none yet, this program's is" in _said(alone, "database").detail
    Storage(postgres.url("doctor")).close()
    found = _said(alone, "database")
    assert (found.verdict, "MiB; " in found.detail, "GiB free" in found.detail) == (OK, True, True)


def test_damaged_and_old_databases(alone: Path) -> None:
    path = alone.parent / "data" / "server.db"
    Storage(f"sqlite:///{path}").close()
    assert _said(alone, "database").verdict == OK
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE alembic_version SET version_num = '0000'")
        db.commit()
    assert "schema 0000, this program's is 0001" in _said(alone, "database").detail
    path.write_bytes(b"nonsense" * 1000)
    assert "restore this server from its newest backup" in _said(alone, "database").detail


def test_whom_the_other_server_is(alone: Path) -> None:
    settings = load(alone)
    identity = Identity.load(settings.identity_file, 0)
    mine = to_base64url(identity.signing_key)
    right = {
        "server": 1,
        "version": version("fss-ecdf"),
        "signing_key": settings.tokens.peer_signing_key,
        "peer_signing_key": mine,
    }
    for change, verdict, said in (
        ({}, OK, "is server 1"),
        ({"server": 0}, WRONG, "both are server 0"),
        ({"signing_key": mine}, WRONG, f'[tokens] peer_signing_key = "{mine}" would be right'),
        ({"peer_signing_key": "x"}, WRONG, "it knows another signing key of ours"),
        ({"version": "0.0"}, WARNING, "it runs fss-ecdf 0.0"),
    ):
        found = diagnostics.known(settings, identity, json.dumps({**right, **change}).encode())
        assert found.verdict == verdict
        assert said in found.detail
    assert "not well-formed" in diagnostics.known(settings, identity, b"[]").detail


def test_a_token_that_the_other_server_does_not_know(pair: LivePair, tmp_path: Path) -> None:
    shutil.copytree(pair.folder / "server0", tmp_path / "copy", ignore=shutil.ignore_patterns("data"))
    tmp_path.joinpath("copy").chmod(0o700)
    path = tmp_path / "copy" / "server.toml"
    for option in ([], ["--finish"]):
        assert run("tokens", "rotate", "peer", *option, "--config", str(path)).returncode == 0
    assert "is the hash of our peer.token in its [tokens] peer?" in _said(path, "peer").detail


@pytest.mark.parametrize("kind", ["operator", "analyst"])
def test_new_tokens(alone: Path, kind: str) -> None:
    old = (alone.parent / f"{kind}.token").read_text().strip()
    assert getattr(load(alone).tokens, kind) == (hash_token(old),)
    for option, count in (([], 2), (["--finish"], 1)):
        assert run("tokens", "rotate", kind, *option, "--config", str(alone)).returncode == 0
        assert len(getattr(load(alone).tokens, kind)) == count
    new = alone.parent / f"{kind}.token"
    assert new.read_text().strip() != old
    assert new.stat().st_mode & 0o777 == alone.stat().st_mode & 0o777 == 0o600
    assert getattr(load(alone).tokens, kind) == (hash_token(new.read_text().strip()),)


def test_what_operators_did_is_exported_and_no_token_is_in_it(pair: LivePair) -> None:
    campaign = new_campaign()
    pair.create(campaign)
    pair.agree(campaign, 0)
    with pair.operator(0) as client:
        client.delete(f"/v1/campaigns/{name(campaign)}/seal")
        client.delete(f"/v1/campaigns/{name(campaign)}")
    done = run("action-log", "export", "--config", str(config(pair)))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    mine = [(row["action"], row["outcome"]) for row in rows if row["campaign"] == name(campaign)]
    assert mine == [("create", "done"), ("seal", "agreement-pending"), ("cancel-seal", "done"), ("delete", "done")]
    assert f"its last digest is {rows[-1]['digest']}" in done.stderr
    with pair.operator(0) as client:
        assert client.get("/v1/actions").json() == {"chain_valid": True, "actions": rows[-100:]}
        assert client.get("/v1/actions", params={"last": 2}).json()["actions"] == rows[-2:]
        assert [client.get("/v1/actions", params={"last": n}).status_code for n in ("0", "1001", "x")] == [400] * 3
    for secret in (pair.servers[0].operator, pair.upload_tokens[campaign.id]):
        assert secret not in done.stdout
        assert hash_token(secret) not in done.stdout


@pytest.mark.parametrize(
    "change", ["UPDATE actions SET outcome = 'x' WHERE number = 2", "DELETE FROM actions WHERE number = 2"]
)
def test_a_log_that_was_changed_is_noticed(alone: Path, change: str) -> None:
    storage = Storage(f"sqlite:///{alone.parent / 'data' / 'server.db'}")
    for number in range(3):
        storage.actions.add(LoggedAction("2026-01-01T00:00:00Z", "seal", f"c{number}", "done"))
    assert [whole for *_, whole in ActionLog(storage.engine).all()] == [True] * 3
    with storage.engine.connect() as db:
        db.exec_driver_sql(change)
        db.commit()
    assert latest(storage.actions, 1)["chain_valid"] is False
    storage.close()
    done = run("action-log", "export", "--config", str(alone))
    assert done.returncode == 65
    assert "was changed or removed" in done.stderr


def test_the_end_of_the_certificate_is_a_metric(pair: LivePair) -> None:
    text = pair.metrics(0)
    told = next(line for line in text.splitlines() if line.startswith("fss_certificate_not_after_seconds "))
    assert float(told.split()[1]) == expiry(pair.folder / "server0" / "cert.pem").timestamp()
    assert "\nfss_disk_free_bytes " in text
