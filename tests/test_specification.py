"""docs/specification.md: its own program reproduces every vector, and so do all implementations."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dealer.key_pairs import make_keys_at
from fss import BackendError, backends, keys, table
from fss.check import Messages
from fss_ecdf.campaign.binary_messages import (
    UPLOAD_VERSION,
    VERSION,
    ShareMessage,
    decode_shares,
    decode_uploads,
    encode_shares,
    upload_rows,
)
from fss_ecdf.campaign.campaign import Campaign, Positions
from fss_ecdf.campaign.contribution import Contribution
from fss_ecdf.campaign.errors import InvalidPeerResponse, Problem
from fss_ecdf.campaign.json_messages import CheckMessagesQuery, read
from fss_ecdf.campaign.noise.sums import read_sums
from fss_ecdf.campaign.sealed_uploads import open_first, open_upload, part_info, seal_upload, sealed_bytes, token_digest
from fss_ecdf.net.server_identity import Identity, is_signed
from servers.release.noise import Prf
from servers.release.statement import (
    Statement,
    covered,
    covered_messages,
    messages_question,
    noise_commitment,
    require_messages_signed,
)
from servers.release.sum_noise import purpose, sum_noise
from servers.storage.entries import set_checksum
from tests.oracle.page import PAGE, blocks, specified
from tests.vectors import make_messages

page = specified()
VECTORS = Path(__file__).parent / "vectors"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


MESSAGES = vectors("messages")
CHECKS = vectors("fss_check")
SCHEMES = {"dcf": 1, "dpf": 2}


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["name"].replace(" ", "-")) for case in cases]


def test_the_page_is_a_program_of_its_own() -> None:
    """It imports the standard library and a cipher, and nothing of ours: who has only the page has all of it."""
    modules = set()
    for node in ast.walk(ast.parse("".join(blocks()))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
    assert modules == {"base64", "hashlib", "hmac", "json", "math", "re", "datetime", "decimal", "fractions", "Crypto"}


def test_versions_on_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    own = f"| key | {keys.VERSION} |", f"| table | {table.VERSION} |"
    for row in (*own, f"| upload envelope | {UPLOAD_VERSION} |", f"| shares | {VERSION} |"):
        assert row in text
    for name in VECTORS.glob("*.json"):
        assert f"`tests/vectors/{name.name}`" in text


def test_defaults_on_the_page_are_those_of_the_code() -> None:
    variable = {"name": "x", "grid": {"kind": "linear", "from": 0, "to": 1}}
    fields = {"id": bytes(32), "title": "x", "question": "x", "epsilon": 1.0, "variables": [variable]}
    dumped = Campaign.from_dict(fields).model_dump(mode="json", by_alias=True)
    assert {name: value for name, value in dumped.items() if name not in fields} == page.DEFAULTS
    (dumped,) = dumped["variables"]
    assert dumped == {**page.GRID_DEFAULTS, "name": "x", "grid": dumped["grid"]}
    chosen = {"name": "x", "categories": ["a", "b"]}
    made = Campaign.from_dict({**fields, "variables": [chosen]})
    (dumped,) = made.model_dump(mode="json", by_alias=True)["variables"]
    assert dumped == {**page.CATEGORY_DEFAULTS, **chosen}


@pytest.mark.parametrize("case", vectors("fss_keys")["good"], ids=lambda c: f"{c['scheme']}-{c['bits']}-{c['alpha']}")
def test_keys_by_the_page(case: dict[str, Any]) -> None:
    binder = bytes.fromhex(vectors("fss_keys")["binder"])
    rand = bytes.fromhex(case["rand"])
    made, _ = page.generate(SCHEMES[case["scheme"]], case["bits"], binder, case["alpha"], rand, case["beta"])
    assert [key.hex() for key in made] == case["keys"]
    assert [[page.evaluate(key, binder, t) for t in case["points"]] for key in made] == case["shares"]


@pytest.mark.parametrize("case", CHECKS["good"], ids=lambda c: f"{c['scheme']}-{c['bits']}-{c['alpha']}")
def test_proofs_and_messages_by_the_page(case: dict[str, Any]) -> None:
    binder, digest, *seeds = (bytes.fromhex(CHECKS[name]) for name in ("binder", "digest", "seed0", "seed1"))
    scheme, rand = SCHEMES[case["scheme"]], bytes.fromhex(case["rand"])
    made, states = page.generate(scheme, case["bits"], binder, case["alpha"], rand[:32])
    proofs = page.prove(scheme, case["bits"], binder, case["alpha"], states, rand[32:])
    assert [proof.hex() for proof in proofs] == case["proofs"]
    drawn = page.challenge(scheme, case["bits"], digest, *seeds)
    assert drawn["tau"] == case["tau"]
    told = [page.message(key, proof, binder, drawn) for key, proof in zip(made, proofs, strict=True)]
    assert [b"".join(map(page.word, message)).hex() for message in told] == case["messages"]
    assert page.accepted(*told, case["bits"], drawn)
    assert not page.accepted((told[0][0] + 1, *told[0][1:]), told[1], case["bits"], drawn)


@pytest.mark.parametrize(
    ("rows", "units", "epsilon", "instances"),
    [
        ([[0, 1, 5], [3, 3, 1]], [1, 2], 1.0, 1),
        ([[0, 70_000, -5]], [70_005], 0.3, 3),
        ([[0, 10**9, 4], [1, 0, 0]], [10**9, 1], 0.1, 1),
    ],
)
def test_noise_of_sums_by_the_page(rows: list[list[int]], units: list[int], epsilon: float, instances: int) -> None:
    query = read_sums(rows, epsilon, cells=3, units=units, instances=instances)
    assert page.sums_digest(rows, units, epsilon, instances) == query.digest
    assert page.sum_sensitivity(rows, units) == query.sensitivity.value
    rates = [page.sum_rate(unit, query.sensitivity.value, epsilon, instances) for unit in units]
    assert rates == list(query.rates)
    secret, covered, name = bytes(range(32)), bytes(range(96)), purpose(query).encode()

    def draw(level: int, number: int) -> int:
        return int(page.uniform(secret, 1, covered, name, level, number))

    noise = [page.sum_noise(draw, number, rate) for number, rate in enumerate(rates)]
    assert noise == sum_noise(query, Prf(secret, 1, covered, name)).tolist()


TABLES = vectors("fss_table")


@pytest.mark.parametrize("case", TABLES["good"], ids=lambda c: f"{len(c['histogram'])}-{sum(c['histogram'])}")
def test_tables_by_the_page(case: dict[str, Any]) -> None:
    secret, context, binder, challenge = (
        bytes.fromhex(TABLES[name]) for name in ("secret", "context", "binder", "challenge")
    )
    histogram, sizes = case["histogram"], (len(case["histogram"]), sum(case["histogram"]))
    assert page.table_shape(*sizes) == (case["base"], case["coins"], case["degree"])
    seed, words = page.table_share(histogram, secret, context, binder)
    assert (seed.hex(), words.hex()) == (case["seed"], case["words"])
    tau = page.table_point(challenge)
    assert tau == TABLES["tau"]
    shares = page.table_expand(seed, binder, *sizes, len(words) // 8), page.words(words)
    told = [page.table_message(share, *sizes, tau) for share in shares]
    assert [b"".join(map(page.word, message)).hex() for message in told] == case["messages"]
    assert [page.table_counts(share, *sizes) for share in shares] == case["counts"]
    assert page.table_accepted(*told, sizes[1])


def test_shapes_and_what_is_no_table_by_the_page() -> None:
    for positions, count, *shape in TABLES["shapes"]:
        assert list(page.table_shape(positions, count)) == shape
    for case in TABLES["rejected"]:
        told = page.table_message(page.words(bytes.fromhex(case["words"])), 2, 2, TABLES["tau"])
        assert b"".join(map(page.word, told)).hex() == case["message"]
        assert not page.table_accepted(told, (0, 0, 0, 0), 2), case["name"]


def test_seeds_by_the_page() -> None:
    given = {name: value if name == "commitments" else bytes.fromhex(value) for name, value in CHECKS["seed"].items()}
    assert page.check_seed(given["secret"], given["campaign"]) == given["seed"]
    made = [page.commitment(b, given["campaign"], given["seed"]).hex() for b in (0, 1)]
    assert made == given["commitments"]


# Tables for 32 levels take the page's plain sums minutes; the oracle has that one (tests/servers/test_noise.py).
SMALL_NOISE = [case for case in vectors("noise")["cases"] if case["depth"] < 10 or case["mechanism"] == "paper-tree"]


@pytest.mark.parametrize("case", SMALL_NOISE, ids=lambda c: f"{c['mechanism']}-{c['depth']}")
def test_noise_by_the_page(case: dict[str, Any]) -> None:
    seed, covered = bytes.fromhex(case["seed"]), bytes.fromhex(case["covers"])
    depth, purpose = case["depth"], f"curve {case['mechanism']}".encode()
    about = depth, case["epsilon"], case["instances"]
    table = page.tables(page.level_weights(*about)) if case["mechanism"] == "slice-tree" else None
    for server in (0, 1):

        def draw(level: int, node: int, server: int = server) -> int:
            return int(page.uniform(seed, server, covered, purpose, level, node))

        found = [
            page.slice_noise(draw, table, depth, t)
            if table
            else page.paper_noise(draw, page.paper_rate(*about), depth, t)
            for t in case["positions"]
        ]
        assert found == case["noise"][server]


def test_the_vectors_of_messages_are_those_of_the_page() -> None:
    assert make_messages.body() == MESSAGES


@pytest.mark.parametrize("case", named(MESSAGES["good"]))
def test_campaigns_and_positions(case: dict[str, Any]) -> None:
    campaign = Campaign.from_dict(case["fields"])
    assert campaign.canonical.decode() == case["canonical"]
    assert campaign.digest.hex() == case["digest"]
    assert campaign.bits == case["bits"]
    assert Campaign.from_json(case["canonical"]) == campaign
    values = [row["value"] for row in case["values"]]
    placed = campaign.to_positions(values, [campaign.strata[row["stratum"]] for row in case["values"]])
    assert placed.positions.tolist() == [row["position"] for row in case["values"]]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("case", named(MESSAGES["good"]))
def test_envelopes(case: dict[str, Any], backend: str) -> None:
    """Both kernels make the very bytes, and a server reads them."""
    campaign = Campaign.from_dict(case["fields"])
    placed = Positions(np.array([row["position"] for row in case["values"]]), 0, 0)
    ids = np.frombuffer(bytes.fromhex("".join(case["ids"])), np.uint8).reshape(-1, 16)
    try:
        with backends.using(backend):
            shared = make_keys_at(placed, campaign, bytes.fromhex(case["rand"]), ids, case["wave"])
    except BackendError as error:
        pytest.skip(str(error))
    assert [shared.envelope(b).hex() for b in (0, 1)] == case["envelopes"]
    for server in (0, 1):
        decoded = decode_uploads(bytes.fromhex(case["envelopes"][server]), campaign, server)
        assert decoded.ids.tobytes().hex() == "".join(case["ids"])
        contribution, rows = upload_rows(bytes.fromhex(case["envelopes"][server]), campaign, server)
        assert contribution == Contribution(campaign.variable.scheme, wave=case["wave"])
        assert [(i + leaf).hex() for i, leaf, _ in rows] == case["entries"]
    assert set_checksum(bytes.fromhex("".join(sorted(case["entries"])))).hex() == case["checksum"]


@pytest.mark.parametrize("case", named([case for case in MESSAGES["good"] if "sealed" in case]))
def test_sealed_uploads(case: dict[str, Any]) -> None:
    """What the page's program encrypts a server opens; what a party encrypts the page's program opens."""
    campaign, sender = Campaign.from_dict(case["fields"]), token_digest(case["token"])
    for server, secret in enumerate(make_messages.SECRETS):
        key = Identity(secret, server).hpke_key(campaign.id, "x25519", make_messages.SALT)
        plain, sealed = (bytes.fromhex(case[form][server]) for form in ("envelopes", "sealed"))
        assert open_upload(sealed, campaign, server, sender, key.open) == plain
        ours = seal_upload(campaign, server, plain, make_messages.TOKEN)
        seed = page.hpke_secret(secret, "x25519", campaign.id, make_messages.SALT)
        assert len(ours) == len(sealed) == sealed_bytes(campaign, len(case["ids"]))
        head, cut = ours[:64], sealed_bytes(campaign, 1)
        first = page.hpke_open(seed, part_info(head, sender, 0, False), ours[64:cut])
        rest = page.hpke_open(seed, part_info(head, sender, 1, True, ours[64:96]), ours[cut:])
        assert plain == head + first + rest
        assert open_first(ours[:cut], len(case["ids"]), sender, key.open).hex() == case["ids"][0]


RISK = Campaign.from_dict(MESSAGES["good"][0]["fields"])


@pytest.mark.parametrize("case", named(MESSAGES["bad_envelopes"]))
def test_malformed_envelopes(case: dict[str, Any]) -> None:
    with pytest.raises(Problem) as refused:
        decode_uploads(bytes.fromhex(case["envelope"]), RISK, 0)
    assert refused.value.code == case["code"]


@pytest.mark.parametrize("case", named(MESSAGES["bad_campaigns"]))
def test_malformed_campaigns(case: dict[str, Any]) -> None:
    with pytest.raises(Problem) as refused:
        Campaign.from_dict(case["fields"])
    assert refused.value.code == case["code"]


@pytest.mark.parametrize("server", [0, 1])
def test_statements_and_signed_answers(server: int) -> None:
    case, question = MESSAGES["answers"]["servers"][server], MESSAGES["answers"]["question"].encode()
    identity = Identity(bytes.fromhex(case["secret"]), server)
    assert RISK.server_commitments is not None
    assert identity.commit(RISK.id, RISK.kem, make_messages.SALT) == RISK.server_commitments[server]
    stated = Statement.model_validate_json(case["statement"])
    assert stated.to_json() == case["statement"]
    assert (stated.keys.hex(), stated.digest) == (case["key_file"], RISK.digest)
    assert stated.noise == noise_commitment(bytes.fromhex(case["noise_secret"]))
    assert identity.sign(b"fss-ecdf statement 1\n" + case["statement"].encode()).hex() == case["statement_signature"]
    elements = np.array(case["elements"], np.uint64)
    answer = encode_shares(RISK, ShareMessage(server, stated.checksum, stated.count, elements))
    assert answer.hex() == case["answer"]
    assert identity.sign(covered(stated, question, answer)).hex() == case["signature"]
    assert is_signed(identity.signing_key, covered(stated, question, answer), bytes.fromhex(case["signature"]))
    assert decode_shares(answer, RISK, server, 3).elements.tolist() == case["elements"]


@pytest.mark.parametrize("server", [0, 1])
def test_signed_check_messages(server: int) -> None:
    case, question = MESSAGES["answers"]["servers"][server], MESSAGES["answers"]["messages_question"].encode()
    told, query = bytes.fromhex(case["messages"]), question.partition(b"\n")[2]
    asked = read(CheckMessagesQuery, query)
    assert (asked.to_json().encode(), messages_question(0, query)) == (query, question)
    assert len(Messages.from_bytes(told, asked.stop - asked.start)) == 2
    identity = Identity(bytes.fromhex(case["secret"]), server)
    assert identity.sign(covered_messages(server, question, told)).hex() == case["messages_signature"]
    answer = told + bytes.fromhex(case["messages_signature"])
    require_messages_signed(RISK, server, question, answer)
    for wrong in (
        (1 - server, question, answer),
        (server, question.replace(b"wave=0", b"wave=1"), answer),
        (server, question, bytes([answer[0] ^ 1]) + answer[1:]),
    ):
        with pytest.raises(InvalidPeerResponse, match="not signed"):
            require_messages_signed(RISK, *wrong)


@pytest.mark.parametrize("case", named(MESSAGES["answers"]["bad"]))
def test_malformed_answers(case: dict[str, Any]) -> None:
    with pytest.raises(Problem) as refused:
        decode_shares(bytes.fromhex(case["answer"]), RISK, 1, 3)
    assert refused.value.code == case["code"]
