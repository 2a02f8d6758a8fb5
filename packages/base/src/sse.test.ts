import { describe, expect, test } from 'vitest'
import { SkeinError, SseDecoder, type SseEvent } from '@skein/base'
import type { SseDecoderOptions } from './sse.ts'
import { processorMs } from '../../../conformance/support/processor-time.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Decodes a stream that arrives in one read. */
function decode(stream: string | Uint8Array, options?: SseDecoderOptions): SseEvent[] {
  const decoder = new SseDecoder(options)
  const events = decoder.push(typeof stream === 'string' ? bytes(stream) : stream)
  return [...events, ...decoder.end()]
}

function codeOf(action: () => unknown): string | undefined {
  try {
    action()
  } catch (error) {
    if (SkeinError.is(error)) return error.code
    throw error
  }
  return undefined
}

describe('fields, by the WHATWG rules', () => {
  test.each<[string, string, SseEvent[]]>([
    ['one event', 'data: a\n\n', [{ event: '', data: 'a', id: '' }]],
    ['event, id, data', 'event: e\nid: 7\ndata: a\n\n', [{ event: 'e', data: 'a', id: '7' }]],
    [
      'lines of data are joined',
      'data: a\ndata:\ndata: b\n\n',
      [{ event: '', data: 'a\n\nb', id: '' }],
    ],
    ['only one space is dropped', 'data:  a \n\n', [{ event: '', data: ' a ', id: '' }]],
    ['the space is optional', 'data:a\n\n', [{ event: '', data: 'a', id: '' }]],
    ['colons after the first stay', 'data: a:b\n\n', [{ event: '', data: 'a:b', id: '' }]],
    ['a bare name is a field without value', 'data\n\n', [{ event: '', data: '', id: '' }]],
    ['an empty data line still makes an event', 'data:\n\n', [{ event: '', data: '', id: '' }]],
    ['no data, no event', 'event: e\nid: 1\n\n', []],
    ['comments are skipped', ': hi\ndata: a\n:\n\n: bye\n\n', [{ event: '', data: 'a', id: '' }]],
    [
      'unknown fields are skipped',
      'foo: x\n data: y\nDATA: z\ndata: a\n\n',
      [{ event: '', data: 'a', id: '' }],
    ],
    [
      'the last event name wins',
      'event: a\nevent: b\ndata: x\n\n',
      [{ event: 'b', data: 'x', id: '' }],
    ],
    [
      'bare event name resets it',
      'event: a\nevent\ndata: x\n\n',
      [{ event: '', data: 'x', id: '' }],
    ],
    [
      'an incomplete last event is dropped',
      'data: a\n\ndata: b\n',
      [{ event: '', data: 'a', id: '' }],
    ],
  ])('%s', (_title, stream, events) => {
    expect(decode(stream)).toEqual(events)
  })

  test('an event name does not outlive its block, also one without data', () => {
    expect(decode('event: e\n\ndata: a\n\n')).toEqual([{ event: '', data: 'a', id: '' }])
  })

  test('an id lasts until the next one, an empty one clears it, one with NUL is ignored', () => {
    const ids = decode('id: 1\ndata\n\ndata\n\nid: 2\0\ndata\n\nid\ndata\n\n').map(({ id }) => id)
    expect(ids).toEqual(['1', '1', '1', ''])
  })

  test('an id in a block without data counts for the next event', () => {
    expect(decode('id: 5\n\ndata: a\n\n')).toEqual([{ event: '', data: 'a', id: '5' }])
  })

  test('retry takes digits only and is told once, with the next event', () => {
    const events = decode(
      'retry: 10\n\ndata: a\n\ndata: b\n\nretry: 1x\nretry:-1\nretry:\ndata: c\n\n',
    )
    expect(events).toEqual([
      { event: '', data: 'a', id: '', retry: 10 },
      { event: '', data: 'b', id: '' },
      { event: '', data: 'c', id: '' },
    ])
  })

  test('a byte order mark is dropped at the very start and kept elsewhere', () => {
    expect(decode('\ufeffdata: \ufeffa\n\n')).toEqual([{ event: '', data: '\ufeffa', id: '' }])
    expect(decode('data: a\n\n\ufeffdata: b\n\n')).toHaveLength(1)
    expect(decode('\ufeff\ufeffdata: b\n\n')).toEqual([])
  })

  test('bytes that are not UTF-8 become U+FFFD and do not break lines', () => {
    const stream = Uint8Array.of(...bytes('data: '), 0xff, 0xe2, 0x82, 10, 10)
    expect(decode(stream)).toEqual([{ event: '', data: '\ufffd\ufffd', id: '' }])
  })
})

