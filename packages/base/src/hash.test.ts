import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createSha256, sha256, sha256Hex } from '@skein/base'
import { PortableSha256 } from './hash-portable.ts'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 200, seed: 1804 }
const byNode = (data: Uint8Array | string) => createHash('sha256').update(data).digest('hex')
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** FIPS 180-4 examples and the usual ones beside them. */
const vectors: [string, string][] = [
  ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  [
    'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
    '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  ],
  [
    'abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu',
    'cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1',
  ],
  ['a'.repeat(1_000_000), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0'],
]

afterEach(() => vi.restoreAllMocks())

/** The module as it loads where there is no node:crypto, or one without the one-shot call. */
async function loadWith(crypto: unknown): Promise<typeof import('./hash.ts')> {
  vi.resetModules()
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(crypto as never)
  return import('./hash.ts')
}

describe.each([
  ['node:crypto', async () => ({ sha256, sha256Hex, createSha256 })],
  ['node:crypto without hash()', () => loadWith({ createHash })],
  ['no node:crypto', () => loadWith(undefined)],
])('with %s', (_title, load) => {
  test('the known hashes, of text and of bytes, at once and in pieces', async () => {
    const hash = await load()
    for (const [text, digest] of vectors) {
      const bytes = new TextEncoder().encode(text)
      expect(hash.sha256Hex(text)).toBe(digest)
      expect(hash.sha256Hex(bytes)).toBe(digest)
      expect(hex(hash.sha256(text))).toBe(digest)
      const half = Math.floor(text.length / 2)
      const pieces = hash.createSha256().update(text.slice(0, half)).update(bytes.subarray(half))
      expect(hex(pieces.digest())).toBe(digest)
    }
  })

  test('text is hashed as UTF-8', async () => {
    const hash = await load()
    for (const text of ['žluť', '你好🙂', '\ud800']) expect(hash.sha256Hex(text)).toBe(byNode(text))
  })

  test('the digest is a plain Uint8Array with its own buffer', async () => {
    const hash = await load()
    for (const digest of [hash.sha256('a'), hash.createSha256().update('a').digest()]) {
      expect(digest.constructor).toBe(Uint8Array)
      expect(digest.buffer.byteLength).toBe(32)
    }
  })

  test('a finished hash refuses to go on', async () => {
    const hash = (await load()).createSha256()
    hash.digest()
    const finished = expect.objectContaining({ code: 'HASH_FINISHED' })
    expect(() => hash.update('a')).toThrow(finished)
    expect(() => hash.digest()).toThrow(finished)
  })
})

test('the portable hash agrees with node:crypto, however the data is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 6 }), (chunks) => {
      const portable = new PortableSha256()
      for (const chunk of chunks) portable.update(chunk)
      expect(hex(portable.digest())).toBe(byNode(Buffer.concat(chunks)))
    }),
    runs,
  )
})

test('the portable hash agrees at every length round the block size', () => {
  for (let length = 0; length <= 200; length++) {
    const data = new Uint8Array(length).fill(length)
    const portable = new PortableSha256()
    portable.update(data)
    expect(hex(portable.digest())).toBe(byNode(data))
  }
})

test('two portable hashes at once do not disturb each other', () => {
  const [a, b] = [new PortableSha256(), new PortableSha256()]
  for (let i = 0; i < 10; i++) {
    a.update(new Uint8Array(50).fill(1))
    b.update(new Uint8Array(50).fill(2))
  }
  expect(hex(a.digest())).toBe(byNode(new Uint8Array(500).fill(1)))
  expect(hex(b.digest())).toBe(byNode(new Uint8Array(500).fill(2)))
})
