import { createHash, hash } from 'node:crypto'
import type { Bench } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'

const records = 2_000

/** Log records of about 500 bytes: what a hash chain or a Merkle tree hashes. */
function makeRecords(): Uint8Array[] {
  const encoder = new TextEncoder()
  return Array.from({ length: records }, (_, index) =>
    encoder.encode(`${index}:`.padEnd(500, 'record ')),
  )
}

function hashAll(hashOne: (data: Uint8Array) => string): () => string {
  const data = makeRecords()
  return () => {
    let last = ''
    for (const record of data) last = hashOne(record)
    return last
  }
}

const bytesToHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

const bench: Bench = {
  title: `SHA-256 of ${records.toLocaleString('en')} records of 500 bytes`,
  baseline: 'node:crypto hash',
  amount: { value: records, unit: 'hashes' },
  contenders: {
    'node:crypto hash': { prepare: () => hashAll((data) => hash('sha256', data)) },
    'node:crypto createHash': {
      prepare: () => hashAll((data) => createHash('sha256').update(data).digest('hex')),
    },
    '@skein/base': { prepare: async () => hashAll((await import('@skein/base')).sha256Hex) },
    // What runs where there is no node:crypto: the same entry, loaded without it.
    '@skein/base, portable': {
      async prepare() {
        Object.defineProperty(process, 'getBuiltinModule', { value: undefined })
        return hashAll((await import('@skein/base')).sha256Hex)
      },
    },
    '@noble/hashes': {
      peers: ['@noble/hashes'],
      async prepare() {
        const { sha256 } = await peer<{ sha256: (data: Uint8Array) => Uint8Array }>(
          '@noble/hashes/sha2.js',
        )
        return hashAll((data) => bytesToHex(sha256(data)))
      },
    },
  },
}
export default bench