describe('reads', () => {
  const stream =
    '\ufeff: ž\r\nid: 1\revent: 你\r\ndata: 🙂\r\rdata: a\r\n\r\nretry: 3\ndata: b\ndata\n\n'
  const expected = [
    { event: '你', data: '🙂', id: '1' },
    { event: '', data: 'a', id: '1' },
    { event: '', data: 'b\n', id: '1', retry: 3 },
  ]

  test('may be cut at every pair of places', () => {
    const all = bytes(stream)
    for (let i = 0; i <= all.length; i++) {
      for (let j = i; j <= all.length; j++) {
        const decoder = new SseDecoder()
        const events = [all.subarray(0, i), all.subarray(i, j), all.subarray(j)].flatMap((chunk) =>
          decoder.push(chunk),
        )
        expect([...events, ...decoder.end()]).toEqual(expected)
      }
    }
  })

  test('may be of one byte', () => {
    const decoder = new SseDecoder()
    expect([...bytes(stream)].flatMap((byte) => decoder.push(Uint8Array.of(byte)))).toEqual(
      expected,
    )
  })

  test('give an event as soon as its blank line is there, even if that is a CR', () => {
    const decoder = new SseDecoder()
    expect(decoder.push(bytes('data: a\r\r'))).toHaveLength(1)
    expect(decoder.push(bytes('\ndata: b\n'))).toEqual([])
    expect(decoder.push(bytes('\n'))).toEqual([{ event: '', data: 'b', id: '' }])
  })

  test('are copied: the caller may reuse its buffer', () => {
    const decoder = new SseDecoder()
    const buffer = bytes('data: a')
    decoder.push(buffer)
    buffer.fill(120)
    expect(decoder.push(bytes('b\n\n'))).toEqual([{ event: '', data: 'ab', id: '' }])
  })

  test('an event of 8 MB in reads of 16 kB takes time in proportion', () => {
    const data = 'x'.repeat(8 * 1024 * 1024)
    const stream = bytes(`data: ${data}\n\n`)
    const decoder = new SseDecoder()
    const events: SseEvent[] = []
    const start = processorMs()
    for (let at = 0; at < stream.length; at += 16_384) {
      events.push(...decoder.push(stream.subarray(at, at + 16_384)))
    }
    // Takes about 10 ms; a decoder that joins or scans from the start on each read takes many
    // seconds.
    expect(processorMs() - start).toBeLessThan(1500)
    expect(events.map((event) => event.data.length)).toEqual([data.length])
  })

  test('an event of 200,000 lines of data takes time in proportion', () => {
    const start = processorMs()
    const [event] = decode(`${'data: x\n'.repeat(200_000)}\n`)
    expect(processorMs() - start).toBeLessThan(1500)
    expect(event?.data).toHaveLength(399_999)
  })
})

describe('flushIncomplete', () => {
  test.each<[string, SseEvent[]]>([
    ['data: a', [{ event: '', data: 'a', id: '' }]],
    ['data: a\n', [{ event: '', data: 'a', id: '' }]],
    ['data: a\r', [{ event: '', data: 'a', id: '' }]],
    ['event: e\ndata: a\ndata: b', [{ event: 'e', data: 'a\nb', id: '' }]],
    ['data: a\n\n', [{ event: '', data: 'a', id: '' }]],
    ['event: e', []],
    ['', []],
  ])('%j', (stream, events) => {
    expect(decode(stream, { flushIncomplete: true })).toEqual(events)
  })

  test('a character cut off at the end becomes U+FFFD', () => {
    const cut = bytes('data: é').subarray(0, -1)
    expect(decode(cut, { flushIncomplete: true })).toEqual([{ event: '', data: '\ufffd', id: '' }])
  })

  test('a stray continuation byte at the end is not counted twice', () => {
    const stray = Uint8Array.of(...bytes('data: '), 0x80)
    expect(decode(stray, { flushIncomplete: true })).toEqual([
      { event: '', data: '\ufffd', id: '' },
    ])
  })
})

