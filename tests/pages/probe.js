// What the tests call of the party's modules, on one object.

import { encrypt, expandKey, slice } from "../../fss_ecdf/pages/party/aes.js";
import { fromHex, toBase64url, toHex, utf8 } from "../../fss_ecdf/pages/party/bytes.js";
import { Campaign, checkAnswer, digestOf, readCampaign } from "../../fss_ecdf/pages/party/campaign.js";
import { Generator, KeyType } from "../../fss_ecdf/pages/party/dcf.js";
import { Source } from "../../fss_ecdf/pages/party/derive.js";
import { Sealer, leavesOf } from "../../fss_ecdf/pages/party/envelope.js";
import { isSupported, schedule, seal, sealWith } from "../../fss_ecdf/pages/party/hpke.js";
import { multiply, putElement, settle } from "../../fss_ecdf/pages/party/field.js";
import { readGrid } from "../../fss_ecdf/pages/party/grid.js";
import { readJson, writeJson } from "../../fss_ecdf/pages/party/json.js";
import { shake256, turboShake128 } from "../../fss_ecdf/pages/party/keccak.js";
import { PROOF_RAND_WORDS, Prover, proofBytes } from "../../fss_ecdf/pages/party/proof.js";
import { plainNumber } from "../../fss_ecdf/pages/party/numbers.js";
import { chosenRows, decodeFile, hasHeader, place, readTable } from "../../fss_ecdf/pages/party/records.js";
import { isConfirmed, storedMessage, withdrawnMessage } from "../../fss_ecdf/pages/party/confirmation.js";
import { sealUpload, sealedBytes } from "../../fss_ecdf/pages/party/sealed.js";
import { hmacSha256, sha256 } from "../../fss_ecdf/pages/party/sha256.js";
import { isAddress, isText, shownPlainly } from "../../fss_ecdf/pages/party/text.js";

const element = (text) => {
  const out = new Uint32Array(2);
  putElement(BigInt(text), out, 0);
  return out;
};
const asText = (e) => String(BigInt(e[0]) + (BigInt(e[1]) << 32n));

// The keys of both parties, one after the other, and their proofs.
function keys(bits, binder, alphas, rand, proved) {
  const type = new KeyType(bits, binder),
    generator = new Generator(type, binder);
  const prover = proved ? new Prover(type) : null;
  const words = new Uint32Array(rand.slice().buffer),
    n = alphas.length;
  const size = type.keyBytes / 4,
    proofSize = proved ? proofBytes(type) / 4 : 0;
  const outs = [0, 1].map(() => new Uint32Array(n * size)),
    proofs = [0, 1].map(() => new Uint32Array(n * proofSize));
  for (let i = 0; i < n; i++) {
    outs.forEach((out, b) => out.set(new Uint32Array(type.header(b).buffer), i * size));
    generator.make(alphas[i], words, 8 * i, outs, i * size + 2);
    if (prover) prover.prove(alphas[i], generator, words, 8 * n + 2 * PROOF_RAND_WORDS * i, proofs, i * proofSize);
  }
  return [...outs, ...proofs].map((out) => new Uint8Array(out.buffer));
}

