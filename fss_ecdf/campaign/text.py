"""Text that people write into a campaign, a site or an address, and how text of others is shown.

What a person agrees to is read on a terminal or a page. So a text has no character that moves a cursor, turns the
direction of writing, is invisible, or belongs to nobody; and no blanks at its ends or side by side, with which lines
could be imitated. The same rule is in `fss_ecdf/pages/party/text.js`; `tests/vectors/texts.json` has texts that both
accept and reject. The ranges are fixed: two servers, or a server and a browser, of other versions of Unicode agree.

>>> shown("a\\x1b[2Jb\\u202ec")
'a\\\\u{1b}[2Jb\\\\u{202e}c'
"""

import re
import unicodedata
from typing import Any

MOST_MARKS = 4  # combining ones in a row
MOST_ADDRESS = 500

# Control (C0, C1), format and bidirectional characters, line and paragraph separators, what is invisible by default,
# surrogates, private use, noncharacters, and the planes in which nothing is, with the tags.
FORBIDDEN = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0x1FFFE, 0x1FFFF),
    (0x2FFFE, 0x2FFFF),
    (0x3FFFE, 0x10FFFF),
)
BLANKS = (
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]"


_FORBIDDEN = re.compile(_class(FORBIDDEN))
_BLANKS = re.compile(f"^{_class(BLANKS)}|{_class(BLANKS)}{{2}}|{_class(BLANKS)}$")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_ADDRESS = re.compile(
    rf"https://(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{{0,4}}))?"
    r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?"
)


def check_text(text: str) -> str:
    """The text, or a ValueError that says what is wrong without repeating it."""
    found = _FORBIDDEN.search(text)
    if found:
        raise ValueError(f"character {found.start() + 1} is U+{ord(found[0]):04X}, which is invisible or a control")
    if _BLANKS.search(text):
        raise ValueError("a text has no blanks at its ends and no two in a row")
    return text


def is_text(text: str) -> bool:
    try:
        check_text(text)
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    """Of a server, or of something there: https, a host, perhaps a port and a path; nothing else, and all ASCII."""
    found = _ADDRESS.fullmatch(text) if len(text) <= MOST_ADDRESS else None
    return found is not None and int(found[1] or 443) < 1 << 16


def check_address(text: str) -> str:
    if not is_address(text):
        raise ValueError("an address is https://, a host, perhaps a port and a path: no user, blank, ? or #")
    return text


def shown(text: str) -> str:
    """A text that another person or a server wrote, on one line: what the rule forbids is spelt out.

    So are combining marks at its start or in heaps, which would stand on other letters and lines.
    """
    if text.isascii() and text.isprintable():
        return text
    parts, marks = list[str](), MOST_MARKS
    for one in text:
        marks = marks + 1 if unicodedata.category(one) in ("Mn", "Mc", "Me") else 0
        parts.append(f"\\u{{{ord(one):x}}}" if marks > MOST_MARKS or _FORBIDDEN.match(one) else one)
    return "".join(parts)


def shown_lines(text: str) -> str:
    """The same for lines of our own with such texts in them: their ends and tabs stay."""
    return _FORBIDDEN.sub(lambda found: found[0] if found[0] in "\n\r\t" else shown(found[0]), text)


def all_shown(value: Any) -> Any:
    """The same for every text in parsed JSON, names of fields included."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [all_shown(one) for one in value]
    if isinstance(value, dict):
        return {shown(name): all_shown(one) for name, one in value.items()}
    return value


def spreadsheet_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, wherever it thinks that a cell begins."""
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1'\2", text)


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FORMULA = re.compile(r"(^|[;\t\r\n]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])")
