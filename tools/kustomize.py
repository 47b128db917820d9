"""What `kubectl kustomize` makes of deploy/kubernetes, for machines without kubectl; a test compares the two.

Only the fields that our files have: anything else is refused.
"""

from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "images", "replicas", "patches"}


def render(folder: Path) -> list[Manifest]:
    """All manifests of a base or an overlay. Raises ValueError for a field that is not known here."""
    about = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := set(about) - _KNOWN:
        raise ValueError(f"{folder}: {', '.join(sorted(unknown))} is not known")
    found: list[Manifest] = []
    for name in about["resources"]:
        path = folder / name
        found += render(path.resolve()) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for one in found:
        if "namespace" in about and one["kind"] != "Namespace":
            one["metadata"]["namespace"] = about["namespace"]
        _tag(one, {image["name"]: image["newTag"] for image in about.get("images", [])})
    for wanted in about.get("replicas", []):
        for one in _named(found, "Deployment", wanted["name"]):
            one["spec"]["replicas"] = wanted["count"]
    for patch in about.get("patches", []):
        text = patch["patch"] if "patch" in patch else (folder / patch["path"]).read_text()
        for one in _named(found, patch["target"]["kind"], patch["target"]["name"]):
            for change in yaml.safe_load(text):
                _apply(one, change)
    return found


def pod_of(manifest: Manifest) -> Manifest:
    """The pod that a Deployment or a Job starts."""
    pod: Manifest = manifest["spec"]["template"]["spec"]
    return pod


def _named(found: list[Manifest], kind: str, name: str) -> list[Manifest]:
    chosen = [one for one in found if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    if not chosen:
        raise ValueError(f"there is no {kind} {name}")
    return chosen


def _tag(manifest: Manifest, tags: dict[str, str]) -> None:
    if manifest["kind"] in ("Deployment", "Job"):
        for container in pod_of(manifest)["containers"]:
            name = container["image"].partition(":")[0]
            container["image"] = f"{name}:{tags[name]}" if name in tags else container["image"]


def _apply(manifest: Any, change: Manifest) -> None:
    """One step of a JSON patch (RFC 6902)."""
    *way, last = change["path"].lstrip("/").split("/")
    place = manifest
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if change["op"] == "add" and isinstance(place, list) and last == "-":
        place.append(change["value"])
    elif change["op"] == "add" or (change["op"] == "replace" and last in place):
        place[last] = change["value"]
    else:
        raise ValueError(f"{change['op']} {change['path']} is not known")
