// Four tables let the loop process four bytes per step, which is about three times as fast as one byte per
// step.
const tables = crcTables()
const t0 = tables[0]!
const t1 = tables[1]!
const t2 = tables[2]!
const t3 = tables[3]!

function crcTables(): readonly Uint32Array[] {
  const crcs = [0, 1, 2, 3].map(() => new Uint32Array(256))
  for (let value = 0; value < 256; value++) {
    let crc = value
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
    crcs[0]![value] = crc
  }
  for (let value = 0; value < 256; value++) {
    for (let level = 1; level < 4; level++) {
      const before = crcs[level - 1]![value]!
      crcs[level]![value] = (before >>> 8) ^ crcs[0]![before & 0xff]!
    }
  }
  return crcs
}

/** Computes the CRC-32 (IEEE) of `bytes[start, end)`, continuing from an earlier sum. */
export function crc32(bytes: Uint8Array, start: number, end: number, previous = 0): number {
  let crc = ~previous
  let at = start
  for (; at + 4 <= end; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc = t3[crc & 0xff]! ^ t2[(crc >>> 8) & 0xff]! ^ t1[(crc >>> 16) & 0xff]! ^ t0[crc >>> 24]!
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!
  return ~crc >>> 0
}
