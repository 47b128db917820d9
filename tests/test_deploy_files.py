"""deploy/: unit files, alerts and a dashboard that say what the programs have and Prometheus understands."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

import servers.metrics  # noqa: F401  (registers them)
from fss_ecdf.cli.common import USAGE
from fss_ecdf.cli.server import _parser

DEPLOY = Path(__file__).parents[1] / "deploy"
ALERTS: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
RULES = ALERTS["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))
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
    from fss_ecdf.campaign.errors import problems

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


def unit_file(name: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(strict=False, interpolation=None)  # some settings stand there twice
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read(DEPLOY / name)
    return unit


def test_the_backups_have_a_time() -> None:
    assert unit_file("fss-backup.timer")["Timer"]["OnCalendar"]


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_file_is_read_and_its_commands_exist(name: str) -> None:
    unit = unit_file(name)
    assert unit["Unit"]["Description"]
    service = unit["Service"]
    assert service["User"] not in ("", "root")
    commands = [service[key] for key in ("ExecStartPre", "ExecStart") if key in service]
    for command in commands:
        words = shlex.split(command)
        words = shlex.split(words[2]) if words[0] == "/bin/sh" else words
        if words[0] == "/opt/fss/bin/python":
            assert find_spec(words[words.index("-m") + 1])
        else:
            assert words[0] == "/opt/fss/bin/fss-server"
            assert _parser().parse_args(words[1:]).config == Path("/etc/fss/server.toml")


@pytest.mark.parametrize("name", [name for name in UNITS if "backup" not in name])
def test_a_service_starts_again_for_as_long_as_it_takes(name: str) -> None:
    unit = unit_file(name)
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "on-failure"
    assert int(unit["Service"]["RestartSec"]) >= 1
    if "fss-server" in unit["Service"]["ExecStart"]:
        assert unit["Service"]["RestartPreventExitStatus"] == str(USAGE)
        assert "--before-start" in unit["Service"]["ExecStartPre"]  # faults of the other server prevent nothing


@pytest.mark.parametrize("name", UNITS)
def test_a_service_is_confined_and_systemd_says_so(name: str) -> None:
    """All with the same lines; where systemd-analyze is here, it calls the exposure 3 of 10 at most."""
    confined = (DEPLOY / "fss-server.service").read_text().partition("UMask=0077\n")[2].partition("\n\n")[0]
    missing = set(confined.splitlines()) - set((DEPLOY / name).read_text().splitlines())
    assert missing <= ({"ProcSubset=pid"} if "dask" in name else set())  # Dask reads how much memory there is
    assert len(confined.splitlines()) > 25
    if program := shutil.which("systemd-analyze"):
        words = [program, "security", "--offline=yes", "--no-pager", str(DEPLOY / name)]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found = re.search(r"Overall exposure level for .*: ([\d.]+)", said)
        assert found
        assert float(found[1]) <= 3


def test_workers_of_the_cluster_see_nothing_of_the_server() -> None:
    for name in ("fss-dask-scheduler.service", "fss-dask-worker@.service"):
        assert unit_file(name)["Service"]["InaccessiblePaths"] == "-/etc/fss -/srv/fss"


def test_the_image_has_labels_a_health_check_and_what_roles_need() -> None:
    text = (DEPLOY.parent / "Dockerfile").read_text()
    assert f"ARG VERSION={version('fss-ecdf')}\n" in text
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in text
    build, _, final = text.partition("\nFROM ${BASE}\nARG")
    assert "'.[all,postgres,cluster,s3]'" in build
    assert "apt-get" not in final
    command = re.search(r"HEALTHCHECK (?:.*\\\n\s+)CMD (\[.*\])", final)
    assert command
    name, *words = json.loads(command[1])
    assert name == "fss-server"
    assert _parser().parse_args(words).config == Path("/etc/fss/server.toml")


def test_the_large_compose_file_runs_what_exists() -> None:
    services = yaml.safe_load((DEPLOY.parent / "deploy/docker-compose.scale.yml").read_text())["services"]
    assert {"database", "server0", "api0", "api1", "work", "scheduler", "evaluator", "server1"} <= set(services)
    for name in ("api0", "api1", "work", "server1"):
        assert _parser().parse_args(services[name]["command"]).config == Path("/etc/fss/server.toml")
    backend = (DEPLOY / "scale" / "haproxy.cfg").read_text()
    assert all(f"server {name} {name}:8443 check check-ssl" in backend for name in ("api0", "api1"))
