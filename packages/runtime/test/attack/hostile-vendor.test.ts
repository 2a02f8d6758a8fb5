import { createServer, type AddressInfo, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { isUPPError, llm, NoRetry, type ErrorCode, type Turn } from '@skein/ai'
import { openaiCompatible } from '@skein/ai/openai-compatible'

const KEY = 'sk-canary-5f2c9d1e7b'
/** What the vendor was asked is echoed back by some of them. */
const PROMPT = 'Hello'
const MAX_BYTES = 512 * 1024

type Write = (text: string | Uint8Array) => boolean
type Script = (write: Write, socket: Socket, request: string) => void | Promise<void>
type Wanted = { readonly text: string | RegExp } | readonly ErrorCode[]

interface Case {
  readonly name: string
  readonly stream?: boolean
  readonly script: Script
  /** How many requests the vendor gets. Default 1. */
  readonly requests?: number
  readonly wanted: Wanted
}

/** What raw servers and the place that redirects point to have seen. */
const seen = { requests: [] as string[], elsewhere: [] as string[], writtenBytes: 0 }
const sockets = new Set<Socket>()
let script: Script
const vendor = createServer((socket) => {
  sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)))
  let text = ''
  socket.on('data', (data) => {
    text += data.toString('latin1')
    const length = /content-length: (\d+)/.exec(text)?.[1]
    const end = text.indexOf('\r\n\r\n')
    if (end < 0 || length === undefined || text.length < end + 4 + Number(length)) return
    const request = text
    text = ''
    seen.requests.push(request)
    const write: Write = (chunk) => {
      if (socket.destroyed) return false
      seen.writtenBytes += chunk.length
      return socket.write(chunk)
    }
    void script(write, socket, request)
  })
})
const elsewhere = createServer((socket) => {
  sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)))
  socket.on('data', (data) => {
    seen.elsewhere.push(data.toString('latin1'))
    socket.end(whole(answer('elsewhere')))
  })
})
const portOf = (server: typeof vendor): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  for (const server of [vendor, elsewhere])
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  // The client has to notice: a request on a connection that is being closed would rightly fail.
  await new Promise((resolve) => setTimeout(resolve, 20))
  seen.requests.length = seen.elsewhere.length = seen.writtenBytes = 0
})
afterAll(() => {
  vendor.close()
  elsewhere.close()
})

