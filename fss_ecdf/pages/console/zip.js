// Files in one archive (ZIP, stored without compression), made in the page: what is in them goes nowhere else.

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** @param {[size: number, value: number][]} fields */
function packed(fields) {
  const out = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) out.setUint16(at, value, true);
    else out.setUint32(at, value, true);
    at += size;
  }
  return new Uint8Array(out.buffer);
}

const FIRST_DAY = 33; // 1980-01-01: the same files give the same bytes
const UTF8_NAMES = 0x800;

/**
 * @param {Record<string, string>} files texts by their names
 * @returns {Blob}
 */
export function zipOf(files) {
  const encoder = new TextEncoder();
  /** @type {Uint8Array[]} */
  const parts = [];
  /** @type {Uint8Array[]} */
  const listed = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const [title, data] = [encoder.encode(name), encoder.encode(text)];
    /** @type {[number, number][]} */
    const about = [
      [2, 20],
      [2, UTF8_NAMES],
      [2, 0],
      [2, 0],
      [2, FIRST_DAY],
      [4, crc32(data)],
      [4, data.length],
      [4, data.length],
      [2, title.length],
      [2, 0],
    ];
    const local = packed([[4, 0x04034b50], ...about]);
    parts.push(local, title, data);
    /** @type {[number, number][]} */
    const place = [
      [2, 0],
      [2, 0],
      [2, 0],
      [4, 0],
      [4, at],
    ];
    listed.push(packed([[4, 0x02014b50], [2, 20], ...about, ...place]), title);
    at += local.length + title.length + data.length;
  }
  const size = listed.reduce((sum, one) => sum + one.length, 0),
    count = listed.length / 2;
  const end = packed([
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, count],
    [2, count],
    [4, size],
    [4, at],
    [2, 0],
  ]);
  return new Blob([...parts, ...listed, end], { type: "application/zip" });
}
