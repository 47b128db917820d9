"""deploy/: unit files, alerts and a dashboard that say what the programs have and Prometheus understands."""

import configparser
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from prometheus_client import REGISTRY

import servers.metrics  # noqa: F401  (registers them)
from programs.server import _parser

DEPLOY = Path(__file__).parents[1] / "deploy"
ALERTS: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
RULES = ALERTS["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
FUNCTIONS = {"increase", "rate", "sum", "by", "time", "histogram_quantile", "up", "le"}


@cache
def known() -> set[str]:
    """Every name that this server's metrics have when they are read."""
    names = {"up"}
    for family in REGISTRY.collect():
        kinds = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names.update(family.name + suffix for suffix in kinds)
    return names


def check_expression(text: str) -> None:
    """A small reading of PromQL: brackets match, durations are durations, metrics and functions exist."""
    for pair in ("()", "{}", "[]"):
        assert text.count(pair[0]) == text.count(pair[1]), text
    assert all(re.fullmatch(r"\d+[smhdwy]", given) for given in re.findall(r"\[(.*?)\]", text)), text
    for inside in re.findall(r"\{(.*?)\}", text):
        assert all(re.fullmatch(r'\w+(=|!=|=~|!~)"[^"]*"', part.strip()) for part in inside.split(",")), text
    bare = re.sub(r"\[.*?\]|\{.*?\}|\(\s*\w+(?:\s*,\s*\w+)*\s*\)\s*(?=\()", "", text)
    for name in re.findall(r"[a-z_]{2,}", bare):
        assert name in FUNCTIONS | known(), f"{name} in {text}"
    assert re.search(r"fss_\w+|up", text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_is_a_rule_that_prometheus_takes(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"[A-Za-z]\w*", rule["alert"])
    check_expression(rule["expr"])
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert {"summary", "action"} == set(rule["annotations"])


def test_alerts_are_all_different_and_certificates_have_one() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    assert any("fss_certificate_not_after_seconds" in rule["expr"] for rule in RULES)
    codes = {
        code for rule in RULES for found in re.findall(r'code=~?"(.*?)"', rule["expr"]) for code in found.split("|")
    }
    from campaign.errors import problems

    assert codes <= {kind.code for kind in problems()}


@pytest.mark.parametrize(
    "wrong", ["rate(fss_nothing_total[5m])", "rate(fss_uploads_total[5x])", "rate(fss_uploads_total"]
)
def test_the_reading_of_expressions_can_fail(wrong: str) -> None:
    with pytest.raises(AssertionError):
        check_expression(wrong)


def test_the_dashboard_has_panels_that_do_not_overlap_and_ask_what_exists() -> None:
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["targets"]
        for target in panel["targets"]:
            check_expression(target["expr"])


@pytest.mark.parametrize("name", ["fss-server.service", "fss-backup.service", "fss-backup.timer"])
def test_a_unit_file_is_read_and_its_commands_exist(name: str) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read(DEPLOY / name)
    assert unit["Unit"]["Description"]
    if name.endswith(".timer"):
        assert unit["Timer"]["OnCalendar"]
        return
    service = unit["Service"]
    assert service["User"] not in ("", "root")
    assert service["NoNewPrivileges"] == "yes"
    commands = [service[key] for key in ("ExecStartPre", "ExecStart") if key in service]
    for command in commands:
        words = shlex.split(command)
        words = shlex.split(words[2]) if words[0] == "/bin/sh" else words
        assert words[0] == "/opt/fss/bin/fss-server"
        assert _parser().parse_args(words[1:]).config == Path("/etc/fss/server.toml")


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "fss.yaml").read_text()))


@pytest.mark.parametrize(
    "document", documents(), ids=lambda document: f"{document['kind']}-{document['metadata']['name']}"
)
def test_a_manifest_is_what_kubernetes_takes(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_manifests_that_are_wrong_are_found() -> None:
    wrong = next(document for document in documents() if document["kind"] == "Deployment")
    wrong["spec"]["replicas"] = "three"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_processes_in_a_cluster_are_confined_and_their_commands_exist() -> None:
    found = [one for one in documents() if one["kind"] == "Deployment"]
    deployments = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in found}
    assert set(deployments) == {"api", "work", "dask-scheduler", "dask-worker"}
    for pod in deployments.values():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        if "args" in container:
            assert _parser().parse_args(container["args"]).config == Path("/etc/fss/server.toml")


def test_the_large_compose_file_runs_what_exists() -> None:
    services = yaml.safe_load((DEPLOY.parent / "docker-compose.scale.yml").read_text())["services"]
    assert {"database", "server0", "api0", "api1", "work", "scheduler", "evaluator", "server1"} <= set(services)
    for name in ("api0", "api1", "work", "server1"):
        assert _parser().parse_args(services[name]["command"]).config == Path("/etc/fss/server.toml")
    backend = (DEPLOY / "scale" / "haproxy.cfg").read_text()
    assert all(f"server {name} {name}:8443 check check-ssl" in backend for name in ("api0", "api1"))
