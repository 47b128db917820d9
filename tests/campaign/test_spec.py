"""A campaign is one byte string: however it is written, moved or read back, and whatever is wrong is named."""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fss import Scheme
from fss_ecdf.campaign.campaign import Campaign, check_digest, from_base64url, new_id, to_base64url
from fss_ecdf.campaign.errors import DigestMismatch, InvalidCampaign, InvalidQuery, InvalidValue
from fss_ecdf.campaign.text import is_text
from tests.campaign.helpers import LINEAR, campaign


def test_frozen_digest() -> None:
    """Stored campaigns depend on it."""
    commitments = [{"commitment": "A" * 43, "signing_key": "A" * 42 + "E", "hpke_key": "A" * 42 + "I"}] * 2
    times = {"opens": "2026-01-01T00:00:00Z", "closes": "2026-06-30T20:00:00+02:00"}
    frozen = campaign(strata=["no", "yes"], server_commitments=commitments, check_keys=True, **times)
    assert frozen.canonical.decode() == (
        '{"admission":"open","check_keys":true,"closes":"2026-06-30T18:00:00Z","epsilon":1.0,'
        '"id":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",'
        '"kem":"x25519","kind":"distribution","max_uploads":1000000,"max_values_per_person":1,'
        '"min_uploads":100,"opens":"2026-01-01T00:00:00Z",'
        '"question":"What risk does the model give your patients?","reserve":0.0,"seal":"by-agreement",'
        '"server_commitments":[{"commitment":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",'
        '"hpke_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI",'
        '"signing_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"},'
        '{"commitment":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",'
        '"hpke_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI",'
        '"signing_key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"}],"strata":["no","yes"],"tables":false,'
        '"title":"Risk score","variables":[{"categories":null,'
        '"grid":{"from":0.0,"kind":"linear","step":0.01,"to":1.0,"values":"float"},'
        '"mechanism":"slice-tree","missing":false,"name":"risk","scheme":"dcf","unit":"","weight":1.0}],"waves":null}'
    )
    assert to_base64url(frozen.digest) == "Yy0_oTZ23vvIl6Fsyeh4ImVtFPYcGFC3-SeGRURbuwk"


text = st.text(st.characters(exclude_categories=["C", "Z", "M"]), min_size=1, max_size=40).filter(is_text)


@given(
    title=text,
    question=text,
    strata=st.lists(text.map(str.strip).filter(bool), min_size=1, max_size=5, unique=True),
    epsilon=st.floats(0.01, 15),
    reserve=st.floats(0, 5),
    scheme=st.sampled_from(["dcf", "dpf"]),
    opens=st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda d: d.replace(tzinfo=UTC)),
)
def test_json_and_toml_are_the_same_campaign(**chosen: Any) -> None:
    first = campaign(**chosen)
    for again in (
        Campaign.from_json(first.to_json()),
        Campaign.from_json(first.canonical),
        Campaign.from_toml(first.to_toml()),
    ):
        assert again == first
        assert again.canonical == first.canonical
        assert again.digest == first.digest


