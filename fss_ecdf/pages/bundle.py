"""JavaScript modules joined into one script: no build by node, and what runs is what can be read.

A module is a file with `import { names } from "./other.js";` at its start and `export` before what it offers. Joined,
all of them are one scope: imports are dropped, each module stands behind what it imports, and a name that two modules
declare is an error. A lean script has no comments, no indentation, no empty lines, no line breaks beside brackets or
behind commas and no blanks beside operators, and is otherwise the same: the party's page is one file that people send
each other.
"""

import re
from pathlib import Path

_IMPORT = re.compile(r'^import \{[^}]*\} from "((?:\.{1,2}/)+[\w/]+\.js)";\n', re.MULTILINE)
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+|[\[{][^=]*[\]}])", re.MULTILINE)


# Types within a line have blanks or brackets around them, as no pattern of ours has.
_COMMENT = re.compile(
    r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n|(?<=[;,{)]) // .*|(?<=[ (])/\*\* @type [^*]*\*/ ", re.MULTILINE
)

_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""")
_BESIDE = re.compile(r" ?(=>|[=!]==|&&|\|\||\?\?|[{}(),;:?=*]) ?")


class JoinError(ValueError):
    """The modules cannot be one script."""


def imports(path: Path) -> list[Path]:
    return [(path.parent / name).resolve() for name in _IMPORT.findall(path.read_text())]


def in_order(entry: Path) -> list[Path]:
    """The modules that the entry needs, itself last; the same order every time."""
    done: list[Path] = []

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        if path in above:
            raise JoinError(f"{path.name} imports itself, through {', '.join(p.name for p in above)}")
        if path not in done:
            for other in imports(path):
                visit(other, (*above, path))
            done.append(path)

    visit(entry.resolve(), ())
    return done


def lean(name: str, text: str) -> str:
    """The same lines without what only readers need; a literal over several lines would change, and is an error."""
    plain = _COMMENT.sub("", text)
    if any(line.count("`") % 2 or line.endswith("\\") for line in plain.splitlines()):
        raise JoinError(f"{name} has a literal over several lines")
    lines = "".join(line.strip() + "\n" for line in plain.splitlines() if line.strip())
    closed = re.sub(r",?\n(?=[)\]}])", "", lines)
    joined = re.sub(r"(?<=[(\[{,])\n", "", closed)  # no statement ends there
    return "".join(_close_set(line) for line in joined.splitlines(keepends=True))


def _close_set(line: str) -> str:
    """Without blanks beside operators and brackets; a line with a pattern, a division or nested templates stays."""
    parts = _QUOTED.split(line)  # every second one is a literal
    if line.count("`") > 2 or any("/" in part for part in parts[::2]):
        return line
    return "".join(part if i % 2 else _BESIDE.sub(r"\1", part) for i, part in enumerate(parts))


def bundle(entry: Path, *, is_lean: bool = False) -> str:
    """One strict script that does what the entry's module does."""
    parts, seen = ['(() => {\n"use strict";\n'], dict[str, str]()
    for path in in_order(entry):
        text = path.read_text()
        for names in _DECLARED.findall(text):
            for name in re.findall(r"\w+", names):
                if name in seen:
                    raise JoinError(f"{name} is declared by {seen[name]} and by {path.name}")
                seen[name] = path.name
        body = re.sub(r"^export (?!default|\{|\*)", "", _IMPORT.sub("", text), flags=re.MULTILINE).strip()
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise JoinError(f"{path.name} has an import or export that is not understood here")
        parts.append(lean(path.name, body) if is_lean else f"// {path.name}\n{body}\n")
    return ("" if is_lean else "\n").join([*parts, "})();\n"])
