"""Dockerfile and compose files: sound, and every command works without an engine; `make containers` has one."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.ports import free_ports

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVERS = ("server0", "server1")


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_small_pinned_and_not_root() -> None:
    lines = instructions()
    assert [name for name, _ in lines].count("FROM") == 2
    assert re.fullmatch(r"BASE=\w+:\d[\w.-]*", next(rest for name, rest in lines if name == "ARG"))
    assert all(rest.startswith("${BASE}") for name, rest in lines if name == "FROM")
    last = [rest for name, rest in lines if name == "USER"][-1]
    assert last not in ("root", "0")
    assert any("--constraint constraints.txt" in rest for _, rest in lines)
    for name, rest in lines:
        for source in rest.split()[:-1] if name == "COPY" and "--from" not in rest else []:
            assert (ROOT / source).exists(), source


def test_servers_are_alike_confined_and_apart() -> None:
    services = COMPOSE["services"]
    assert {service["image"] for service in services.values()} == {"fss-ecdf"}
    for name in SERVERS:
        server = services[name]
        assert server["read_only"]
        assert server["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in server["security_opt"]
        assert not server["user"].startswith(("0", "root"))
        assert server["healthcheck"]["test"][0] == "CMD"
    mounts = [{volume.split(":")[0] for volume in services[name]["volumes"]} for name in SERVERS]
    assert not mounts[0] & mounts[1]
    assert all(volume.endswith(":ro") or "/data" in volume for name in SERVERS for volume in services[name]["volumes"])
    ports = [services[name]["ports"][0].split(":")[1] for name in SERVERS]
    assert ports == ["8440", "8441"]
    assert services["demo"]["depends_on"] == {name: {"condition": "service_healthy"} for name in SERVERS}


def test_organisations_apart_share_no_folder_and_no_network_but_the_open_one() -> None:
    services = yaml.safe_load((ROOT / "deploy/docker-compose.apart.yml").read_text())["services"]
    for service in services.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert not service["user"].startswith(("0", "root"))
    of = {
        name: [service for key, service in services.items() if key.split("-")[0] == name]
        for name in ("alpha", "beta", "party")
    }
    folders = {name: {v.split("/")[1].split(":")[0] for s in all for v in s["volumes"]} for name, all in of.items()}
    assert folders == {"alpha": {"alpha"}, "beta": {"beta"}, "party": {"public"}}
    networks = {name: {network for s in all for network in s["networks"]} for name, all in of.items()}
    assert networks["alpha"] & networks["beta"] == networks["party"] == {"between"}
    assert services["alpha-operator"]["networks"] == ["alpha"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's own RUN commands for Python, in a folder instead of an image; returns where the programs are."""
    folder = tmp_path_factory.mktemp("image")
    ignored = shutil.ignore_patterns(
        *(ROOT / ".dockerignore").read_text().replace("**/", "").split(), ".*cache", ".hypothesis"
    )
    shutil.copytree(ROOT, folder / "src", ignore=ignored)
    for name, command in instructions():
        if name == "RUN" and "/opt/fss" in command:
            script = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", command).replace(
                "/opt/fss", f"{folder}/fss"
            )
            subprocess.run(["sh", "-c", script], cwd=folder / "src", check=True, capture_output=True, timeout=600)
    return folder / "fss" / "bin"


@pytest.mark.slow
def test_every_command_works_from_the_installed_package(installed: Path, tmp_path: Path) -> None:
    """init, both servers, their health checks and the demo; names, ports and folders are those of this machine."""
    services, pair = COMPOSE["services"], tmp_path / "pair"
    env = {**os.environ, "PATH": f"{installed}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    env.pop("PYTHONPATH", None)

    def here(words: list[str], server: str = "") -> list[str]:
        changed = [word.replace("/etc/fss", str(pair / server)) for word in words]
        changed = [word.replace("/opt/fss/examples", str(ROOT / "docs" / "examples")) for word in changed]
        return [str(pair) if word == "/pair" else "127.0.0.1" if word in SERVERS else word for word in changed]

    def run(words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)

    ports = [str(port) for port in free_ports()]
    initialised = run(["fss-server", *here(services["init"]["command"]), "--ports", *ports])
    assert initialised.returncode == 0, initialised.stderr
    processes = []
    try:
        for name in SERVERS:
            words = ["fss-server", *here(services[name]["command"], name)]
            with (tmp_path / f"{name}.log").open("wb") as log:
                processes.append(subprocess.Popen(words, cwd=tmp_path, env=env, stderr=log))
        for name in SERVERS:
            check = here(services[name]["healthcheck"]["test"][1:], name)
            until = time.monotonic() + 60
            while run(check).returncode != 0:
                assert time.monotonic() < until, (tmp_path / f"{name}.log").read_text()
                time.sleep(0.2)
        done = run([*here(services["demo"]["entrypoint"]), *here(services["demo"]["command"])])
        assert done.returncode == 0, done.stderr
    finally:
        for process in processes:
            process.terminate()
            process.wait(40)
    assert run(check).returncode == 75
    assert json.loads((pair / "roc.json").read_text())["n"] == 2000
    assert "Calibration" in (pair / "report.html").read_text()
