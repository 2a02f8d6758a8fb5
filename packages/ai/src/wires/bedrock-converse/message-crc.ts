let table: Uint32Array | undefined

function crcTable(): Uint32Array {
  return (table ??= Uint32Array.from({ length: 256 }, (_, index) => {
    let value = index
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
    return value
  }))
}

/** Returns the CRC-32 of bytes (IEEE 802.3); `start` is the CRC of the bytes before them. */
export function messageCrc(bytes: Uint8Array, start = 0): number {
  const values = crcTable()
  let crc = ~start
  for (const byte of bytes) crc = (crc >>> 8) ^ values[(crc ^ byte) & 0xff]!
  return ~crc >>> 0
}