describe('maxEventBytes', () => {
  const options = { maxEventBytes: 20 }

  test.each([
    ['a line', 'data: 12345678901234\n\n', 'data: 123456789012345\n\n'],
    ['a line in UTF-8', 'data: žžžžžžž\n\n', 'data: žžžžžžžž\n\n'],
    ['surrogate pairs', 'data: 🙂🙂🙂ab\n\n', 'data: 🙂🙂🙂abc\n\n'],
    [
      'lines of data',
      'data: 1234567890\ndata: 123456789\n\n',
      'data: 1234567890\ndata: 1234567890\n\n',
    ],
    ['CJK', 'data: 你你你你ab\n\n', 'data: 你你你你abc\n\n'],
    ['lines of data in UTF-8', 'data: žžžžž\ndata: žžžžx\n\n', 'data: žžžžž\ndata: žžžžž\n\n'],
    ['a comment', ': 345678901234567890\n', ': 3456789012345678901\n'],
  ])('%s: at the limit passes, one byte more throws, however it is cut', (_title, ok, bad) => {
    for (const size of [1, 3, 7, 100]) {
      const run = (stream: string) => {
        const decoder = new SseDecoder(options)
        const all = bytes(stream)
        for (let at = 0; at < all.length; at += size) decoder.push(all.subarray(at, at + size))
        decoder.end()
      }
      expect(codeOf(() => run(ok))).toBeUndefined()
      expect(codeOf(() => run(bad))).toBe('SSE_EVENT_TOO_LARGE')
    }
  })

  test('what is left over from a read counts, before the line ends', () => {
    for (const rest of ['data: 1234567890', 'data: žžžžž', 'data: 你你你x']) {
      const decoder = new SseDecoder(options)
      decoder.push(bytes(`data: a\n${rest}`))
      decoder.push(bytes('1234'))
      expect(codeOf(() => decoder.push(bytes('5')))).toBe('SSE_EVENT_TOO_LARGE')
    }
  })

  test('many small events and comments never add up', () => {
    expect(decode('data: 123456789\n: comment\n\n'.repeat(50), options)).toHaveLength(50)
  })

  test('throws before the line ends, and on every later call', () => {
    const decoder = new SseDecoder(options)
    expect(codeOf(() => decoder.push(bytes(`data: ${'x'.repeat(20)}`)))).toBe('SSE_EVENT_TOO_LARGE')
    expect(codeOf(() => decoder.push(bytes('\n\ndata: a\n\n')))).toBe('SSE_EVENT_TOO_LARGE')
    expect(codeOf(() => decoder.end())).toBe('SSE_EVENT_TOO_LARGE')
  })

  test('events before the one that is too large are delivered first', () => {
    for (const tail of [`data: ${'x'.repeat(30)}\n\n`, `data: ${'x'.repeat(30)}`]) {
      const decoder = new SseDecoder(options)
      expect(decoder.push(bytes(`data: a\n\n${tail}`))).toEqual([{ event: '', data: 'a', id: '' }])
      expect(codeOf(() => decoder.push(bytes('y\n\n')))).toBe('SSE_EVENT_TOO_LARGE')
    }
  })
})

test('UPP-095 a byte order mark is dropped at the start of a stream and nowhere else, however it is cut', () => {
  const bytes = new TextEncoder().encode('\uFEFFdata: \uFEFFa\ndata: b\uFEFF\n\n\uFEFFdata: c\n\n')
  const whole = [{ event: '', data: '\uFEFFa\nb\uFEFF', id: '' }]
  for (let cut = 0; cut <= bytes.length; cut++) {
    const decoder = new SseDecoder()
    const events = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((piece) =>
      decoder.push(piece),
    )
    expect([...events, ...decoder.end()], `cut at ${cut}`).toEqual(whole)
  }
})
