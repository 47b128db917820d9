// Decimal numbers of 50 digits, by which logarithmic grids are defined (fss_ecdf/campaign/grid.py): every operation is rounded
// once, half to even. A number is digits * 10^exponent, digits a BigInt.

/** @typedef {{ digits: bigint, exponent: number }} Decimal */

const DIGITS = 50;
const SPARE = 30; // further digits of logarithms and exponentials, which are rounded to 50 at the end

/** @param {number} n */
const tens = (n) => 10n ** BigInt(n);
/** @param {bigint} digits */
const digitsOf = (digits) => digits.toString().length; // of a positive number

/**
 * @param {bigint} digits
 * @param {number} exponent
 * @param {boolean} rest
 * @returns {Decimal}
 */
function rounded(digits, exponent, rest) {
  const extra = digitsOf(digits) - DIGITS;
  if (extra <= 0) return { digits, exponent };
  const unit = tens(extra);
  let kept = digits / unit;
  const twice = 2n * (digits - kept * unit);
  if (twice > unit || (twice === unit && (rest || kept & 1n))) kept += 1n;
  return { digits: kept, exponent: exponent + extra };
}

// Of a positive literal such as 0.1 or 1e-05.
/**
 * @param {string} text
 * @returns {Decimal}
 */
export function decimal(text) {
  const found = /^([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  if (!found) throw new Error(`${text} is not a positive number`);
  const [, whole, part = "", power = "0"] = found;
  return { digits: BigInt(whole + part), exponent: Number(power) - part.length };
}

/**
 * @param {Decimal} a
 * @param {Decimal} b
 */
export const times = (a, b) => rounded(a.digits * b.digits, a.exponent + b.exponent, false);

/**
 * @param {Decimal} a
 * @param {Decimal} b
 */
function divided(a, b) {
  const shift = Math.max(0, DIGITS + 5 + digitsOf(b.digits) - digitsOf(a.digits));
  const top = a.digits * tens(shift);
  return rounded(top / b.digits, a.exponent - b.exponent - shift, top % b.digits !== 0n);
}

/** @param {Decimal} a */
export const toDouble = (a) => Number(`${a.digits}e${a.exponent}`);

// Fixed point with 50 + SPARE digits behind the point, and as many more as the result needs.
class Fixed {
  /** @param {number} places */
  constructor(places) {
    this.one = tens(places);
    this.places = places;
  }

  /** @param {Decimal} a */
  of(a) {
    const shift = a.exponent + this.places;
    return shift >= 0 ? a.digits * tens(shift) : a.digits / tens(-shift);
  }

  // ln x = 2 artanh((x - 1) / (x + 1)), for x near 1
  /** @param {bigint} x */
  lnNear(x) {
    const y = ((x - this.one) * this.one) / (x + this.one);
    const square = (y * y) / this.one;
    let sum = 0n;
    for (let term = y, k = 1n; term; term = (term * square) / this.one, k += 2n) sum += term / k;
    return 2n * sum;
  }

  // For x > 1: halve it until it is near 1
  /** @param {bigint} x */
  ln(x) {
    let halvings = 0n;
    for (; x > (3n * this.one) / 2n; x /= 2n) halvings += 1n;
    return this.lnNear(x) + (halvings ? halvings * this.lnNear(2n * this.one) : 0n);
  }

  // For small y >= 0: e^y = (e^(y / 2^8))^(2^8)
  /** @param {bigint} y */
  exp(y) {
    const halvings = 8n + BigInt(digitsOf(y / this.one + 1n)) * 4n;
    const small = y >> halvings;
    let sum = 0n;
    for (let term = this.one, k = 1n; term; term = (term * small) / this.one / k, k += 1n) sum += term;
    for (let i = 0n; i < halvings; i += 1n) sum = (sum * sum) / this.one;
    return sum;
  }
}

// (stop / start)^(1 / steps): the quotient, its logarithm, that through steps, and the exponential are rounded in turn.
/**
 * @param {Decimal} start
 * @param {Decimal} stop
 * @param {number} steps
 */
export function stepFactor(start, stop, steps) {
  const ratio = divided(stop, start);
  const near = 2 * DIGITS + SPARE; // a ratio near 1 has a small logarithm, whose 50 digits begin late
  const fine = new Fixed(near);
  const log = rounded(fine.ln(fine.of(ratio)), -near, true);
  const share = divided(log, { digits: BigInt(steps), exponent: 0 });
  return rounded(fine.exp(fine.of(share)), -near, true);
}
