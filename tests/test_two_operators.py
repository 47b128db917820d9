"""docs/operations.md, Two organisations: its lines, typed by two operators and a hospital in folders of their own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.cli import main as dealer
from fss_ecdf.campaign.campaign import to_base64url
from fss_ecdf.cli.server import main as server
from fss_ecdf.operators import proposals
from tests.commands import Done, call
from tests.harness.ports import free_ports
from tests.harness.server_pair import ROOT, LivePair
from tests.servers.test_sites import TOML

PAGE = (ROOT / "docs" / "operations.md").read_text()
STEPS = re.findall(r"^```sh (alpha|beta|both|hospital)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PROGRAMS = {"fss-server": server, "fss-dealer": dealer}


class Walk:
    """Types lines of the page; what is exported stays with whoever typed it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ports = folder, free_ports()
        self.env: dict[str, dict[str, str]] = {"alpha": {}, "beta": {}, "hospital": {}}
        for who in self.env:
            (folder / who).mkdir()

    def type(self, who: str, text: str, answers: str = "y\n") -> list[Done]:
        for port, mine in zip(("8440", "8441"), self.ports, strict=True):
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{mine}")
        done = []
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            words = [self.env[who].get(w.removeprefix("$"), w) if w.startswith("$") else w for w in words]
            if words[0] == ".":
                self._source(who, self.folder / who / words[1])
            elif words[0] == "export":
                name, _, value = words[1].partition("=")
                self.env[who][name] = value
            elif words[0] in PROGRAMS:
                program = PROGRAMS[words[0]]
                env = self.env[who]
                done.append(call(program, *words[1:], stdin=answers, cwd=self.folder / who, env=env))
            else:
                subprocess.run(words, cwd=self.folder / who, check=True, capture_output=True, timeout=60)
        return done

    def _source(self, who: str, path: Path) -> None:
        for line in path.read_text().splitlines():
            self.type(who, line)

    def send(self, name: str, to: str, rename: str = "") -> None:
        """A file from one folder to another, as people mail it."""
        path = self.folder / name
        shutil.copy(path, self.folder / to / (rename or path.name))


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    walk = Walk(tmp_path)
    processes: list[subprocess.Popen[bytes]] = []
    walk.processes = processes  # type: ignore[attr-defined]
    yield walk
    for process in processes:
        process.terminate()
        process.wait(40)


def _introduce(walk: Walk, printed: str, to: str) -> None:
    lines = re.findall(r'^ +((?:peer|peer_signing_key) = ".+")$', printed, re.MULTILINE)
    assert len(lines) == 2
    with (walk.folder / to / "server" / "server.toml").open("a") as file:
        file.write("\n".join(lines) + "\n")