globalThis.probe = {
  aes(key, blocks) {
    const sliced = new Int32Array(8),
      out = new Int32Array(8);
    slice(new Int32Array(fromHex(blocks).buffer), sliced);
    encrypt(expandKey(fromHex(key)), sliced, out);
    return toHex(new Uint8Array(out.buffer));
  },
  sha256: (hex) => toHex(sha256(fromHex(hex))),
  hmac: (key, hex) => toHex(hmacSha256(fromHex(key), fromHex(hex))),
  shake: (hex, count) => toHex(shake256(fromHex(hex), count)),
  turbo: (hex, domain, count) => toHex(turboShake128(fromHex(hex), domain, count)),
  settle: (pairs) =>
    pairs.map(([low, high]) => {
      const out = new Uint32Array(2);
      settle(low, high, out, 0);
      return asText(out);
    }),
  multiply: (pairs) =>
    pairs.map(([a, b]) => {
      const out = new Uint32Array(2);
      multiply(element(a), 0, element(b), 0, out, 0);
      return asText(out);
    }),
  keys: (bits, binder, alphas, rand, proved) => keys(bits, fromHex(binder), alphas, fromHex(rand), proved).map(toHex),
  // Many random keys: what both sides draw from the same stream, and the hash of everything that was made.
  manyKeys(seed, bits, count, proved) {
    const binder = shake256(utf8(`${seed} binder ${bits}`), 32);
    const raw = new Uint32Array(shake256(utf8(`${seed} alphas ${bits}`), 4 * count).buffer);
    const alphas = raw.map((x) => x >>> (32 - bits));
    const rand = shake256(utf8(`${seed} rand ${bits}`), count * (proved ? 184 : 32));
    return keys(bits, binder, alphas, rand, proved).map((out) => toHex(sha256(out)));
  },
  hpkeSupported: isSupported,
  hpkeSchedule(shared, info) {
    const { key, nonce } = schedule(fromHex(shared), fromHex(info));
    return [toHex(key), toHex(nonce)];
  },
  // With a key pair that is known, where one is given.
  async hpkeSeal(publicKey, info, plaintext, known) {
    let pair = null;
    if (known) {
      const [d, x] = known.map((hex) => toBase64url(fromHex(hex)));
      const about = { kty: "OKP", crv: "X25519", x },
        take = (key, uses) => crypto.subtle.importKey("jwk", key, "X25519", true, uses);
      pair = { privateKey: await take({ ...about, d }, ["deriveBits"]), publicKey: await take(about, []) };
    }
    const [key, about, text] = [publicKey, info, plaintext].map(fromHex);
    return toHex(await (pair ? sealWith(pair, key, about, text) : seal(key, about, text)));
  },
  async sealedUpload(text, server, envelope, token) {
    return toHex(await sealUpload(readCampaign(text), server, fromHex(envelope), token));
  },
  isWithdrawn(text, server, ids, signature) {
    const campaign = readCampaign(text);
    return isConfirmed(campaign, server, withdrawnMessage(campaign, server, fromHex(ids)), signature);
  },
  // The envelopes of both servers were stored, says a signature.
  isStored(text, server, wave, envelopes, signature) {
    const campaign = readCampaign(text),
      leaves = leavesOf(campaign, envelopes.map(fromHex), wave);
    return isConfirmed(campaign, server, storedMessage(campaign, server, wave, leaves), signature);
  },
  sealedBytes: (text, count) => sealedBytes(readCampaign(text), count),
  digest: (text) => toHex(digestOf(readJson(text))),
  rewrite: (text) => writeJson(readJson(text)),
  campaign(text) {
    const { bits, strata, totalEpsilon, checked, variable } = readCampaign(text);
    return { bits, strata, totalEpsilon, checked, size: variable.grid.size };
  },
  checkAnswer,
  refusal(what, ...args) {
    try {
      globalThis.probe[what](...args);
    } catch (error) {
      return error.key ?? String(error);
    }
    return null;
  },
  thresholds(text) {
    const grid = readGrid(readJson(text));
    return Array.from({ length: grid.size }, (_, i) => grid.threshold(i));
  },
  positions(text, values) {
    const grid = readGrid(readJson(text));
    return values.map((value) => {
      const x = grid.number(value);
      return Number.isNaN(x) ? null : grid.place(x);
    });
  },
  place(campaign, rows) {
    const found = place(
      readCampaign(campaign),
      rows.map(([value, name], i) => [value, name, i + 2]),
    );
    return { ...found, positions: Array.from(found.positions) };
  },
  table(hex) {
    const { rows, numbers, delimiter } = readTable(decodeFile(fromHex(hex)).text);
    return { rows, numbers, delimiter };
  },
  // A file's column as positions: what is left out, and whether its first row is a header.
  column(text, hex, column, stratum) {
    const campaign = readCampaign(text),
      table = readTable(decodeFile(fromHex(hex)).text),
      header = hasHeader(campaign.variable.grid, table.rows[0]);
    const { rows, missing } = chosenRows(table, { column, stratum, header });
    return { header, missing, positions: Array.from(place(campaign, rows).positions) };
  },
  numberText: plainNumber,
  dealt: (text, positions, ids, rand, wave) =>
    new Sealer(readCampaign(text)).envelopes(positions, fromHex(ids), fromHex(rand), wave).map(toHex),
  texts: (all) => all.map((points) => isText(String.fromCodePoint(...points))),
  shown: (all) => all.map((points) => shownPlainly(String.fromCodePoint(...points))),
  addresses: (all) => all.map((points) => isAddress(String.fromCodePoint(...points))),
  // One batch of a receipt as both servers get it, with what stands in the receipt.
  envelopes(text, salt, token, number, generation, positions, wave) {
    const campaign = new Campaign(readJson(text)),
      source = new Source(fromHex(salt), token);
    const ids = source.ids(number, generation, positions.length);
    const rand = source.rand(number, generation, positions, campaign, wave);
    const made = new Sealer(campaign).envelopes(positions, ids, rand, wave);
    return [source.mark(), source.tag(positions), ...made.map(toHex)];
  },
};
