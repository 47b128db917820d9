"""deploy/kubernetes/overlays/dask, played with containers: a migration, pods that get ready, a campaign, a restart.

Server 0 is made of the overlay's pods (tools/pods.py says what of a cluster that is), server 1 is a plain container.
"""

import json
import os
import secrets
import subprocess
from pathlib import Path

from fss_ecdf.operators.setup import init_pair
from tools.kustomize import Manifest, render
from tools.pods import Node, Pod, Secrets, removed

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
NETWORK, USER = "fss-pods", 10001
FILES = ("server.toml", "identity.secret", "peer.token", "peer-ca.pem", "cert.pem", "key.pem")
SETTINGS = """
[cluster]
scheduler = "tls://scheduler:8786"
ca = "/etc/fss-dask/dask-ca.pem"
certificate = "/etc/fss-dask/dask-cert.pem"
key = "/etc/fss-dask/dask-key.pem"
chunks = "file:///var/lib/fss-chunks"
chunk_keys = 512
"""
TOP = """database = "postgresql://fss@database/fss"
data = "/var/lib/fss/data"
secrets = "group"
"""


def play(engine: str, folder: Path, image: str, database: str) -> None:
    """All of it, in a new folder; `database` is an image with PostgreSQL. Needs to be root, as a kubelet does."""
    if os.geteuid():
        print("pods are left out: volumes have to be given to other users, which only root can do")
        return
    node = Node(engine, folder, NETWORK, image, prepare(folder))
    manifests = {f"{one['kind']}/{one['metadata']['name']}": one for one in render(DEPLOY / "kubernetes/overlays/dask")}
    node.run("network", "create", NETWORK, code=None)
    with removed(node):
        start_others(node, database)
        print(node.start(manifests["Job/migrate"], "migrate").finish().strip())
        pods = start_pods(node, manifests)
        require_apart(pods)
        before = ask(node, folder / "pair", "sh", "/opt/fss/examples/walkthrough.sh", "/pair")
        code = pods["api0"].stop()
        if code:
            raise SystemExit(f"an API pod ended with {code} where it should have finished what was begun")
        node.start(manifests["Deployment/api"], "api0", "server0").wait()
        script = ". /pair/campaign.env; export FSS_ANALYST_TOKEN=$(cat /pair/server0/analyst.token)"
        if ask(node, folder / "pair", "sh", "-c", f"{script}; fss-analyst roc --json >/pair/roc.json") != before:
            raise SystemExit("after the restart of a pod the answer is another one")
        print(f"pods have made the report; AUC {before['auc']:.4f}, the same after the restart of one")


def prepare(folder: Path) -> Secrets:
    """Two servers' settings, server 0's as docs/scale.md says for Kubernetes; the Secrets of server 0."""
    init_pair(folder / "pair", ("server0", "server1"), (8443, 8441))
    server, password = folder / "pair" / "server0", secrets.token_hex(16)
    text = (server / "server.toml").read_text().replace('data = "data"\n', "")
    (server / "server.toml").write_text(TOP + text + SETTINGS)
    subprocess.run(["sh", DEPLOY / "dask-certificates.sh", folder / "dask"], check=True, capture_output=True)
    (folder / "pgpass").write_text(f"database:5432:*:fss:{password}\n")
    for path in [folder / "pair", *(folder / "pair").rglob("*")]:
        os.chown(path, USER, USER)
    found: Secrets = {"fss-server": {name: (server / name).read_bytes() for name in FILES}}
    found["fss-database"] = {"password": password.encode()}
    for name, role in (("fss-dask", "dask"), ("fss-dask-driver", "driver")):
        files = {"dask-ca.pem": "dask-ca.pem", "dask-cert.pem": f"{role}-cert.pem", "dask-key.pem": f"{role}-key.pem"}
        found[name] = {target: (folder / "dask" / source).read_bytes() for target, source in files.items()}
    return found


def start_others(node: Node, database: str) -> None:
    """PostgreSQL, and the other organisation's server."""
    words = ["run", "--detach", "--network", NETWORK]
    scale = ["--volume", f"{DEPLOY / 'scale'}:/scale:ro", "--volume", f"{node.folder / 'pgpass'}:/pgpass:ro"]
    tmp = ["--tmpfs", "/data"]
    name = ["--name", "fss-pod-database", "--network-alias", "database"]
    node.run("rm", "--force", "fss-pod-database", "fss-pod-server1", code=None)
    node.run(*words, *name, *scale, *tmp, "--entrypoint", "sh", database, "/scale/database.sh")
    other = node.folder / "pair" / "server1"
    name = ["--name", "fss-pod-server1", "--network-alias", "server1", "--user", f"{USER}:{USER}"]
    node.run(*words, *name, "--volume", f"{other}:/etc/fss", node.image, "run", "--config", "/etc/fss/server.toml")


def start_pods(node: Node, manifests: dict[str, Manifest]) -> dict[str, Pod]:
    """One of each, but two of the API, all ready by their probes."""
    wanted = {"scheduler": ("dask-scheduler", "scheduler"), "worker": ("dask-worker",), "work": ("work",)}
    wanted |= dict.fromkeys(("api0", "api1"), ("api", "server0"))
    pods = {}
    for name, (kind, *aliases) in wanted.items():
        pods[name] = node.start(manifests[f"Deployment/{kind}"], name, *aliases)
        pods[name].wait()
        print(f"{name}: ready by its probes, as user {USER}, on a read-only root")
    return pods


def require_apart(pods: dict[str, Pod]) -> None:
    """Every pod reads its own secrets and nobody else's, and the server's folder is its user's only."""
    for name, pod in pods.items():
        is_server = name in ("api0", "api1", "work")
        for path in ("/etc/fss/identity.secret", "/etc/fss/peer.token", "/etc/fss/key.pem"):
            if pod.can_read(path) != is_server:
                raise SystemExit(f"{name} {'cannot read' if is_server else 'reads'} {path}")
        if not pod.can_read("/etc/fss-dask/dask-key.pem"):
            raise SystemExit(f"{name} cannot read its key for the cluster")
    api = pods["api0"]
    mode, owner = api.node.run("exec", api.name, "stat", "--format", "%a %u", "/var/lib/fss/data").split()
    if int(mode, 8) & 0o777 != 0o700 or int(owner) != USER:
        raise SystemExit(f"the data folder is open to others: {mode}")
    print(api.node.run("exec", api.name, "fss-server", "doctor", "--config", "/etc/fss/server.toml").strip())


def ask(node: Node, pair: Path, *command: str) -> dict[str, object]:
    """Runs a command beside both servers; the ROC curve that it leaves."""
    words = ["run", "--rm", "--network", NETWORK, "--user", f"{USER}:{USER}", "--env", "MPLCONFIGDIR=/tmp"]
    node.run(*words, "--volume", f"{pair}:/pair", "--entrypoint", command[0], node.image, *command[1:])
    answer: dict[str, object] = json.loads((pair / "roc.json").read_text())
    return answer