@pytest.mark.parametrize(
    "change",
    [
        {"id": bytes(32)},
        {"title": "Other"},
        {"question": "Other?"},
        {"grid": {**LINEAR, "step": 0.02}},
        {"strata": ["a", "b"]},
        {"epsilon": 2.0},
        {"reserve": 0.5},
        {"name": "score"},
        {"unit": "%"},
        {"weight": 2.0},
        {"mechanism": "paper-tree"},
        {"scheme": "dpf"},
        {"min_uploads": 7},
        {"max_uploads": 7000},
        {"max_values_per_person": 2},
        {"admission": "invited"},
        {"admission": "sites"},
        {"closes": "2026-01-01T00:00:00Z", "seal": "at-closing"},
        {"opens": "2026-01-01T00:00:00Z"},
        {"closes": "2026-01-01T00:00:00Z"},
    ],
)
def test_every_field_is_in_the_digest(change: dict[str, Any]) -> None:
    assert campaign(**change).digest != campaign().digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": ""}, "title: String should have at least 1 character"),
        ({"title": "x" * 201}, "title: String should have at most 200 characters"),
        ({"question": ...}, "question: Field required"),
        ({"epsilon": 0.0}, "epsilon: Input should be greater than 0"),
        ({"epsilon": 1e-4}, "epsilon must be at least 0.01 for each value"),
        ({"epsilon": 1.0, "max_values_per_person": 2000}, "got 1 for 2000"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": "1"}, "epsilon: Input should be a valid number"),
        ({"reserve": -1.0}, "reserve: Input should be greater than or equal to 0"),
        ({"mechanism": "magic"}, "mechanism: Input should be 'slice-tree', 'paper-tree', 'paper-tree-exact' or 'flat'"),
        ({"name": ...}, "variables.0.name: Field required"),
        ({"name": ""}, "variables.0.name: String should have at least 1 character"),
        ({"name": "x" * 81}, "variables.0.name: String should have at most 80 characters"),
        ({"weight": 0.0}, "variables.0.weight: Input should be greater than 0"),
        ({"variables": []}, "variables: a campaign has exactly one variable, this one 0"),
        ({"variables": [{"name": name, "grid": LINEAR} for name in "ab"]}, "exactly one variable, this one 2"),
        ({"categories": ["a", "b"], "grid": LINEAR}, "needs either a grid or categories"),
        ({"grid": ...}, "needs either a grid or categories"),
        ({"categories": ["a"]}, "two or more different names"),
        ({"categories": ["a", "a"]}, "two or more different names"),
        ({"categories": ["a", "b\u202e"]}, "categories.1"),
        ({"categories": ["a", "missing"], "missing": True}, 'missing = true adds the category "missing"'),
        ({"categories": ["a", "b"], "unit": "kg"}, "categories have no unit"),
        ({"categories": ["a", "b"], "mechanism": "slice-tree"}, 'mechanism = "flat" is for categories'),
        ({"mechanism": "flat"}, 'mechanism = "flat" is for categories'),
        ({"categories": [str(i) for i in range(4097)]}, "at most 4096 categories, this campaign has 4097"),
        ({"categories": ["a", "b"], "kind": "survival", "strata": ["event", "censored"]}, "times of survival are"),
        ({"scheme": "xor"}, "scheme: Input should be 'dcf' or 'dpf'"),
        ({"strata": []}, "one or more different names"),
        ({"strata": ["a", "a"]}, "different names"),
        ({"strata": [" a"]}, "no blanks at its ends"),
        ({"strata": [str(i) for i in range(4097)]}, "at most 4096 strata, got 4097"),
        ({"strata": ["a", "b"], "grid": {"kind": "linear", "from": 0, "to": 2**32 - 1}}, "33 bits, at most 32"),
        ({"min_uploads": 0}, "min_uploads: Input should be greater than or equal to 1"),
        ({"max_uploads": 10**9}, "max_uploads: Input should be less than or equal to 100000000"),
        ({"min_uploads": 50, "max_uploads": 49}, r"max_uploads \(49\) is below min_uploads \(50\)"),
        ({"admission": "anyone"}, "admission: Input should be 'open', 'invited' or 'sites'"),
        ({"seal": "at-closing"}, "needs closes, the time at which both servers seal by themselves"),
        ({"opens": "2026-01-01T00:00:00"}, "opens: a time needs its zone"),
        ({"opens": "2026-01-02T00:00:00Z", "closes": "2026-01-01T00:00:00Z"}, "closes after it opens"),
        ({"scheme": "dpf", "grid": {"kind": "linear", "from": 0, "to": 2**27 - 1}}, "at most 26 bits; this one has 27"),
        ({"id": "abc"}, "id: a campaign's id must be 32 bytes in unpadded base64url"),
        ({"epsilon": 21.0}, "at most 20, got 21"),
        ({"reserve": float("inf")}, "reserve"),
        ({"strata": ["\ud800"]}, "strata"),
        ({"strata": ["x" * 201]}, "strata.0: String should have at most 200 characters"),
        ({"opens": "0001-01-01T00:00:00+23:59"}, "between 1970 and 9998"),
        ({"closes": "9999-12-31T23:59:59-01:00"}, "between 1970 and 9998"),
        ({"colour": "red"}, "colour: unknown field"),
    ],
)
def test_every_limit_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCampaign, match=message):
        campaign(**change)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ("[]", "JSON object"), ('{"id": 1, "id": 2}', "occurs twice"), ("[" * 100_000, "not JSON")],
)
def test_bad_json(text: str, message: str) -> None:
    with pytest.raises(InvalidCampaign, match=message):
        Campaign.from_json(text)


@pytest.mark.parametrize("text", ["a=" + "1" * 5000, "a=" + "[" * 900 + "]" * 900, "\x00"])
def test_toml_that_chokes_the_parser(text: str) -> None:
    with pytest.raises(InvalidCampaign):
        Campaign.from_toml(text)


def test_bad_toml() -> None:
    with pytest.raises(InvalidCampaign, match="not TOML"):
        Campaign.from_toml("title = ")
    with pytest.raises(InvalidCampaign, match="has an id already"):
        Campaign.from_toml(campaign().to_toml(), id=bytes(32))


def test_it_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        campaign().title = "other"


