"""Pods of deploy/kubernetes without a Kubernetes: the image's programs with the mounts, users and probes of a kubelet.

A cluster cannot be had everywhere, so `make containers` plays this part of one with containers: Secrets are mounted as
a kubelet does (a folder that everybody may list, links to files of root that fsGroup may read), claims belong to the
group, the root is read-only, and probes are asked as the manifests say, within their timeouts. What no container engine
does is not tried: network policies, disruption budgets, and rolling updates by a Deployment.
"""

import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.kustomize import Manifest, pod_of

Secrets = dict[str, dict[str, bytes]]  # by name, as a cluster has them


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: where volumes are, and how containers are run on it."""

    engine: str
    folder: Path
    network: str
    image: str
    secrets: Secrets

    def run(self, *words: str, code: int | None = 0) -> str:
        done = subprocess.run([self.engine, *words], capture_output=True, text=True, check=False)
        if code is not None and done.returncode != code:
            raise SystemExit(f"{self.engine} {' '.join(words[:3])} ... ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def start(self, manifest: Manifest, name: str, *aliases: str) -> "Pod":
        """A pod of this Deployment or Job, under names that others find it by."""
        pod = pod_of(manifest)
        (container,) = pod["containers"]
        user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
        words = [
            "run",
            "--detach",
            "--name",
            f"fss-pod-{name}",
            "--network",
            self.network,
            "--read-only",
            "--read-only-tmpfs=false",
        ]
        words += ["--user", f"{user}:{group}", "--group-add", str(pod["securityContext"]["fsGroup"])]
        words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        words += [word for alias in aliases for word in ("--network-alias", alias)]
        volumes = {volume["name"]: self._volume(name, volume, pod) for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            mode = ":ro" if mount.get("readOnly") else ""
            words += ["--volume", f"{volumes[mount['name']]}:{mount['mountPath']}{mode}"]
        words += [
            word for entry in container.get("env", []) for word in ("--env", f"{entry['name']}={self._value(entry)}")
        ]
        if "command" in container:
            words += ["--entrypoint", container["command"][0]]
        self.run("rm", "--force", f"fss-pod-{name}", code=None)
        self.run(*words, self.image, *container.get("command", [])[1:], *container.get("args", []))
        return Pod(self, f"fss-pod-{name}", pod, container)

    def _value(self, entry: dict[str, Any]) -> str:
        if "value" in entry:
            return str(entry["value"])
        source = entry["valueFrom"]["secretKeyRef"]
        return self.secrets[source["name"]][source["key"]].decode()

    def _volume(self, name: str, volume: dict[str, Any], pod: Manifest) -> Path:
        group = pod["securityContext"]["fsGroup"]
        if "persistentVolumeClaim" in volume:
            path = self.folder / "claims" / str(volume["persistentVolumeClaim"]["claimName"])
            path.mkdir(parents=True, exist_ok=True)
            os.chown(path, 0, group)
            path.chmod(0o2775)
            return path
        path = self.folder / "pods" / name / str(volume["name"])
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        if "secret" in volume:
            mount_secret(path, self.secrets[volume["secret"]["secretName"]], volume["secret"]["defaultMode"], group)
        os.chown(path, 0, group)
        path.chmod(0o3777 if "secret" in volume else 0o2777)
        return path


def mount_secret(path: Path, files: dict[str, bytes], mode: int, group: int) -> None:
    """As a kubelet does for a pod with an fsGroup: files of root, readable by that group whatever their mode says."""
    version = path / "..2026_01_01_00_00_00.000000001"
    version.mkdir()
    for name, content in files.items():
        (version / name).write_bytes(content)
        os.chown(version / name, 0, group)
        (version / name).chmod(mode | 0o440)
        (path / name).symlink_to(Path("..data") / name)
    os.chown(version, 0, group)
    version.chmod(0o2755)
    (path / "..data").symlink_to(version.name)


@dataclass(frozen=True)
class Pod:
    """One that was started."""

    node: Node
    name: str
    about: Manifest
    container: Manifest

    def address(self) -> str:
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.node.run("inspect", self.name, "--format", form).strip()

    def passes(self, probe: str) -> bool:
        """Whether the probe of this name is answered, as the kubelet asks."""
        about = self.container[probe]
        kind = about["httpGet" if "httpGet" in about else "tcpSocket"]
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        host, port, timeout = self.address(), ports[kind["port"]], about["timeoutSeconds"]
        if "tcpSocket" in about:
            try:
                socket.create_connection((host, port), timeout).close()
            except OSError:
                return False
            return True
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        url = f"{kind['scheme'].lower()}://{host}:{port}{kind['path']}"
        try:
            with urllib.request.urlopen(url, timeout=timeout, context=context) as answer:  # noqa: S310
                return bool(200 <= answer.status < 400)
        except (urllib.error.URLError, OSError):
            return False

    def wait(self) -> None:
        """Until the pod is ready, by the probe that looks after its start and then by those that follow."""
        first: Manifest = self.container["startupProbe" if "startupProbe" in self.container else "readinessProbe"]
        until = time.monotonic() + max(120, first["periodSeconds"] * first.get("failureThreshold", 3))
        names = [name for name in ("startupProbe", "readinessProbe", "livenessProbe") if name in self.container]
        while not all(self.passes(name) for name in names):
            if self.state() != "running" or time.monotonic() > until:
                raise SystemExit(f"{self.name} does not get ready ({self.state()}):\n{self.log()}")
            time.sleep(1)

    def state(self) -> str:
        return self.node.run("inspect", self.name, "--format", "{{.State.Status}}").strip()

    def log(self) -> str:
        done = subprocess.run([self.node.engine, "logs", self.name], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def finish(self) -> str:
        """Of a Job: its end, and what it said."""
        code = self.node.run("wait", self.name).strip()
        if code != "0":
            raise SystemExit(f"{self.name} ended with {code}:\n{self.log()}")
        return self.log()

    def stop(self) -> int:
        """As a kubelet ends a pod: preStop first, then SIGTERM, SIGKILL only after the grace period; its exit code."""
        if "lifecycle" in self.container:
            self.node.run("exec", self.name, *self.container["lifecycle"]["preStop"]["exec"]["command"])
        grace = self.about.get("terminationGracePeriodSeconds", 30)
        self.node.run("stop", "--time", str(grace), self.name)
        return int(self.node.run("inspect", self.name, "--format", "{{.State.ExitCode}}"))

    def can_read(self, path: str) -> bool:
        done = subprocess.run([self.node.engine, "exec", self.name, "cat", path], capture_output=True, check=False)
        return done.returncode == 0


@contextmanager
def removed(node: Node) -> Iterator[None]:
    """At the end nothing is left of what was started."""
    try:
        yield
    finally:
        names = node.run("ps", "--all", "--format", "{{.Names}}").split()
        for name in (name for name in names if name.startswith("fss-pod-")):
            node.run("rm", "--force", name, code=None)
