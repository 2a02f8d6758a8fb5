import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ResponseParser } from './http-node-parser.ts'
import { processorMs } from '../../../../conformance/support/processor-time.ts'

interface Parsed {
  readonly status: number
  readonly body: string
  readonly isDone: boolean
  readonly canReuse: boolean
}

/** Feeds the text in pieces cut at the given places, then closes the connection if asked to. */
function parse(text: string, cuts: readonly number[] = [], close = false): Parsed {
  const bytes = Buffer.from(text, 'latin1')
  const parser = new ResponseParser()
  const body: Buffer[] = []
  const edges = [0, ...[...cuts].sort((a, b) => a - b), bytes.length]
  for (let i = 1; i < edges.length; i++) {
    // A copy: the parser may move bytes within what it is given.
    const piece = Buffer.from(bytes.subarray(edges[i - 1], edges[i]))
    if (piece.length > 0) body.push(Buffer.from(parser.push(piece)))
  }
  if (close) parser.end()
  const { status, isDone, canReuse } = parser
  return { status, isDone, canReuse, body: Buffer.concat(body).toString('latin1') }
}

const chunked =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n' +
  '4\r\nWiki\r\n6;ext="a;b"\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n'

const responses: readonly (readonly [
  name: string,
  text: string,
  expected: Parsed,
  close?: boolean,
])[] = [
  [
    'chunked with extension and trailer',
    chunked,
    { status: 200, body: 'Wikipedia in \r\n\r\nchunks.', isDone: true, canReuse: true },
  ],
  [
    'content length',
    'HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello',
    { status: 404, body: 'hello', isDone: true, canReuse: true },
  ],
  [
    'until the connection closes',
    'HTTP/1.1 200 OK\r\n\r\nhello',
    { status: 200, body: 'hello', isDone: true, canReuse: false },
    true,
  ],
  [
    'informational responses first',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n' +
      'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok',
    { status: 200, body: 'ok', isDone: true, canReuse: true },
  ],
  [
    'no content',
    'HTTP/1.1 204 No Content\r\nX: y\r\n\r\n',
    { status: 204, body: '', isDone: true, canReuse: true },
  ],
  [
    'HTTP/1.0 that stays open',
    'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n',
    { status: 200, body: '', isDone: true, canReuse: true },
  ],
  [
    'connection: close',
    'HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\na',
    { status: 200, body: 'a', isDone: true, canReuse: false },
  ],
  [
    'length and chunked at once: not used again',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
    { status: 200, body: 'a', isDone: true, canReuse: false },
  ],
  [
    'bytes after the end: not used again',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n',
    { status: 200, body: 'ok', isDone: true, canReuse: false },
  ],
]

describe('a response', () => {
  test.each(
    responses.map(([name, text, expected, close = false]) => ({ name, text, expected, close })),
  )('$name, cut at every byte', ({ text, expected, close }) => {
    expect(parse(text, [], close)).toEqual(expected)
    for (let cut = 1; cut < text.length; cut++) {
      expect(parse(text, [cut], close), `cut at ${cut}`).toEqual(expected)
    }
    const everywhere = Array.from({ length: text.length }, (_, index) => index)
    expect(parse(text, everywhere, close)).toEqual(expected)
  })

  test('any body in any chunks arrives as it was, however the network cuts it', () => {
    const piece = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.array(fc.nat(2000)), (pieces, cuts) => {
        const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
        const chunks = pieces.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`)
        const text = `${head}${chunks.join('')}0\r\n\r\n`
        const result = parse(
          text,
          cuts.filter((cut) => cut < text.length),
        )
        expect(result).toEqual({ status: 200, body: pieces.join(''), isDone: true, canReuse: true })
      }),
      { seed: 7, numRuns: process.env['SKEIN_DEEP'] ? 5000 : 300 },
    )
  })

  test('repeated headers are joined; names do not depend on their case', () => {
    const parser = new ResponseParser()
    parser.push(Buffer.from(chunked))
    expect(parser.headers.get('x-a')).toBe('1, 2')
  })

  test('is not complete before its end', () => {
    expect(parse(chunked.slice(0, -2)).isDone).toBe(false)
    expect(parse('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell', [], true).isDone).toBe(false)
  })

  test('says how long the server keeps the connection, with a second to spare', () => {
    const parser = new ResponseParser()
    parser.push(Buffer.from('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=9\r\n\r\n'))
    expect(parser.idleMs).toBe(4000)
  })
})

describe('refuses what is not HTTP/1.1', () => {
  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['HTTP/2 without asking', 'HTTP/2 200\r\n\r\n'],
    ['switching protocols', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['a header without a name', 'HTTP/1.1 200 OK\r\n: x\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['an unknown transfer encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
    ['a chunk without a size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n'],
    ['a chunk size that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1g\r\n'],
    ['a huge chunk size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n'],
    [
      'a chunk that is too long',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n',
    ],
    ['interim responses without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(4000)],
    [
      'trailers without end',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(20_000)}`,
    ],
    ['headers without end', `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`],
    [
      'an extension without end',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}`,
    ],
  ])('%s', (_name, text) => {
    expect(() => parse(text)).toThrow(/not HTTP\/1\.1/)
  })
})

test('a content length with a run of spaces is refused in linear time', () => {
  const start = processorMs()
  const head = `HTTP/1.1 200 OK\r\nContent-Length: 1${' '.repeat(60_000)}1\r\n\r\n`
  expect(() => parse(head)).toThrow('content length')
  // Far above what linear work needs; quadratic work takes several seconds.
  expect(processorMs() - start).toBeLessThan(1_000)
})

describe('bytes that are not HTTP are refused', () => {
  test.each([
    ['the greeting of a mail server', '220 mail'],
    ['a TLS alert', '\x15\x03\x01\x00\x02\x02\x46'],
    ['HTTP/2', '\x00\x00\x12\x04\x00'],
    ['one wrong byte', 'S'],
    ['an unknown version', 'HTTP/2'],
  ])('%s: before the end of a head', (_, text) => {
    expect(() => parse(text)).toThrow('it does not begin with an HTTP/1.1 status')
  })

  test('property: the first wrong byte is enough, however the bytes arrive', () => {
    const good = 'HTTP/1.'
    const place = fc.nat({ max: good.length - 1 })
    fc.assert(
      fc.property(place, fc.nat({ max: 255 }), fc.array(fc.nat(20)), (at, byte, cuts) => {
        fc.pre(byte !== good.charCodeAt(at))
        const text = good.slice(0, at) + String.fromCharCode(byte)
        expect(() =>
          parse(
            text,
            cuts.map((cut) => Math.min(cut, text.length)),
          ),
        ).toThrow('HTTP/1.1')
        expect(parse(good.slice(0, at)).isDone).toBe(false)
      }),
    )
  })
})
