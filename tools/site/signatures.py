"""How a function or a class is called, as its source writes it: by the names of its types, one parameter a line."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

WIDTH = 84  # of a column of the page


class _Written:
    """An annotation that prints as it stands in the source."""

    def __init__(self, node: ast.expr) -> None:
        self.text = ast.unparse(node).strip("'\"")

    def __repr__(self) -> str:
        return self.text


def signature(name: str, item: Callable[..., Any], skip: int = 0) -> str:
    """The call without its first `skip` parameters, on one line if it fits."""
    try:
        found = inspect.signature(item)
    except (TypeError, ValueError):
        return f"{name}(...)"
    types = _types(item)
    given = [p.replace(annotation=types.get(p.name, p.annotation)) for p in found.parameters.values()]
    given = [p for p in given[skip:] if p.name != "self"]
    returned = types.get("return", inspect.Signature.empty)
    whole = name + str(found.replace(parameters=given, return_annotation=returned))
    if len(whole) <= WIDTH:
        return whole
    lines = [f"    {part}," for part in _parts(given)]
    end = "" if returned is inspect.Signature.empty else f" -> {returned!r}"
    return "\n".join([f"{name}(", *lines, f"){end}"])


def _parts(parameters: list[inspect.Parameter]) -> list[str]:
    """Each parameter as text, and the star before the first that is given by name only."""
    parts: list[str] = []
    for p in parameters:
        starred = any(part.startswith("*") for part in parts)
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        parts.append(str(p))
    return parts


def _types(item: Callable[..., Any]) -> dict[str, Any]:
    """Annotations by parameter, and that of what is returned; of a class also those of the classes it comes from."""
    known: dict[str, Any] = {}
    for one in reversed(item.__mro__) if isinstance(item, type) else (item,):
        known |= _own_types(one)
    return known


def _own_types(item: Callable[..., Any]) -> dict[str, Any]:
    """Those in its source; of a class, of its __init__ or its fields."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(item))).body
    except (OSError, TypeError):
        return {}
    if isinstance(node, ast.ClassDef):
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        found: dict[str, Any] = {ast.unparse(one.target): _Written(one.annotation) for one in fields}
        made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        return {**found, **(_of_function(made[0], returned=False) if made else {})}
    return _of_function(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else {}


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, *, returned: bool = True) -> dict[str, Any]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    found: dict[str, Any] = {a.arg: _Written(a.annotation) for a in every if a is not None and a.annotation}
    if returned and node.returns is not None:
        plan = node.returns  # a client's questions are plans, of which one gets the result
        is_plan = isinstance(plan, ast.Subscript) and ast.unparse(plan.value) == "Plan"
        found["return"] = _Written(plan.slice if is_plan and isinstance(plan, ast.Subscript) else plan)
    return found
