/** Round constants and initial state (FIPS 180-4 §4.2.2 and §5.3.3), computed at first use. */
let constants: Int32Array | undefined
let initial: Int32Array | undefined
/** Working memory of `#compress`. All hashes can share it, because `#compress` is synchronous. */
const schedule = /* @__PURE__ */ new Int32Array(64)

/** SHA-256 (FIPS 180-4) in TypeScript, for platforms without a synchronous hash of their own. */
export class PortableSha256 {
  readonly #constants = (constants ??= fractions(64, Math.cbrt))
  readonly #state = new Int32Array((initial ??= fractions(8, Math.sqrt)))
  readonly #block = new Uint8Array(64)
  #filled = 0
  #totalBytes = 0

  update(data: Uint8Array): void {
    this.#totalBytes += data.length
    let at = 0
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, data.length)
      this.#block.set(data.subarray(0, at), this.#filled)
      this.#filled += at
      if (this.#filled < 64) return
      this.#compress(this.#block, 0)
    }
    for (; at + 64 <= data.length; at += 64) this.#compress(data, at)
    this.#block.set(data.subarray(at))
    this.#filled = data.length - at
  }

  digest(): Uint8Array<ArrayBuffer> {
    const block = this.#block
    block[this.#filled] = 0x80
    block.fill(0, this.#filled + 1)
    if (this.#filled >= 56) {
      this.#compress(block, 0)
      block.fill(0)
    }
    // The hashed data ends with its length in bits, as two 32-bit words. Both are computed from the length in
    // bytes, because a double holds that number exactly.
    writeWord(block, 56, Math.floor(this.#totalBytes / 0x20000000))
    writeWord(block, 60, this.#totalBytes << 3)
    this.#compress(block, 0)
    const digest = new Uint8Array(32)
    this.#state.forEach((word, i) => writeWord(digest, i * 4, word))
    return digest
  }

  #compress(data: Uint8Array, at: number): void {
    expand(data, at)
    const k = this.#constants
    const s = this.#state
    let a = s[0]!
    let b = s[1]!
    let c = s[2]!
    let d = s[3]!
    let e = s[4]!
    let f = s[5]!
    let g = s[6]!
    let h = s[7]!
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i]! + schedule[i]!) | 0
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    s[0]! += a
    s[1]! += b
    s[2]! += c
    s[3]! += d
    s[4]! += e
    s[5]! += f
    s[6]! += g
    s[7]! += h
  }
}

/** Fills the schedule from the block of 64 bytes at `at` (FIPS 180-4 §6.2.2, step 1). */
function expand(data: Uint8Array, at: number): void {
  const w = schedule
  for (let i = 0, j = at; i < 16; i++, j += 4) {
    w[i] = (data[j]! << 24) | (data[j + 1]! << 16) | (data[j + 2]! << 8) | data[j + 3]!
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!
    const y = w[i - 2]!
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0
  }
}

function writeWord(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word >>> 24
  bytes[at + 1] = word >>> 16
  bytes[at + 2] = word >>> 8
  bytes[at + 3] = word
}

/** Computes the constants of SHA-256: the first 32 bits of the fractions of the roots of the first primes. */
function fractions(count: number, root: (n: number) => number): Int32Array {
  const words: number[] = []
  for (let n = 2; words.length < count; n++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= n; divisor++) isPrime &&= n % divisor !== 0
    if (isPrime) words.push((root(n) % 1) * 2 ** 32)
  }
  return Int32Array.from(words, (word) => word | 0)
}