function whole(body: string, { status = '200 OK', headers = '' } = {}): string {
  const length = Buffer.byteLength(body)
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${headers}content-length: ${length}\r\n\r\n${body}`
}

function answer(content: string, more: object = {}): string {
  const message = { role: 'assistant', content, ...more }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  return JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices,
    usage,
  })
}

const STREAM =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const frame = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const END = chunk(`${frame({}, 'stop')}data: [DONE]\n\n`) + '0\r\n\r\n'

/** Writes as long as the reader takes it; ends when the socket is closed, or at a bound. */
async function endless(write: Write, socket: Socket, piece: string, most = 64 * 1024 * 1024) {
  for (let sent = 0; sent < most && !socket.destroyed; sent += piece.length)
    if (!write(piece))
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve).once('close', () => resolve())
      })
    else await new Promise((resolve) => setImmediate(resolve))
}

const says =
  (...parts: readonly (string | Uint8Array)[]): Script =>
  (write) => {
    for (const part of parts) write(part)
  }
const saysAndCloses =
  (...parts: readonly (string | Uint8Array)[]): Script =>
  (write, socket) => {
    for (const part of parts) write(part)
    socket.end()
  }
const BROKEN = ['NETWORK_ERROR', 'INVALID_RESPONSE'] as const
const LATE = ['TIMEOUT', ...BROKEN] as const
const good = answer('fine')

const cases: readonly Case[] = [
  // The status line.
  { name: 'no bytes, then closed', script: saysAndCloses(), wanted: BROKEN },
  { name: 'reset at once', script: (_, socket) => void socket.resetAndDestroy(), wanted: BROKEN },
  { name: 'SSH instead of HTTP', script: says('SSH-2.0-OpenSSH_9.6\r\n\r\n'), wanted: BROKEN },
  { name: 'SSH, and the connection stays open', script: says('SSH-2.0-x\r\n'), wanted: LATE },
  {
    name: 'TLS instead of HTTP',
    script: says(Buffer.from('160301020001000001fc0303', 'hex')),
    wanted: LATE,
  },
  { name: 'NUL bytes', script: saysAndCloses(Buffer.alloc(4096)), wanted: BROKEN },
  {
    name: 'a HTTP/2 preface',
    script: saysAndCloses('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    wanted: BROKEN,
  },
  {
    name: 'status 999',
    script: says(whole(good, { status: '999 What' })),
    wanted: ['PROVIDER_ERROR', 'INVALID_RESPONSE'],
  },
  { name: 'status 000', script: saysAndCloses(whole(good, { status: '000 No' })), wanted: BROKEN },
  { name: 'status with letters', script: saysAndCloses('HTTP/1.1 2OO OK\r\n\r\n'), wanted: BROKEN },
  {
    name: 'only line feeds',
    script: saysAndCloses(whole(good).replaceAll('\r\n', '\n')),
    wanted: BROKEN,
  },
  {
    name: '101 switching protocols',
    script: saysAndCloses('HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'),
    wanted: BROKEN,
  },
  // Interim answers.
  {
    name: '100 continue, then the answer',
    script: says('HTTP/1.1 100 Continue\r\n\r\n', whole(good)),
    wanted: { text: 'fine' },
  },
  {
    name: 'a storm of 20,000 times 100 continue',
    script: says('HTTP/1.1 100 Continue\r\n\r\n'.repeat(20_000), whole(good)),
    wanted: [...BROKEN],
  },
  {
    name: '103 early hints without end',
    script: (write, socket) =>
      endless(write, socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(50)),
    wanted: LATE,
  },
  // Headers.
  {
    name: 'a header without colon',
    script: saysAndCloses('HTTP/1.1 200 OK\r\nnonsense\r\n\r\n'),
    wanted: BROKEN,
  },
  {
    name: 'a folded header',
    script: saysAndCloses('HTTP/1.1 200 OK\r\na: b\r\n c: d\r\n\r\n'),
    wanted: BROKEN,
  },
  {
    name: 'a space before the colon',
    script: saysAndCloses(`HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\n{}`),
    wanted: BROKEN,
  },
  {
    name: 'headers without end',
    script: (write, socket) => {
      write('HTTP/1.1 200 OK\r\n')
      return endless(write, socket, 'x-a: b\r\n'.repeat(100))
    },
    wanted: LATE,
  },
  {
    name: 'one header without end',
    script: (write, socket) => {
      write('HTTP/1.1 200 OK\r\nx-a: ')
      return endless(write, socket, 'b'.repeat(1000))
    },
    wanted: LATE,
  },
  {
    name: 'a header named __proto__',
    script: says(whole(good, { headers: '__proto__: 1\r\nconstructor: 2\r\n' })),
    wanted: { text: 'fine' },
  },
  {
    name: 'a header value with NUL and ESC',
    script: says(whole(good, { headers: 'x-request-id: a\0b\u001b[2J\r\n' })),
    wanted: { text: 'fine' },
  },
  // Framing.
  {
    name: 'two lengths that differ',
    script: saysAndCloses(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}`),
    wanted: BROKEN,
  },
  {
    name: 'a negative length',
    script: saysAndCloses('HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n'),
    wanted: BROKEN,
  },
  {
    name: 'a length of 15 digits',
    script: saysAndCloses('HTTP/1.1 200 OK\r\ncontent-length: 999999999999999\r\n\r\n{'),
    wanted: BROKEN,
  },
  {
    name: 'a length of 1 and 60,000 spaces',
    script: saysAndCloses(`HTTP/1.1 200 OK\r\ncontent-length: 1${' '.repeat(60_000)}1\r\n\r\n{}`),
    wanted: BROKEN,
  },
  {
    name: 'a length that is too small',
    script: says(whole(good).replace(/content-length: \d+/, 'content-length: 10')),
    wanted: BROKEN,
  },
  {
    name: 'a length that is too large, then closed',
    script: saysAndCloses(whole(good).replace(/content-length: \d+/, 'content-length: 9999')),
    wanted: BROKEN,
  },
  {
    name: 'length and chunks (smuggling)',
    script: says(
      `HTTP/1.1 200 OK\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${chunk(good)}0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`,
    ),
    wanted: { text: 'fine' },
  },
  {
    name: 'a second answer behind the first',
    script: says(whole(good), whole(answer('evil'))),
    wanted: { text: 'fine' },
  },
  {
    name: 'transfer encoding gzip, chunked',
    script: saysAndCloses('HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
    wanted: BROKEN,
  },
  {
    name: 'a chunk size that is no number',
    script: saysAndCloses(`${STREAM}zz\r\nhello\r\n`),
    stream: true,
    wanted: BROKEN,
  },
  {
    name: 'a chunk size of 16 digits',
    script: saysAndCloses(`${STREAM}ffffffffffffffff\r\nhello\r\n`),
    stream: true,
    wanted: BROKEN,
  },
  {
    name: 'a negative chunk size',
    script: saysAndCloses(`${STREAM}-1\r\nhello\r\n`),
    stream: true,
    wanted: BROKEN,
  },
  {
    name: 'a chunk extension without end',
    script: (write, socket) => {
      write(`${STREAM}5;`)
      return endless(write, socket, 'x'.repeat(1000))
    },
    stream: true,
    wanted: LATE,
  },
  {
    name: 'trailers without end',
    script: (write, socket) => {
      write(`${STREAM}0\r\n`)
      return endless(write, socket, 'x-a: b\r\n'.repeat(100))
    },
    stream: true,
    wanted: LATE,
  },
  {
    name: 'closed in the middle of a chunk',
    script: saysAndCloses(`${STREAM}ff\r\n${frame({ content: 'half' })}`),
    stream: true,
    wanted: BROKEN,
  },
  {
    name: 'closed after a chunk, without the last',
    script: saysAndCloses(`${STREAM}${chunk(frame({ content: 'half' }))}`),
    stream: true,
    wanted: BROKEN,
  },
  // Size and time.
  {
    name: 'a body without end',
    script: (write, socket) => {
      write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"')
      return endless(write, socket, 'x'.repeat(65_536))
    },
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'one event without end',
    script: (write, socket) => {
      write(`${STREAM.replace('transfer-encoding: chunked\r\n', '')}data: "`)
      return endless(write, socket, 'x'.repeat(65_536))
    },
    stream: true,
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'events without end',
    script: (write, socket) => {
      write(STREAM.replace('transfer-encoding: chunked\r\n', ''))
      return endless(write, socket, frame({ content: 'x'.repeat(10_000) }))
    },
    stream: true,
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'comments without end',
    script: (write, socket) => {
      write(STREAM.replace('transfer-encoding: chunked\r\n', ''))
      return endless(write, socket, ': ping\n\n'.repeat(1000))
    },
    stream: true,
    wanted: ['INVALID_RESPONSE', 'TIMEOUT'],
  },
  {
    name: 'an error body without end',
    script: (write, socket) => {
      write('HTTP/1.1 500 Oops\r\n\r\n')
      return endless(write, socket, '<title '.repeat(10_000))
    },
    wanted: ['PROVIDER_ERROR'],
  },
  {
    name: 'an error page of 20,000 open titles',
    script: saysAndCloses(whole(`<html>${'<title '.repeat(20_000)}`, { status: '500 Oops' })),
    wanted: ['PROVIDER_ERROR'],
  },
  {
    name: 'a gzip bomb',
    script: saysAndCloses(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n',
      gzipSync(Buffer.alloc(64 * 1024 * 1024, '[')),
    ),
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'a brotli bomb as a stream',
    script: saysAndCloses(
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: br\r\n\r\n',
      brotliCompressSync(Buffer.alloc(64 * 1024 * 1024, 'a')),
    ),
    stream: true,
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'broken gzip',
    script: saysAndCloses('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nnot gzip'),
    wanted: BROKEN,
  },
  {
    name: 'one byte of the head every 20 ms',
    script: async (write, socket) => {
      for (const byte of whole(good)) {
        if (socket.destroyed) return
        write(byte)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    wanted: LATE,
  },
  {
    name: 'a head, then silence',
    script: says('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n'),
    wanted: ['TIMEOUT'],
  },
  {
    name: 'half a stream, then silence',
    script: says(STREAM, chunk(frame({ content: 'half' }))),
    stream: true,
    wanted: ['TIMEOUT'],
  },
  // Where a request goes.
  ...[301, 302, 303, 307, 308].map((status): Case => ({
    name: `a redirect (${status}) to another server`,
    script: (write) =>
      void write(
        whole('{}', {
          status: `${status} Away`,
          headers: `location: http://127.0.0.1:${portOf(elsewhere)}/v1/chat/completions?token=${KEY}\r\n`,
        }),
      ),
    wanted: ['INVALID_RESPONSE'],
  })),
  {
    name: '401 that asks for credentials',
    script: says(
      whole('{"error":{"message":"no"}}', {
        status: '401 No',
        headers: 'www-authenticate: Basic realm="give"\r\n',
      }),
    ),
    wanted: ['AUTHENTICATION_FAILED'],
  },
  // What a body says.
  {
    name: 'an error that repeats the request',
    script: (write, _, request) =>
      void write(
        whole(JSON.stringify({ error: { message: request, code: request, type: request } }), {
          status: '400 Bad',
          headers: `x-request-id: ${KEY}\r\n`,
        }),
      ),
    wanted: ['INVALID_REQUEST'],
  },
  {
    name: 'an error with the key in base64',
    script: says(
      whole(JSON.stringify({ error: { message: `bad ${KEY} ${encodeURIComponent(KEY)}` } }), {
        status: '403 No',
      }),
    ),
    wanted: ['AUTHENTICATION_FAILED'],
  },
  { name: 'no JSON', script: says(whole('<html>hi</html>')), wanted: ['INVALID_RESPONSE'] },
  { name: 'JSON of another shape', script: says(whole('[1,2,3]')), wanted: ['INVALID_RESPONSE'] },
  { name: 'null', script: says(whole('null')), wanted: ['INVALID_RESPONSE'] },
  {
    name: 'JSON 100,000 deep',
    script: says(whole(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)),
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: '__proto__ in the answer',
    script: says(
      whole(
        good.replace(
          '{"id"',
          '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"id"',
        ),
      ),
    ),
    wanted: { text: 'fine' },
  },
  {
    name: 'invalid UTF-8 in an event',
    script: (write) => {
      const bytes = Buffer.concat([
        Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"a'),
        Buffer.from([0xff, 0xfe, 0xc0, 0x80]),
        Buffer.from('b"}}]}\n\n'),
      ])
      write(STREAM)
      write(`${bytes.length.toString(16)}\r\n`)
      write(bytes)
      write(`\r\n${END}`)
    },
    stream: true,
    wanted: { text: /^a\ufffd+b$/ },
  },
  {
    name: 'an event that is no JSON',
    script: says(STREAM, chunk('data: {"choices":\n\n'), END),
    stream: true,
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: 'events of unknown names',
    script: says(
      STREAM,
      chunk('event: __proto__\nid: \0\nretry: 1e9\ndata: \n\n'),
      chunk(frame({ content: 'fine' })),
      END,
    ),
    stream: true,
    wanted: { text: 'fine' },
  },
  {
    name: 'an error event in a stream',
    script: says(
      STREAM,
      chunk(
        `data: ${JSON.stringify({ error: { message: `no ${KEY}`, type: 'server_error' } })}\n\n`,
      ),
      END,
    ),
    stream: true,
    wanted: ['PROVIDER_ERROR'],
  },
  {
    name: 'JSON where a stream was asked for',
    script: says(whole(good)),
    stream: true,
    wanted: { text: 'fine' },
  },
  {
    name: 'a stream without a single event',
    script: says(STREAM, '0\r\n\r\n'),
    stream: true,
    wanted: ['INVALID_RESPONSE'],
  },
  {
    name: '100 tool calls with one id, huge indexes and broken arguments',
    script: (write, _, request) => {
      const call = (i: number): object => ({
        index: 2 ** 31 + i,
        id: 'same',
        function: { name: '__proto__', arguments: '{' },
      })
      const calls = Array.from({ length: 100 }, (__, i) => frame({ tool_calls: [call(i)] }))
      const isSecond = request.includes('"role":"tool"')
      write(`${STREAM}${chunk(isSecond ? frame({ content: 'fine' }) : calls.join(''))}${END}`)
    },
    stream: true,
    requests: 2,
    wanted: { text: 'fine' },
  },
]

async function ask(isStream: boolean): Promise<Turn | Error> {
  const provider = openaiCompatible({
    name: 'raw',
    baseUrl: `http://127.0.0.1:${portOf(vendor)}/v1`,
  })
  const model = llm({
    model: provider('m'),
    config: {
      apiKey: KEY,
      retryStrategy: new NoRetry(),
      maxResponseBytes: MAX_BYTES,
      timeout: 4000,
      timeouts: { headersMs: 800, idleMs: 800 },
    },
  })
  try {
    return await (isStream ? model.stream(PROMPT).turn : model.generate(PROMPT))
  } catch (error) {
    return error as Error // the test looks at what it is
  }
}

describe('a vendor that speaks raw bytes', () => {
  test.each(cases)('$name', { timeout: 15_000 }, async (given) => {
    const { stream, requests = 1, wanted } = given
    script = given.script
    const cpuBefore = process.cpuUsage()
    const result = await ask(stream ?? false)
    const { user } = process.cpuUsage(cpuBefore)

    if (result instanceof Error) {
      expect(isUPPError(result), inspect(result)).toBe(true)
      const { code } = result as Error & { code: ErrorCode }
      expect('text' in wanted ? ['an answer'] : wanted, result.message).toContain(code)
      const shown = [inspect(result, { depth: 10 }), JSON.stringify(result), result.stack].join()
      expect(shown).not.toContain(KEY)
    } else {
      const { text } = result.response
      if ('text' in wanted) expect(text).toEqual(expect.stringMatching(wanted.text))
      else expect(`an answer: ${text.slice(0, 80)}`).toEqual(`one of ${wanted.join()}`)
    }
    // Sent once, to the right address only, and never further.
    expect(seen.requests).toHaveLength(requests)
    expect(seen.elsewhere).toEqual([])
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    // What was taken from the network is bounded, and so is what it cost to look at it.
    expect(seen.writtenBytes).toBeLessThan(8 * 1024 * 1024)
    expect(user / 1000, 'ms of processor time').toBeLessThan(2000)
  })

  test('after all that, an ordinary answer comes, also over a connection that was used', async () => {
    script = says(whole(good))
    for (let round = 0; round < 3; round++)
      expect(await ask(false)).toMatchObject({ response: { text: 'fine' } })
    expect(seen.requests).toHaveLength(3)
  })

  test('a connection that was poisoned by a second answer is not used again', async () => {
    script = says(whole(good), whole(answer('evil')))
    await ask(false)
    script = says(whole(answer('mine')))
    expect(await ask(false)).toMatchObject({ response: { text: 'mine' } })
  })

  test('with retries off, a request that may have been read is not sent again', async () => {
    script = says(whole(good))
    await ask(false)
    // The connection is used again: read, then closed without an answer.
    script = (_, socket) => void setTimeout(() => socket.destroy(), 100)
    expect(await ask(false)).toMatchObject({ code: 'NETWORK_ERROR' })
    expect(seen.requests).toHaveLength(2)
  })

  test('closed after each byte of an answer: an error or the whole answer, never a part of it', async () => {
    const text = `${STREAM}${chunk(frame({ content: 'All ' }))}${chunk(frame({ content: 'of it.' }))}${END}`
    const step = process.env['SKEIN_DEEP'] ? 1 : 7
    for (let cut = 0; cut < text.length; cut += step) {
      script = saysAndCloses(text.slice(0, cut))
      const result = await ask(true)
      if (result instanceof Error) expect(isUPPError(result), `cut at ${cut}`).toBe(true)
      else expect(result.response.text, `cut at ${cut}`).toBe('All of it.')
    }
  })
})
