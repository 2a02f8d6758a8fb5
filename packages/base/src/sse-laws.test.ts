import fc from 'fast-check'
import { createParser } from 'eventsource-parser'
import { expect, test } from 'vitest'
import { encodeSse, SseDecoder, type SseEvent } from '@skein/base'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 400, seed: 8785 }

const word = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '  a',
    'x:y',
    ':',
    '0',
    '12',
    'ž',
    '你好',
    '🙂',
    '\ufeff',
    'a\0b',
    '{"a":1}',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => text.replace(/[\r\nï]/g, '')),
)
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom('data', 'data', 'event', 'id', 'retry', 'foo', ''), word)
    .map(([name, value]) => `${name}: ${value}`),
  fc
    .tuple(fc.constantFrom('data', 'event', 'id', 'retry'), word)
    .map(([name, value]) => `${name}:${value}`),
  fc.constantFrom('', '', '', 'data', 'event', 'id'),
  word,
)
const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
const stream = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(line, lineEnd), { minLength: 4, maxLength: 40, size: 'max' }),
    word,
  )
  .map(([mark, lines, rest]) => (mark ? '\ufeff' : '') + lines.flat().join('') + rest)
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30, size: 'max' })

/** The bytes of a stream in reads cut at the given places. */
function reads(text: string, places: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  const ends = places.map((place) => Math.round(place * bytes.length)).toSorted((a, b) => a - b)
  const sorted = [0, ...ends, bytes.length]
  return sorted.slice(1).map((end, i) => bytes.slice(sorted[i], end))
}

function decode(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder()
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()]
}

/** The standard's algorithm, word for word, on a stream that is all there. */
function byTheBook(text: string): SseEvent[] {
  const events: SseEvent[] = []
  let [event, data, id] = ['', '', '']
  let retry: number | undefined
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/)
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      if (data !== '') {
        events.push({
          event,
          data: data.slice(0, -1),
          id,
          ...(retry === undefined ? {} : { retry }),
        })
        retry = undefined
      }
      event = data = ''
      continue
    }
    const [, name, value] = /^([^:]*)(?:: ?)?(.*)$/su.exec(line) ?? []
    if (name === 'event') event = value ?? ''
    if (name === 'data') data += `${value}\n`
    if (name === 'id' && !value?.includes('\0')) id = value ?? ''
    if (name === 'retry' && /^[0-9]+$/.test(value ?? '')) retry = Number(value)
  }
  return events
}

test('however a stream is cut, the events are those of the standard', () => {
  fc.assert(
    fc.property(stream, cuts, (text, places) => {
      // The bytes are what counts: a lone surrogate is U+FFFD in them.
      const sent = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
        new TextEncoder().encode(text),
      )
      expect(decode(reads(text, places))).toEqual(byTheBook(sent))
    }),
    runs,
  )
})

test('the events are those of eventsource-parser', () => {
  fc.assert(
    fc.property(stream, cuts, (text, places) => {
      const theirs: { event: string; data: string }[] = []
      const parser = createParser({
        onEvent: ({ event = '', data }) => theirs.push({ event, data }),
      })
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
      const chunks = reads(text, places)
      for (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
      expect(decode(chunks).map(({ event, data }) => ({ event, data }))).toEqual(theirs)
    }),
    runs,
  )
})

test('what encodeSse writes comes back, with line breaks as LF', () => {
  const field = fc.string({ unit: 'grapheme' }).filter((text) => !/[\r\n\0]/.test(text))
  const data = fc.array(fc.oneof(word, lineEnd)).map((parts) => parts.join(''))
  fc.assert(
    fc.property(
      fc.array(fc.record({ event: field, id: field, data, retry: fc.nat() })),
      cuts,
      (events, places) => {
        const text = events.map(encodeSse).join('')
        const wellFormed = (part: string) => part.replace(/\p{Surrogate}/gu, '\ufffd')
        expect(decode(reads(text, places))).toEqual(
          events.map((event) => ({
            ...event,
            data: wellFormed(event.data.replace(/\r\n?/g, '\n')),
          })),
        )
      },
    ),
    runs,
  )
})
