"""deploy/kubernetes: what kubectl and Kubernetes take, which pod gets which secret, and what each may reach."""

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from fss_ecdf.cli.server import _parser
from servers.settings import is_exposed
from tools.cluster import FILES
from tools.kustomize import Manifest, pod_of, render
from tools.pods import mount_secret

FOLDER = Path(__file__).parents[1] / "deploy" / "kubernetes"
OVERLAYS = ("small", "dask")
EVERYTHING = [(overlay, one) for overlay in OVERLAYS for one in render(FOLDER / "overlays" / overlay)]
SERVER, CLUSTER = {"api", "work", "migrate"}, {"dask-scheduler", "dask-worker"}


def name_of(case: tuple[str, Manifest]) -> str:
    return f"{case[0]}-{case[1]['kind']}-{case[1]['metadata']['name']}"


def of_kind(overlay: str, *kinds: str) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for found, one in EVERYTHING if found == overlay and one["kind"] in kinds}


PODS = [(overlay, one) for overlay, one in EVERYTHING if one["kind"] in ("Deployment", "Job")]


@pytest.mark.parametrize("case", EVERYTHING, ids=name_of)
def test_a_manifest_is_what_kubernetes_takes(case: tuple[str, Manifest]) -> None:
    kubernetes_validate.validate(case[1], kubernetes_validate.latest_version(), strict=True)


def test_manifests_that_are_wrong_are_found() -> None:
    wrong = of_kind("small", "Deployment")["api"] | {"spec": {"replicas": "three"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="without kubectl, what ours makes is compared with nothing")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubectl_makes_the_same_of_it(overlay: str) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", FOLDER / "overlays" / overlay], capture_output=True, text=True, check=True
    )
    theirs = {name_of((overlay, one)): one for one in yaml.safe_load_all(done.stdout)}
    assert theirs == {name_of((overlay, one)): one for found, one in EVERYTHING if found == overlay}


def test_overlays_are_of_two_sizes() -> None:
    assert set(of_kind("small", "Deployment")) == {"api", "work"}
    assert set(of_kind("dask", "Deployment")) == {"api", "work"} | CLUSTER
    assert set(of_kind("small", "Job")) == {"migrate"}


@pytest.mark.parametrize("case", PODS, ids=name_of)
def test_a_pod_is_confined_and_its_command_exists(case: tuple[str, Manifest]) -> None:
    pod = pod_of(case[1])
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"].startswith("fss-ecdf:")
    assert {"requests", "limits"} == set(container["resources"])
    if "args" in container:
        assert _parser().parse_args(container["args"]).config == Path("/etc/fss/server.toml")


@pytest.mark.parametrize("case", PODS, ids=name_of)
def test_a_pod_has_the_secrets_of_its_role_only(case: tuple[str, Manifest]) -> None:
    name, pod = case[1]["metadata"]["name"], pod_of(case[1])
    secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert all(secret["defaultMode"] == 0o440 for secret in secrets)
    from_environment = {
        entry["valueFrom"]["secretKeyRef"]["name"] for entry in pod["containers"][0]["env"] if "valueFrom" in entry
    }
    wanted = {"fss-server", "fss-database"} if name in SERVER else {"fss-dask"}
    wanted |= {"fss-dask-driver"} if name in SERVER and case[0] == "dask" else set()
    assert {secret["secretName"] for secret in secrets} | from_environment == wanted
    claims = {
        volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume
    }
    assert ("data" in claims) == (name in SERVER)


@pytest.mark.parametrize("case", [case for case in PODS if case[1]["kind"] == "Deployment"], ids=name_of)
def test_a_pod_is_asked_whether_it_lives_within_a_time(case: tuple[str, Manifest]) -> None:
    pod = pod_of(case[1])
    (container,) = pod["containers"]
    ports = {port["name"] for port in container["ports"]}
    for probe in ("readinessProbe", "livenessProbe"):
        about: dict[str, Any] = container[probe]
        assert about["timeoutSeconds"] >= 5
        assert about["periodSeconds"] >= 2
        assert (about.get("httpGet") or about["tcpSocket"])["port"] in ports
    if case[1]["metadata"]["name"] == "api":
        (stop, seconds) = container["lifecycle"]["preStop"]["exec"]["command"]
        assert stop == "sleep"
        assert pod["terminationGracePeriodSeconds"] >= int(seconds) + 30 + 5  # what was begun has 30 s


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_budgets_leave_somebody_and_something_to_disrupt(overlay: str) -> None:
    deployments, budgets = of_kind(overlay, "Deployment"), of_kind(overlay, "PodDisruptionBudget")
    assert {"api", "work"} <= set(budgets)
    for name, budget in budgets.items():
        replicas = deployments[name]["spec"]["replicas"]
        assert budget["spec"].get("minAvailable", 0) < replicas
        labels = deployments[name]["spec"]["template"]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_network_policies_refuse_all_and_then_name_what_is_needed(overlay: str) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    assert policies["nothing-else"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    pods = {case[1]["metadata"]["name"]: case[1]["spec"]["template"]["metadata"] for case in PODS if case[0] == overlay}
    reached = {}
    for name, pod in pods.items():
        chosen = [one["spec"] for one in policies.values() if _matches(one["spec"]["podSelector"], pod["labels"])]
        reached[name] = {
            port["port"] for one in chosen for rule in one.get("egress", []) for port in rule.get("ports", [])
        }
    assert all(reached[name] == {53, 5432, 8443, 443} for name in SERVER)
    assert all(reached[name] == {53, 443} for name in CLUSTER & set(pods))
    if overlay == "dask":
        (rule,) = policies["dask"]["spec"]["ingress"]
        assert [one["podSelector"]["matchLabels"]["dask"] for one in rule["from"]] == ["cluster", "driver"]
        assert pods["api"]["labels"]["dask"] == pods["work"]["labels"]["dask"] == "driver"


def _matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


@pytest.mark.skipif(not shutil.which("kubectl"), reason="secrets.sh calls kubectl")
def test_the_script_makes_the_secrets_that_pods_want(tmp_path: Path) -> None:
    keys = ("dask-ca", "dask-cert", "dask-key", "driver-cert", "driver-key")
    for name in (*FILES, "database.password", *(f"{key}.pem" for key in keys)):
        (tmp_path / name).write_text(f"{name}\n")
    words = ["sh", str(FOLDER / "secrets.sh"), str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    made = {one["metadata"]["name"]: one["data"] for one in yaml.safe_load_all(done.stdout)}
    assert set(made) == {"fss-server", "fss-database", "fss-dask", "fss-dask-driver"}
    assert set(made["fss-server"]) == set(FILES)
    assert base64.b64decode(made["fss-database"]["password"]) == b"database.password"
    assert base64.b64decode(made["fss-dask-driver"]["dask-key.pem"]) == b"driver-key.pem\n"
    assert base64.b64decode(made["fss-dask"]["dask-key.pem"]) == b"dask-key.pem\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others, as a kubelet does")
def test_files_of_a_mounted_secret_are_exposed_to_nobody_but_the_group(tmp_path: Path) -> None:
    """As tools/pods.py mounts them."""
    mount_secret(tmp_path, {"identity.secret": b"x"}, 0o400, os.getegid())
    path = tmp_path / "identity.secret"
    assert path.stat().st_mode & 0o777 == 0o440
    assert not is_exposed(path, by_group=True)
    assert is_exposed(path, by_group=False)
    os.chown(path, 0, 4711)
    assert is_exposed(path, by_group=True)
