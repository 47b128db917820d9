"""python -m tools.containers: build the image and run both compose files, with docker where there is one, else podman.

1. the image, from the base that is named; where that cannot be had, from one that debootstrap makes
2. docker-compose.yml: two servers and the demo, to its report; then one server is killed and started again, and the
   same question has the same answer
3. deploy/docker-compose.apart.yml: two organisations, each with its own network and folder, and a study between them
4. deploy/docker-compose.scale.yml: server 0 behind haproxy with PostgreSQL and Dask; parts are killed, and the answer
   stays
5. deploy/kubernetes, its pods without a Kubernetes (tools/cluster.py)
"""

import argparse
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fss_ecdf.operators.setup import init_pair
from tests.harness.dask import certificates
from tools import cluster
from tools.image import build_arguments, require_slim

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "containers"
IMAGE, OWN_BASE = "fss-ecdf", "localhost/fss-ecdf-base"
SERVICES = "localhost/fss-ecdf-services"
USER = 10001
# Of Debian: programs, and what makes podman's networks know containers by name.
PROGRAMS, NETWORKS = ("podman", "buildah", "runc", "debootstrap", "iptables"), ("netavark", "aardvark-dns")
# What pip needs on machines that reach packages in a way of their own.
MOUNTED = ("/etc/pip.conf", "~/.config/pip/pip.conf", "/etc/ssl/certs")


@dataclass(frozen=True)
class Engine:
    """What runs containers, and what runs compose files with it."""

    program: str
    compose: tuple[str, ...]

    @staticmethod
    def found() -> "Engine":
        if (
            shutil.which("docker")
            and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
        ):
            return Engine("docker", ("docker", "compose"))
        _install_podman()
        if shutil.which("podman"):
            _configure_podman()
            return Engine("podman", (str(Path(sys.executable).with_name("podman-compose")),))
        wanted = f"on Debian, as root: apt-get install {' '.join([*PROGRAMS, *NETWORKS])}"
        raise SystemExit(f"neither a docker engine nor podman is here; {wanted}")

    def run(self, *words: str, code: int | None = 0) -> str:
        return _run([self.program, *words], WORK, code)

    def build(self, base: str) -> None:
        words = ["build", "--build-arg", f"BASE={base}", "--tag", IMAGE, *build_arguments()]
        if self.program == "podman":
            mounted = [Path(path).expanduser() for path in MOUNTED]
            words += ["--network", "host", "--isolation", "chroot", "--format", "docker"]  # with a health check
            words += [w for path in mounted if path.exists() for w in ("--volume", f"{path}:{path}:ro")]
        _run([self.program, *words, "."], ROOT)


def _install_podman() -> None:
    """Where something of it is missing and may be installed."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if not missing or os.geteuid() or not shutil.which("apt-get"):
        return
    print(f"installing {', '.join(missing)}", flush=True)
    apt = ["apt-get", "-qq", "-o", "Acquire::Retries=5"]
    _run([*apt, "update"], ROOT, code=None)
    _run([*apt, "install", "--yes", "--no-install-recommends", *missing, *NETWORKS], ROOT, code=None)


def _configure_podman() -> None:
    """As root and without systemd, as in a container, podman's own defaults do not start anything."""
    if os.geteuid() or "CONTAINERS_CONF" in os.environ or not shutil.which("runc"):
        return
    lines = ["[containers]", "default_ulimits = []", "[engine]", 'runtime = "runc"']
    if Path("/usr/lib/podman/netavark").exists():  # its networks know containers by name
        lines += ["[network]", 'network_backend = "netavark"']
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "containers.conf").write_text("\n".join([*lines, ""]))
    os.environ["CONTAINERS_CONF"] = str(WORK / "containers.conf")


