"""What a text may hold: the same in Python, in the page and in the specification, with every rejected value frozen."""

import json
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fss_ecdf.campaign.errors import InvalidCampaign, InvalidQuery, from_document
from fss_ecdf.campaign.json_messages import NewSite, read
from fss_ecdf.campaign.text import FORBIDDEN, all_shown, check_text, is_address, is_text, shown, spreadsheet_cell
from tests.campaign.helpers import campaign
from tests.vectors import make_texts

VECTORS: dict[str, list[list[int]]] = json.loads((Path(make_texts.__file__).with_name("texts.json")).read_text())


def words(kind: str) -> list[str]:
    return ["".join(map(chr, points)) for points in VECTORS[kind]]


def test_the_vectors_are_those_of_the_specification() -> None:
    assert make_texts.made() == VECTORS


def test_texts_and_addresses_of_the_vectors() -> None:
    assert all(is_text(text) for text in words("good"))
    assert not any(is_text(text) for text in words("rejected"))
    assert all(is_address(text) for text in words("good_addresses"))
    assert not any(is_address(text) for text in words("rejected_addresses"))


@pytest.mark.parametrize("mark", ["\u0301", "\u09be", "\u20dd"], ids=["Mn", "Mc", "Me"])
def test_a_mark_at_the_start_does_not_stand_on_what_comes_before(mark: str) -> None:
    assert shown(mark + "a") == f"\\u{{{ord(mark):x}}}a"
    assert shown("a" + mark) == "a" + mark


def test_every_character_that_is_no_letter_mark_or_sign_is_forbidden() -> None:
    """By this Python's Unicode: a new version that adds format characters fails here."""
    forbidden = {c for first, last in FORBIDDEN for c in range(first, last + 1)}
    kinds = {c: unicodedata.category(chr(c)) for c in range(sys.maxunicode + 1)}
    assert {c for c, kind in kinds.items() if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")} <= forbidden
    # Of what is assigned, only these are forbidden besides: fillers, variation selectors, the blank of Braille.
    others = {c for c in forbidden if kinds[c] not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Cn")}
    assert all(re.search("FILLER|SELECTOR|JOINER|INHERENT|BLANK|REPLACEMENT", unicodedata.name(chr(c))) for c in others)


@pytest.mark.parametrize("bad", ["a\x1b[2Jb", "a\nb", "a\u202eb", "a\u200bb", "a\u2029b", "a\x9bb", "a\U000e0041b"])
@pytest.mark.parametrize("field", ["title", "question", "unit", "name", "strata", "grid"])
def test_no_text_of_a_campaign_takes_them(field: str, bad: str) -> None:
    days = {"kind": "linear", "values": "date", "from": f"2026-01-01{bad[1]}10:00", "to": "2026-12-31", "step": 1}
    values: dict[str, Any] = {"strata": ["no", bad], "grid": days}
    with pytest.raises(InvalidCampaign, match=f"{field}.*(U\\+|a date is written like)") as caught:
        campaign(**{field: values.get(field, bad)})
    assert is_text(str(caught.value))


def test_labels_and_ids_of_sites() -> None:
    good = {"id": "a" * 32, "label": "St. Mary", "token": "0" * 64, "quota": 3}
    assert read(NewSite, good).label == "St. Mary"
    for change in (
        {"label": "St.\x1b[A Mary"},
        {"label": " St. Mary"},
        {"id": "../../D/sites/X"},
        {"id": "a" * 32 + "\n"},
    ):
        with pytest.raises(InvalidQuery) as caught:
            read(NewSite, {**good, **change})
        assert is_text(str(caught.value))


@given(st.text(max_size=60))
def test_what_is_shown_has_nothing_forbidden_and_good_texts_stay(text: str) -> None:
    told = shown(text)
    assert not any(first <= ord(c) <= last for c in told for first, last in FORBIDDEN)
    assert shown(told) == told
    assert told == text or not is_text(text) or any(unicodedata.category(c) in ("Mn", "Me") for c in text)
    assert all_shown({text: [text, {"a": text}, 1, None]}) == {told: [told, {"a": told}, 1, None]}


def test_an_unknown_field_does_not_reach_a_terminal_as_it_is() -> None:
    with pytest.raises(InvalidCampaign, match=re.escape(r"\u{1b}[2Jx: unknown field")):
        campaign(**{"\x1b[2Jx": 1})
    with pytest.raises(InvalidQuery, match=re.escape(r"\u{1b}[2Jx")):
        read(NewSite, {"\x1b[2Jx": 1})


def test_the_words_of_another_server_are_one_line() -> None:
    for kind in ("urn:fss-ecdf:problem:refused", "urn:else"):
        problem = from_document(
            {"type": kind, "title": "t\n", "detail": "no\r\n\x1b[1Aserver 1: yes\u202e" + "x" * 9999}
        )
        assert "no\\u{d}\\u{a}\\u{1b}[1Aserver 1: yes\\u{202e}x" in problem.detail
        assert problem.detail.isprintable()
        assert len(problem.detail) < 2200


def test_text_is_checked_in_good_time() -> None:
    """A hostile text of the longest kind; no expression goes back and forth over it."""
    for text in ("a " * 1000, "\u0301" * 2000, "https://" + "a-" * 240):
        is_text(text), is_address(text)
    with pytest.raises(ValueError, match=r"character 3 is U\+202E"):
        check_text("ab\u202ec")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("a;=1+1", "a;'=1+1"),  # where the separator is a semicolon
        ("-1.5e3", "-1.5e3"),
        ("+7", "+7"),
        ("no event", "no event"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_no_cell_starts_a_formula(text: str, cell: str) -> None:
    assert spreadsheet_cell(text) == cell
