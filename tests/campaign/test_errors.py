"""One table of problems: stable codes, one meaning each, readable by the other side."""

import pytest

from fss_ecdf.campaign.errors import URN, InvalidValue, Problem, TooManyRequests, from_document, problems


def test_codes_are_unique_and_stable() -> None:
    codes = [kind.code for kind in problems()]
    assert len(set(codes)) == len(codes)
    assert codes == [
        "agreement-pending",
        "body-too-large",
        "body-too-slow",
        "budget-exceeded",
        "campaign-closed",
        "campaign-deleted",
        "campaign-exists",
        "campaign-full",
        "campaign-sealed",
        "challenge-mismatch",
        "digest-mismatch",
        "digest-needed",
        "headers-too-large",
        "hpke-key-lost",
        "internal",
        "invalid-campaign",
        "invalid-input",
        "invalid-peer-response",
        "invalid-query",
        "invalid-upload",
        "invalid-value",
        "invitation-used",
        "no-such-route",
        "not-authenticated",
        "not-authorised",
        "not-ready",
        "not-sealed",
        "not-yet-open",
        "on-hold",
        "peer-rolled-back",
        "peer-unavailable",
        "refused",
        "site-exists",
        "site-paused",
        "site-quota-exceeded",
        "site-revoked",
        "smoothing-failed",
        "storage-busy",
        "storage-full",
        "too-few-uploads",
        "too-many-requests",
        "too-many-rows",
        "too-noisy",
        "try-again",
        "unknown-campaign",
        "unknown-site",
        "unreadable-upload",
        "unsupported-media-type",
        "upload-conflict",
        "upload-undecided",
        "upload-withdrawn",
        "wave-closed",
        "wave-not-open",
    ]


@pytest.mark.parametrize("kind", problems(), ids=lambda k: k.code)
def test_every_problem_survives_the_wire(kind: type[Problem]) -> None:
    assert 400 <= kind.status < 600
    sent = kind("what was wrong")
    document = sent.document()
    assert document == {"type": URN + kind.code, "title": kind.title, "status": kind.status, "detail": "what was wrong"}
    got = from_document(document)
    assert type(got) is kind
    assert got.detail == "what was wrong"


def test_an_unknown_problem_is_still_one() -> None:
    got = from_document({"type": "urn:other", "title": "Odd", "detail": "thing"})
    assert type(got) is Problem
    assert str(got) == "Odd: thing"


def test_kinds() -> None:
    assert issubclass(InvalidValue, ValueError)
    assert TooManyRequests("later", retry_after=3).retry_after == 3