def _run(words: list[str], folder: Path, code: int | None = 0) -> str:
    env = {**os.environ, "FSS_USER": f"{USER}:{USER}"}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if code is not None and done.returncode != code:
        raise SystemExit(f"{shlex.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def base_image(engine: Engine, wanted: str) -> str:
    """The base that was asked for, or Debian's own Python where no registry can be reached."""
    for image, how in ((wanted, "inspect"), (OWN_BASE, "inspect"), (wanted, "pull")):
        if subprocess.run([engine.program, "image", how, image], capture_output=True, check=False).returncode == 0:
            return image
    if not shutil.which("debootstrap") or os.geteuid():
        raise SystemExit(f"{wanted} cannot be pulled; name another base (BASE=...), or install debootstrap and be root")
    root = WORK / "base"
    packages = "python3,python3-venv,ca-certificates"
    _run(["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(root)], WORK)
    (root / "usr" / "bin" / "python").symlink_to("python3")
    _run(["tar", "-C", str(root), "-cf", str(WORK / "base.tar"), "."], WORK)
    engine.run("import", str(WORK / "base.tar"), OWN_BASE)
    shutil.rmtree(root)
    (WORK / "base.tar").unlink()
    return OWN_BASE


@dataclass(frozen=True)
class Project:
    """One compose file in a folder of its own."""

    engine: Engine
    name: str
    file: str

    @property
    def folder(self) -> Path:
        return WORK / self.name

    def compose(self, *words: str, code: int | None = 0) -> str:
        options = ["--file", str(self.folder / "docker-compose.yml"), "--project-name", f"fss-{self.name}"]
        return _run([*self.engine.compose, *options, *words], self.folder, code)

    def container(self, service: str) -> str:
        """The container of a service, whatever the engine calls it; it may be on its way up again."""
        label = f"label=com.docker.compose.service={service}"
        project = f"label=com.docker.compose.project=fss-{self.name}"
        return self.engine.run("ps", "--all", "--quiet", "--filter", label, "--filter", project).split()[0]

    @contextmanager
    def up(self, *services: str) -> Iterator[None]:
        shutil.copy(ROOT / self.file, self.folder / "docker-compose.yml")
        try:
            self.compose("down", "--volumes", code=None)  # what a run left that was ended
            self.compose("up", "--detach", "--no-build", *services)
            for service in services:
                self.wait(service)
                self.require_confined(service)
            yield
        finally:
            self.compose("down")

    def wait(self, service: str, *options: str) -> None:
        health = ["exec", self.container(service), "fss-server", "health", "--config", "/etc/fss/server.toml", *options]
        until = time.monotonic() + 120
        while subprocess.run([self.engine.program, *health], capture_output=True, check=False).returncode:
            if time.monotonic() > until:
                raise SystemExit(f"{service} does not get ready:\n{self.engine.run('logs', self.container(service))}")
            time.sleep(0.5)

    def require_confined(self, service: str) -> None:
        """Not root, and nothing to write to but its data."""
        container = self.container(service)
        if int(self.engine.run("exec", container, "id", "-u")) != USER:
            raise SystemExit(f"{service} does not run as {USER}")
        script = "touch /etc/fss/x 2>/dev/null || touch /opt/fss/x 2>/dev/null || touch /x 2>/dev/null || echo refused"
        if "refused" not in self.engine.run("exec", container, "sh", "-c", script):
            raise SystemExit(f"{service} can write where it should not")

    def as_person(self, service: str, command: str) -> str:
        return self.compose("--profile", "people", "run", "--rm", "--no-deps", service, command)


def _fresh(name: str) -> Path:
    shutil.rmtree(folder := WORK / name, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _hand_over(folder: Path) -> None:
    """To the user that containers run as."""
    if not os.geteuid():
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, USER, USER)


def one_machine(engine: Engine) -> None:
    project = Project(engine, "one", "docker-compose.yml")
    pair = _fresh("one") / "pair"
    init_pair(pair, ("server0", "server1"), (8440, 8441))
    _hand_over(pair)
    with project.up("server0", "server1"):
        print("two servers are up: not root, read-only, on a network of their own")
        project.compose("--profile", "demo", "run", "--rm", "--no-deps", "demo")
        before = json.loads((pair / "roc.json").read_text())
        if "Calibration" not in (pair / "report.html").read_text():
            raise SystemExit("the demo's report is not whole")
        print(f"the demo has made its report; AUC {before['auc']:.4f} of n = {before['n']}")
        killed = project.container("server1")
        engine.run("kill", killed)
        engine.run("start", killed)
        project.wait("server1")
        script = ". /pair/campaign.env; export MPLCONFIGDIR=/tmp FSS_ANALYST_TOKEN=$(cat /pair/server0/analyst.token)"
        words = ("run", "--rm", "--no-deps", "--entrypoint", "sh", "demo", "-c", f"{script}; fss-analyst roc --json")
        after = json.loads(project.compose("--profile", "demo", *words))
        if after != before:
            raise SystemExit("after a kill and a restart the answer is another one")
        print("server 1 was killed and started again: the answer is the same")


def apart(engine: Engine) -> None:
    project, folder = Project(engine, "apart", "deploy/docker-compose.apart.yml"), _fresh("apart")
    init_pair(folder / "made", ("alpha", "beta"), (8440, 8441))
    for role, name in enumerate(("alpha", "beta")):
        (folder / name).mkdir()
        (folder / "made" / f"server{role}").rename(folder / name / "server")
        shutil.copy(folder / "made" / "ca.pem", folder / name)
        lines = [f'url = "https://{name}:{8440 + role}"', 'ca = "ca.pem"', 'token_file = "server/operator.token"']
        (folder / name / "operator.toml").write_text("\n".join(["[[server]]", *lines, ""]))
    (folder / "public").mkdir()
    shutil.copy(folder / "made" / "ca.pem", folder / "public")
    shutil.copy(ROOT / "docs" / "examples" / "risk-scores.csv", folder / "public")
    shutil.copy(ROOT / "docs" / "examples" / "risk-score.toml", folder / "alpha" / "study.toml")
    shutil.rmtree(folder / "made")
    _hand_over(folder)
    with project.up("alpha", "beta"):
        _study(project)


def _study(project: Project) -> None:
    folder = project.folder
    project.as_person("alpha-operator", "cd /home/fss && fss-server campaign create study.toml")
    for name in ("study.toml", "study.tokens.json"):
        shutil.copy(folder / "alpha" / name, folder / "beta")
    _hand_over(folder / "beta")
    project.as_person("beta-operator", "cd /home/fss && fss-server campaign create study.toml")
    env = (folder / "alpha" / "study.env").read_text().replace("'", "")
    found = dict(line.removeprefix("export ").split("=", 1) for line in env.splitlines())
    there = " ".join(f"https://{host}/v1/campaigns/{found['FSS_CAMPAIGN_ID']}" for host in ("alpha:8440", "beta:8441"))
    party = f"export FSS_CAMPAIGN_URLS='{there}' FSS_CA0=ca.pem FSS_CA1=ca.pem"
    party += f" FSS_CAMPAIGN_DIGEST={found['FSS_CAMPAIGN_DIGEST']}"
    party += f" FSS_UPLOAD_TOKEN={found['FSS_UPLOAD_TOKEN']}; cd /home/fss"
    upload = (
        "fss-dealer upload --file risk-scores.csv --column score --stratum-column outcome --yes --receipt /tmp/r.json"
    )
    print(project.as_person("party", f"{party}; {upload}").strip().splitlines()[-1])
    connect = "import socket; socket.create_connection(('beta', 8441), 3)"
    reach = f"python -c {shlex.quote(connect)} 2>/dev/null && echo reached || echo apart"
    if "apart" not in project.as_person("alpha-operator", reach):
        raise SystemExit("alpha's operators reach beta's network")
    project.as_person("alpha-operator", f"cd /home/fss && fss-server campaign seal {found['FSS_CAMPAIGN_ID']} || true")
    sealed = project.as_person("beta-operator", f"cd /home/fss && fss-server campaign seal {found['FSS_CAMPAIGN_ID']}")
    if "sealed 2000 uploads" not in sealed:
        raise SystemExit(f"not sealed: {sealed}")
    token = (folder / "beta" / "server" / "analyst.token").read_text().strip()
    analyst = f"export FSS_CAMPAIGN_URLS={there.split()[1]} FSS_CA0=ca.pem FSS_ANALYST_TOKEN={token}; cd /home/fss"
    ask = f"{analyst}; fss-analyst roc --json"
    print(f"two organisations apart: sealed by both, AUC {json.loads(project.as_person('party', ask))['auc']:.4f}")


def services_image(engine: Engine, base: str) -> None:
    """PostgreSQL and haproxy: the official images, or Debian's in one that is made here."""
    names = {"FSS_POSTGRES": "postgres:17", "FSS_HAPROXY": "haproxy:3.0"}
    for variable, image in names.items():
        pulled = subprocess.run([engine.program, "pull", image], capture_output=True, check=False).returncode == 0
        os.environ[variable] = image if pulled else SERVICES
    if SERVICES in os.environ.values():
        words = ["build", "--build-arg", f"BASE={base}", "--tag", SERVICES]
        words += ["--network", "host", "--isolation", "chroot"] if engine.program == "podman" else []
        _run([engine.program, *words, "."], ROOT / "deploy" / "scale")


def scaled(engine: Engine) -> None:
    project, folder = Project(engine, "scale", "deploy/docker-compose.scale.yml"), _fresh("scale")
    pair = folder / "pair"
    init_pair(pair, ("server0", "server1"), (8440, 8441))
    _enlarge(pair / "server0")
    shutil.copytree(ROOT / "deploy" / "scale", folder / "scale")
    _hand_over(folder)
    parts = ("database", "scheduler", "evaluator", "api0", "api1", "work", "server0", "server1")
    shutil.copy(ROOT / project.file, folder / "docker-compose.yml")
    try:
        project.compose("up", "--detach", "--no-build", *parts)
        for service in ("api0", "api1", "server1"):
            project.wait(service, *(("--listen", "127.0.0.1:8443") if service != "server1" else ()))
            project.require_confined(service)
        project.wait("server1", "--listen", "server0:8440")  # as others reach it, through haproxy
        print("haproxy, two API processes, a worker, PostgreSQL and Dask are up")
        _demo_and_kills(project, pair)
    finally:
        project.compose("down", "--volumes")


def _enlarge(server: Path) -> None:
    """Settings of a server of many processes."""
    config, password = server / "server.toml", secrets.token_hex(16)
    files = {what: path.name for what, path in certificates(server).items()}
    cluster = ["[cluster]", 'scheduler = "tls://scheduler:8786"', "chunk_keys = 512"]
    cluster += [f'{what} = "{name}"' for what, name in files.items()]
    database = 'database = "postgresql://fss@database/fss"\n'
    config.write_text(database + config.read_text() + "\n" + "\n".join([*cluster, ""]))
    (server / "pgpass").touch(mode=0o600)
    (server / "pgpass").write_text(f"database:5432:*:fss:{password}\n")
    (server / "data").mkdir(exist_ok=True, mode=0o700)
    shutil.copy(ROOT / "deploy" / "scale" / "dask.sh", server)


def _demo_and_kills(project: Project, pair: Path) -> None:
    project.compose("--profile", "demo", "run", "--rm", "--no-deps", "demo")
    before = json.loads((pair / "roc.json").read_text())
    print(f"the demo has made its report; AUC {before['auc']:.4f} of n = {before['n']}")
    for service in ("api0", "evaluator", "work", "database"):
        killed = project.container(service)
        project.engine.run("kill", killed)
        project.engine.run("start", killed)
    project.wait("server1", "--listen", "server0:8440")
    script = ". /pair/campaign.env; export MPLCONFIGDIR=/tmp FSS_ANALYST_TOKEN=$(cat /pair/server0/analyst.token)"
    words = ("run", "--rm", "--no-deps", "--entrypoint", "sh", "demo", "-c", f"{script}; fss-analyst roc --json")
    if json.loads(project.compose("--profile", "demo", *words)) != before:
        raise SystemExit("after kills the answer is another one")
    print("an API process, an evaluator, the worker and PostgreSQL were killed: the answer is the same")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.containers", description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="python:3.12-slim", help="the image that ours is made from")
    parser.add_argument("--no-build", action="store_true", help="take the image that is there")
    args = parser.parse_args(argv)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where runc and debootstrap are
    engine = Engine.found()
    WORK.mkdir(parents=True, exist_ok=True)
    if not args.no_build:
        base = base_image(engine, args.base)
        engine.build(base)
        print(f"built from {base}: {require_slim(engine.program, IMAGE, base) / 1e6:.0f} MB above it")
    one_machine(engine)
    apart(engine)
    services_image(engine, base_image(engine, args.base))
    scaled(engine)
    cluster.play(engine.program, _fresh("pods"), IMAGE, os.environ["FSS_POSTGRES"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