def test_positions_of_categories_and_missing_values() -> None:
    smoker = campaign(strata=["a", "b"], categories=["never", "none", "current"], missing=True)
    assert (smoker.variable.index_bits, smoker.bits, smoker.variable.size) == (2, 3, 4)
    placed = smoker.to_positions([" never", "none", "NA", None, "current"], ["a", "b", "a", "b", "b"])
    assert placed.positions.tolist() == [0, 4 + 1, 3, 4 + 3, 4 + 2]  # a category may be called like a missing value
    assert placed.missing == 2
    with pytest.raises(InvalidValue, match="row 8: 'x' is not one of 'never', 'none', 'current', 'missing'"):
        smoker.to_positions(["", "x"], ["a", "a"], first_row=7)
    some = campaign(missing=True)
    assert (some.variable.size, some.total_is_public, campaign().total_is_public) == (102, False, True)
    placed = some.to_positions(["0.5", "n/a", 7.0, float("nan")])
    assert placed.positions.tolist() == [50, 101, 100, 101]
    assert (placed.missing, placed.above) == (2, 1)
    with pytest.raises(InvalidValue, match="row 3: 'x' is not a finite number"):
        some.to_positions(["", "0.5", "x"])
    with pytest.raises(InvalidValue, match="not a finite number"):
        campaign().to_positions([""])


def test_the_noise_of_several_waves_of_categories_adds_up() -> None:
    one = campaign(categories=["a", "b", "c"])
    sums = one.released(((1.0, 2), (0.5, 1))).noise
    each = [one.released(((epsilon, 1),)).noise for epsilon in (1.0, 0.5)]
    assert sums.variance([0, 1, 2]) == pytest.approx(2 * each[0].variance([0, 1, 2]) + each[1].variance([0, 1, 2]))
    assert (one.noise.name, sums.name, one.noise.epsilon) == ("flat", "flat", 1.0)


def test_positions_put_the_stratum_in_front() -> None:
    three = campaign(strata=["a", "b", "c"])
    assert (three.variable.index_bits, three.stratum_bits, three.bits) == (7, 2, 9)
    placed = three.to_positions([0.0, 0.5, 1.0, 2.0], ["a", "b", "c", "c"])
    assert placed.positions.tolist() == [0, 128 + 50, 256 + 100, 256 + 100]
    assert placed.clipped == 1
    assert three.position(1, np.array([-1, 3])).tolist() == [127, 131]
    strata, index = three.strata_and_indices(placed.positions)
    assert (strata.tolist(), index.tolist()) == ([0, 1, 2, 2], [0, 50, 100, 100])
    assert three.position(strata, index).tolist() == placed.positions.tolist()
    assert three.position(3, 0) == 3 * 128
    assert three.key_type(1).scheme is Scheme.DCF
    with pytest.raises(InvalidQuery, match="'d' is not one of 'a', 'b', 'c'"):
        three.stratum("d")


@pytest.mark.parametrize(
    ("strata", "message"),
    [(None, "needs its stratum"), (["a"], "2 values but 1 strata"), (["a", "x"], "row 2: stratum 'x' is not one of")],
)
def test_bad_strata(strata: list[str] | None, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        campaign(strata=["a", "b"]).to_positions([0.1, 0.2], strata)


def test_a_mismatch_names_both_digests() -> None:
    one, other = campaign(), campaign(title="Other")
    check_digest(one.digest, one.digest)
    with pytest.raises(DigestMismatch) as caught:
        check_digest(one.digest, other.digest)
    assert to_base64url(one.digest) in str(caught.value)
    assert to_base64url(other.digest) in str(caught.value)


@given(st.binary(min_size=32, max_size=32))
def test_base64url_is_strict(data: bytes) -> None:
    encoded = to_base64url(data)
    assert from_base64url(encoded, 32, "it") == data
    for bad in (encoded + "=", encoded[:-1], encoded + "A", encoded.replace(encoded[0], "+"), " " + encoded, 7):
        with pytest.raises(ValueError, match="it must be 32 bytes"):
            from_base64url(bad, 32, "it")


def test_what_a_party_consents_to_is_the_total() -> None:
    assert campaign(epsilon=1.0, reserve=0.25).total_epsilon == 1.25
    assert json.loads(campaign().to_json())["reserve"] == 0.0


def test_new_ids_do_not_look_like_options() -> None:
    dashed = iter([b"\xf8" + bytes(31), b"\xfb" + bytes(31), bytes(range(32))])
    assert to_base64url(b"\xf8" + bytes(31)).startswith("-")
    assert new_id(lambda count: next(dashed)[:count]) == bytes(range(32))
