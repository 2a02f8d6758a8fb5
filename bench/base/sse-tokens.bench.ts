import { SseDecoder } from '@skein/base'
import type { Bench } from '../runner/bench.ts'
import { peer } from '../runner/peers.ts'

const tokens = 20_000
const readBytes = 4 * 1024

/** What a model's answer looks like on the wire: many small events, a few to each network read. */
function makeReads(): Uint8Array[] {
  const event = (index: number): string =>
    `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" w${index}ö"}}]}\n\n`
  const stream = new TextEncoder().encode(
    Array.from({ length: tokens }, (_, index) => event(index)).join(''),
  )
  const reads: Uint8Array[] = []
  for (let at = 0; at < stream.length; at += readBytes)
    reads.push(stream.subarray(at, at + readBytes))
  return reads
}

const bench: Bench = {
  title: `SSE: ${tokens.toLocaleString('en')} small events in reads of 4 kB`,
  baseline: 'split by hand',
  amount: { value: tokens, unit: 'events' },
  contenders: {
    'split by hand': {
      prepare() {
        const reads = makeReads()
        return () => {
          const decoder = new TextDecoder()
          let rest = ''
          let bytes = 0
          for (const read of reads) {
            const events = (rest + decoder.decode(read, { stream: true })).split('\n\n')
            rest = events.pop() ?? ''
            for (const event of events) bytes += event.slice('data: '.length).length
          }
          return bytes
        }
      },
    },
    '@skein/base': {
      prepare() {
        const reads = makeReads()
        return () => {
          const decoder = new SseDecoder()
          let bytes = 0
          for (const read of reads) for (const { data } of decoder.push(read)) bytes += data.length
          return bytes
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
          let bytes = 0
          const parser = createParser({ onEvent: ({ data }) => (bytes += data.length) })
          for (const read of reads) parser.feed(decoder.decode(read, { stream: true }))
          return bytes
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
