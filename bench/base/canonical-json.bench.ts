import { canonicalJson } from '@skein/base'
import type { Bench } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'

/** About 1 MB of messages with keys out of order. */
function makeValue(): unknown {
  return Array.from({ length: 4_000 }, (_, index) => ({
    type: 'tool_result',
    id: `message-${index}`,
    content: [{ text: `Résumé ${index} "quoted"\n`.repeat(3), kind: 'text' }],
    usage: { output: index / 3, input: index * 7, cached: null },
    metadata: { zeta: true, alpha: [1, 2.5, 1e21], nested: { b: index, a: -0 } },
  }))
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, member]) => [key, sortKeys(member)]))
}

const bench: Bench = {
  title: 'Canonical JSON of about 1 MB',
  baseline: 'sort, then JSON.stringify',
  contenders: {
    // What people write by hand. It misses lone surrogates and integer-like keys, which are not in this data.
    'sort, then JSON.stringify': {
      prepare() {
        const value = makeValue()
        return () => JSON.stringify(sortKeys(value))
      },
    },
    '@skein/base': {
      prepare() {
        const value = makeValue()
        return () => canonicalJson(value)
      },
    },
    canonicalize: {
      peers: ['canonicalize'],
      async prepare() {
        const { default: canonicalize } = await peer<{ default: (value: unknown) => string }>(
          'canonicalize',
        )
        const value = makeValue()
        return () => canonicalize(value)
      },
    },
    'JSON.stringify alone': {
      sameOutput: false,
      prepare() {
        const value = makeValue()
        return () => JSON.stringify(value)
      },
    },
  },
}
export default bench
