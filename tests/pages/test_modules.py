"""The party's JavaScript is a second implementation of the protocol: identical to Python, bit for bit."""

import pytest
from selenium.common.exceptions import JavascriptException
from selenium.webdriver import Chrome

from fss_ecdf.campaign.errors import Problem
from tests.pages import checks, sealing_checks, table_checks
from tests.pages.probing import SOURCE, Probe

pytestmark = pytest.mark.browser

CHECKS = {
    c.__name__: c
    for c in (
        checks.hashes,
        checks.aes,
        checks.field,
        checks.vectors,
        checks.few_keys,
        checks.digests,
        checks.positions,
        checks.envelopes,
        checks.messages,
        table_checks.tables,
        table_checks.typed_numbers,
        checks.refusals,
        checks.texts,
        sealing_checks.hpke,
        sealing_checks.sealed_uploads,
        sealing_checks.confirmations,
        sealing_checks.acknowledgements,
    )
}


@pytest.mark.parametrize("name", CHECKS)
def test_javascript_does_what_python_does(probe: Probe, name: str) -> None:
    CHECKS[name](probe)


def test_forty_thousand_random_keys(probe: Probe) -> None:
    assert checks.many_keys(probe, 1280) >= 40_000


# What is broken, how, and the check that must notice.
MUTANTS = [
    ("hpke", '"eae_prk"', '"eae_key"'),
    ("hpke", "concat(enc, publicKey), 32", "concat(publicKey, enc), 32"),
    ("hpke", '"info_hash", info', '"info_hash", NOTHING'),
    ("hpke", '"base_nonce", context, 12', '"key", context, 12'),
    ("hpke", "tagLength: 128", "tagLength: 96"),
    ("sealed_uploads", "setUint32(0, number, true)", "setUint32(0, 0, true)"),
    ("sealed_uploads", "last ? 1 : 0", "1"),
    ("sealed_uploads", "parts[1].subarray(0, ENCAPSULATED_BYTES)", "new Uint8Array(32)"),
    ("sealed_uploads", "campaign.hpkeKeys[server]", "campaign.hpkeKeys[0]"),
    ("sealed_uploads", "sha256(utf8(token))", "new Uint8Array(32)"),
    ("confirmations", "Uint8Array.of(server), sha256(ids)", "Uint8Array.of(1), sha256(ids)"),
    ("confirmations", "Uint8Array.of(server), sha256(ids)", "Uint8Array.of(server)"),
    ("acknowledgements", "about.setUint8(0, server)", "about.setUint8(0, 1)"),
    ("acknowledgements", "about.setUint32(1, wave, true)", "about.setUint32(1, 0, true)"),
    ("acknowledgements", "new Uint8Array(about.buffer), sha256(leaves)", "new Uint8Array(about.buffer)"),
    ("acknowledgements", "new Uint8Array(about.buffer), first, second", "new Uint8Array(about.buffer), second, first"),
    ("confirmations", "campaign.signingKeys?.[server]", "campaign.signingKeys?.[0]"),
    ("confirmations", "return await crypto.subtle.verify(", "return true || ("),
    ("refusals", '!== "x25519")', '=== "x448")'),
    ("messages", "campaign.digest, 8", "campaign.digest, 9"),
    ("aes", "0x11b", "0x11d"),
    ("aes", "((x & 0x0000fc00) >>> 2)", "((x & 0x0000fc00) >>> 4)"),
    ("aes", "i === 0 || i === 1 || i === 3 || i === 4", "i === 0 || i === 1 || i === 3"),
    ("aes", "q[1] = z12 ^ t48 ^ ~t62", "q[1] = z12 ^ t48 ^ t62"),
    ("hashes", "rate - 1] ^= 0x80", "rate - 1] |= 0x80"),  # differs only where the suffix fills the last byte
    ("hashes", "message.length << 3", "message.length"),
    ("hashes", "length, 168, domain, 12", "length, 168, domain, 24"),
    ("hashes", "key.length > 64 ? sha256(key) : key", "key.subarray(0, 64)"),
    ("field", "const over = (high + Math.floor((low + 1) / WORD)) >>> 29;", "const over = high >>> 29;"),
    ("field", "low += Math.floor(high / 0x20000000);", ""),
    ("field", "(high & HIGH_MASK) + Math.floor(low / WORD);", "high & HIGH_MASK;"),
    ("field", "c0 = a0 * b0 + 4 *", "c0 = a0 * b0 + 2 *"),
    ("field", "(r1 & 0x7ff) * LIMB + above", "(r1 & 0x7ff) * LIMB"),
    ("few_keys", "seeds[5] |= TOP", "seeds[5] &= ~TOP"),
    ("few_keys", "const beta = ~right & 1", "const beta = right & 1"),
    ("few_keys", "((end - leaf - 1) >>> 31) & 1", "((end - leaf) >>> 31) & 1"),
    ("few_keys", "out[control] |= flag", "out[control] = flag"),
    ("few_keys", "c1 ^ (apart & right)", "c1"),
    ("few_keys", "alpha >>> (type.bits - 1 - level)", "alpha >> (type.bits - level)"),
    ("few_keys", "(alpha >>> type.leafBits) + 1", "alpha >>> type.leafBits"),
    ("few_keys", "(i ? 0 : first)", "0"),
    ("few_keys", "negHigh(keep1h) + keep0h + cwh", "negHigh(keep1h) + keep0h"),
    ("vectors", "i === j ? 1n : -1n", "1n"),
    ("digests", "=> byCodePoint(a, b));", "=> (a < b ? -1 : 1));"),
    ("digests", "return value.text;", "return String(value.value);"),
    ("digests", 'padStart(4, "0")}`;', 'padStart(2, "0")}`;'),
    ("positions", "list[middle] >= x", "list[middle] > x"),
    ("positions", "return this.threshold(at) < x ? at + 1 : at", "return at"),
    ("positions", "const DIGITS = 50", "const DIGITS = 17"),
    ("positions", "tau = times(tau, factor)", "tau = decimal(String(toDouble(times(tau, factor))))"),
    ("positions", "!right || hours > 23", "hours > 23"),
    ("envelopes", "      campaign.digest,\n      littleEndian([wave])", "      littleEndian([wave])"),
    ("envelopes", "      littleEndian([wave]),\n", ""),
    ("envelopes", "const from = 8 * count", "const from = 8"),
    ("envelopes", "UPLOAD_VERSION, party]", "UPLOAD_VERSION, 0]"),
    ("tables", "if (x > highest) found.above", "if (x >= highest) found.above"),
    ("tables", "cell += '\"';", ""),
    ("tables", "if (x < lowest) found.below", "if (x <= lowest) found.below"),
    ("tables", '"na", ', ""),
    ("tables", "return !first.some(", "return first.some("),
    ("tables", "this.line += part", "this.column += part"),
    ("tables", "WITH_COMMA.test(row[0])", "false"),
    ("tables", "widths[0] > 1 && fit > best", "widths[0] > 1"),
    ("typed_numbers", ".replace(MINUS,", ".replace(/x/,"),
    ("typed_numbers", "mark !== decimalMark(language) && ", ""),
    ("typed_numbers", "withoutUnit(stripped(text)", "withoutUnit((text)"),
    ("typed_numbers", "text.slice(end).toLowerCase() ===", "text ==="),
    ("refusals", 'fields.get("scheme") !== "dcf"', "false"),
    ("refusals", "number.text !== String(server)", "false"),
    ("refusals", "found !== digest", "false"),
    ("refusals", "found.has(name)", "false"),
    ("refusals", "this.checked && this.bits > MAX_CHECKED_BITS", "false"),
    ("texts", "\\\\u2028-\\\\u202e", "\\\\u2029-\\\\u202e"),
    ("texts", "{2}|${ONE_BLANK}", "{3}|${ONE_BLANK}"),
    ("texts", "let marks = MOST_MARKS", "let marks = 0"),
    ("texts", "&& isText(found)", ""),
    ("texts", "this.totalEpsilon <= MAX_EPSILON", "this.epsilon <= MAX_EPSILON"),
    ("texts", "[1-9][0-9]{0,4}", "[0-9]{0,5}"),
]


@pytest.mark.parametrize(("check", "right", "wrong"), MUTANTS, ids=[f"{m[0]}-{i}" for i, m in enumerate(MUTANTS)])
def test_mutants_die(driver: Chrome, check: str, right: str, wrong: str) -> None:
    assert SOURCE.count(right) >= 1, "the code has changed: so must the list of mutants"
    with pytest.raises((AssertionError, JavascriptException, Problem)):
        CHECKS[check](Probe(driver, lambda source: source.replace(right, wrong, 1)))