def _start(walk: Walk, who: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "fss_ecdf.cli.server", "run", "--config", "server/server.toml"]
    with (walk.folder / f"{who}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=walk.folder / who, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})


def _wait(walk: Walk, who: str) -> None:
    for _ in range(300):
        if call(server, "health", "--config", "server/server.toml", cwd=walk.folder / who).returncode == 0:
            return
        subprocess.run(["sleep", "0.2"], check=True)
    raise AssertionError((walk.folder / f"{who}.log").read_text())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes certificates with openssl")
def test_two_operators_and_a_hospital(walk: Walk) -> None:
    who = [name for name, _ in STEPS]
    assert who == ["alpha", "beta", "both", "alpha", "beta", "alpha", "beta", "hospital", "alpha", "beta"]
    text = [lines for _, lines in STEPS]
    (first,), (second,) = walk.type("alpha", text[0]), walk.type("beta", text[1])
    _introduce(walk, first.stdout, "beta")
    _introduce(walk, second.stdout, "alpha")
    walk.send("alpha/server/cert.pem", "beta/server", "peer-ca.pem")
    walk.send("beta/server/cert.pem", "alpha/server", "peer-ca.pem")
    for name in ("alpha", "beta"):
        walk.processes.append(_start(walk, name))  # type: ignore[attr-defined]
    for name in ("alpha", "beta"):
        _wait(walk, name)
    for name in ("alpha", "beta"):
        (seen,) = walk.type(name, text[2].splitlines()[1])
        assert seen.returncode == 0, seen.stdout

    (walk.folder / "alpha" / "study.toml").write_text(TOML)
    (proposed,) = walk.type("alpha", text[3])
    assert proposed.returncode == 0, proposed.stderr
    assert "no secret is in it. Nothing is created yet" in proposed.stdout
    walk.send("alpha/study.proposal.json", "beta")
    (accepted,) = walk.type("beta", text[4])
    assert accepted.returncode == 0, accepted.stderr
    for words in ("How many days did your patients stay?", "sites that both operators admit", "when both operators"):
        assert words in accepted.stdout
    created, added = walk.type("alpha", text[5])
    assert (created.returncode, added.returncode) == (0, 0), (created.stderr, added.stderr)
    walk.send("alpha/sites/additions.json", "beta")
    tokens = [site["token"] for site in json.loads((walk.folder / "alpha" / "sites" / "sites.json").read_text())]
    for path in ("alpha/study.proposal.json", "alpha/sites/additions.json"):
        assert not [token for token in tokens if token in (walk.folder / path).read_text()]
        assert "fss-op-" not in (walk.folder / path).read_text()
    (admitted,) = walk.type("beta", text[6])
    assert "up to 5000 uploads, a new site: 'St. Mary'" in admitted.stdout, admitted.stderr

    walk.send("alpha/sites/ca0.pem", "hospital")
    walk.send("alpha/sites/ca1.pem", "hospital")
    (sheet,) = (walk.folder / "alpha" / "sites").glob("st-mary-*.md")
    (walk.folder / "hospital" / "stay.csv").write_text("days\n" + "\n".join(map(str, range(20))))
    on_the_sheet = [line.strip() for line in sheet.read_text().splitlines() if line.startswith("    export")]
    assert [line.split("=")[0] for line in on_the_sheet] == [
        "export FSS_CAMPAIGN_URLS",
        "export FSS_CAMPAIGN_DIGEST",
        "export FSS_CA0",
        "export FSS_CA1",
        "export FSS_UPLOAD_TOKEN",
    ]
    dry, sent = walk.type("hospital", "\n".join(on_the_sheet) + "\n" + "\n".join(text[7].splitlines()[5:]))
    assert dry.returncode == 0, dry.stderr
    digest = next(line.split()[1] for line in dry.stdout.splitlines() if line.strip().startswith("digest"))
    assert f"| digest of the campaign | {digest} |" in sheet.read_text()
    assert "both servers have stored 20 values" in sent.stdout, sent.stderr

    (noted,) = walk.type("alpha", text[8])
    assert "server 0 has your word now; the operator of the other one must type the same command" in noted.stderr
    status, sealed = walk.type("beta", text[9])
    assert "server 1: open, 20 uploads" in status.stdout
    assert "the other operator wants it sealed; if you agree: fss-server campaign seal" in status.stdout
    assert "sealed 20 uploads" in sealed.stdout, sealed.stderr


def _one_server(pair: LivePair, role: int, folder: Path) -> Path:
    """operator.toml of an organisation with one of two servers that trust each other."""
    path = folder / f"operator{role}.toml"
    about = {"ca": pair.folder / "ca.pem", "token_file": pair.folder / f"server{role}" / "operator.token"}
    own = "".join(f'{key} = "{value}"\n' for key, value in about.items())
    path.write_text(
        f'[[server]]\nserver = {role}\nurl = "{pair.url(role)}"\n{own}'
        f'[peer]\nurl = "{pair.url(1 - role)}"\nca = "{pair.folder / "ca.pem"}"\n'
    )
    return path


def test_proposals_are_read_asked_about_and_checked(pair: LivePair, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML.replace('admission = "sites"\n', ""))
    first, second = _one_server(pair, 0, tmp_path), _one_server(pair, 1, tmp_path)

    def run(operator: Path, *args: str, stdin: str = "") -> Done:
        return call(server, "campaign", "--operator-config", str(operator), *args, cwd=tmp_path, stdin=stdin)

    assert run(first, "propose", "study.toml").returncode == 0
    path = tmp_path / "study.proposal.json"
    token = json.loads((tmp_path / "study.tokens.json").read_text())["upload_token"]
    assert token not in path.read_text()
    again = run(first, "propose", "study.toml")
    assert again.returncode == 0
    assert "whoever has the one upload token" in again.stdout
    cid = to_base64url(proposals.read_proposal(path).campaign.id)

    assert "nothing was created" in run(second, "accept", path.name, stdin="n\n").stdout
    assert "[unknown-campaign]" in run(second, "status", cid).stdout
    nobody = run(second, "accept", path.name)
    assert "nobody is there to be asked: accept it with --yes" in nobody.stderr
    accepted = run(second, "accept", path.name, "--yes")
    assert accepted.returncode == 0, accepted.stderr
    assert "its operator must create or accept it" in run(second, "status", cid).stdout
    created = run(first, "create", "study.toml")
    assert created.returncode == 0, created.stderr
    variables = (tmp_path / "study.env").read_text()
    assert all(pair.url(role) in variables for role in (0, 1))
    assert "wait for uploads: at least 5" in run(second, "status", cid).stdout

    whole = json.loads(path.read_text())
    for change, said in (
        ({"digest": "A" * 43}, "it was changed on the way"),
        ({"format": "other"}, "this is not a proposal"),
        ({"addresses": [pair.url(0), "https://elsewhere.example"]}, "it says that server 1 is at https://elsewhere"),
    ):
        (tmp_path / "bad.json").write_text(json.dumps({**whole, **change}))
        refused = run(second, "accept", "bad.json", "--yes")
        assert refused.returncode == 64
        assert said in refused.stderr
    (tmp_path / "bad.json").write_text("nonsense")
    assert "this is not a file that" in run(second, "sites", "apply", "bad.json").stderr
    alone = tmp_path / "alone.toml"
    alone.write_text(first.read_text().split("[peer]")[0])
    assert "the operator file needs [peer]" in run(alone, "propose", "study.toml").stderr
