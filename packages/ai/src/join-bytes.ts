/** Several pieces as one. A single piece is given back as it is. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces
  if (first && pieces.length === 1) return first
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let offset = 0
  for (const piece of pieces) {
    whole.set(piece, offset)
    offset += piece.length
  }
  return whole
}
