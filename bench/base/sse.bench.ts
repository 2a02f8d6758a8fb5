import { SseDecoder } from '@skein/base'
import type { Bench } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'

const megabytes = 8
const readBytes = 16 * 1024

/** One event of 8 MB in reads of 16 kB: a decoder that joins or scans again per read is quadratic here. */
function makeReads(): Uint8Array[] {
  const payload = JSON.stringify({ text: 'skein of yarn, '.repeat((megabytes * 1_000_000) / 15) })
  const stream = new TextEncoder().encode(`data: ${payload}\n\n`)
  const reads: Uint8Array[] = []
  for (let at = 0; at < stream.length; at += readBytes)
    reads.push(stream.subarray(at, at + readBytes))
  return reads
}

const bench: Bench = {
  title: `SSE: one event of ${megabytes} MB in reads of 16 kB`,
  baseline: 'linear scan',
  amount: { value: megabytes, unit: 'MB' },
  contenders: {
    // The least anyone can do: decode each read once, look for the end of the event in it, join once.
    'linear scan': {
      prepare() {
        const reads = makeReads()
        return () => {
          const decoder = new TextDecoder()
          const parts: string[] = []
          for (const read of reads) {
            const text = decoder.decode(read, { stream: true })
            parts.push(text)
            if (text.endsWith('\n\n')) break
          }
          return [parts.join('').slice('data: '.length, -2)]
        }
      },
    },
    '@skein/base': {
      prepare() {
        const reads = makeReads()
        return () => {
          const decoder = new SseDecoder()
          return reads.flatMap((read) => decoder.push(read)).map(({ data }) => data)
        }
      },
    },
    'eventsource-parser': {
      peers: ['eventsource-parser'],
      async prepare() {
        const { createParser } = await peer<EventSourceParser>('eventsource-parser')
        const reads = makeReads()
        return () => {
          const decoder = new TextDecoder()
          const data: string[] = []
          const parser = createParser({ onEvent: (event) => data.push(event.data) })
          for (const read of reads) parser.feed(decoder.decode(read, { stream: true }))
          return data
        }
      },
    },
  },
}
export default bench

interface EventSourceParser {
  createParser(callbacks: { onEvent: (event: { data: string }) => void }): {
    feed(text: string): void
  }
}
