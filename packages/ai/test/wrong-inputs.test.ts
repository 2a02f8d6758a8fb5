import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { anthropic } from '@skein/ai/anthropic'
import { ResumableStreams } from '@skein/ai/middleware'
import { RateLimiter, rateLimit } from '@skein/ai/routing'
import { openai } from '@skein/ai/openai'
import {
  Audio,
  Document,
  Image,
  llm,
  type LLMOptions,
  type ProviderConfig,
  Thread,
  ToolResultMessage,
  UserMessage,
  Video,
} from '@skein/ai'

const invalid = (text: string | RegExp) =>
  expect.objectContaining({
    code: 'INVALID_REQUEST',
    message: expect.stringMatching(text),
  })

/** The error that a function throws, or that its promise rejects with. */
async function failure(run: () => unknown): Promise<unknown> {
  try {
    await run()
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}

describe('headers of the configuration', () => {
  async function headersOf(config: ProviderConfig): Promise<Headers> {
    let headers = new Headers()
    const fetch = async (_: string, init: RequestInit): Promise<Response> => {
      headers = new Headers(init.headers)
      return new Response('{"error":{"message":"no"}}', { status: 400 })
    }
    const model = llm({ model: anthropic('m'), config: { apiKey: 'k', fetch, ...config } })
    await expect(model.generate('hi')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    return headers
  }

  test('undefined is left out, a number is written', async () => {
    const headers = await headersOf({ headers: { 'x-token': undefined, 'x-key-version': 7 } })
    expect(headers.has('x-token')).toBe(false)
    expect(headers.get('x-key-version')).toBe('7')
  })

  test('undefined leaves a default header as it is, null removes it', async () => {
    expect((await headersOf({ headers: { 'Anthropic-Version': undefined } })).has('anthropic-version')).toBe(true) // prettier-ignore
    expect((await headersOf({ headers: { 'Anthropic-Version': null } })).has('anthropic-version')).toBe(false) // prettier-ignore
  })

  test('a header of the configuration replaces ours: another version of the API', async () => {
    const headers = await headersOf({ headers: { 'Anthropic-Version': '2026-10-21' } })
    expect(headers.get('anthropic-version')).toBe('2026-10-21')
  })

  test('the key can be removed too, and then none is needed', async () => {
    const headers = await headersOf({ apiKey: undefined, headers: { 'X-Api-Key': null } })
    expect(headers.has('x-api-key')).toBe(false)
  })

  test('a printed configuration still hides them', () => {
    const model = llm({ model: openai('m'), config: { headers: { a: 7, b: undefined, c: null } } })
    expect(model.model.modelId).toBe('m')
  })
})

describe('media without data', () => {
  test.each([
    ['Image.fromBytes', () => Image.fromBytes(new Uint8Array(), 'image/png')],
    ['Image.fromBase64', () => Image.fromBase64('', 'image/png')],
    ['Image.fromBase64 of a data URL', () => Image.fromBase64('data:image/png;base64,')],
    ['Audio.fromBytes', () => Audio.fromBytes(new Uint8Array(), 'audio/wav')],
    ['Audio.fromBase64', () => Audio.fromBase64('', 'audio/wav')],
    ['Video.fromBytes', () => Video.fromBytes(new Uint8Array(), 'video/mp4')],
    ['Video.fromBase64', () => Video.fromBase64('', 'video/mp4')],
    ['Document.fromBase64', () => Document.fromBase64('', 'application/pdf')],
    ['Document.fromText', () => Document.fromText('')],
  ])('%s is refused at once', async (_, make) => {
    expect(await failure(make)).toEqual(invalid(/empty/))
  })

  test('an empty file is refused and named', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-empty-'))
    for (const [name, read] of [
      ['a.png', (path: string) => Image.fromPath(path)],
      ['a.pdf', (path: string) => Document.fromPath(path)],
      ['a.txt', (path: string) => Document.fromPath(path)],
      ['a.wav', (path: string) => Audio.fromPath(path)],
      ['a.mp4', (path: string) => Video.fromPath(path)],
    ] as const) {
      const path = join(folder, name)
      writeFileSync(path, '')
      expect(await failure(() => read(path))).toEqual(invalid(new RegExp(`${name}.* is empty`)))
    }
  })
})

describe('hints', () => {
  test('a missing document does not send the caller to a function that documents lack', async () => {
    const { hint } = (await failure(() => Document.fromPath('/nope.pdf'))) as { hint: string }
    expect(hint).not.toContain('fromBytes')
    expect(hint).toContain('fromBase64')
  })

  test.each([anthropic('m'), openai('m'), openai('m', { api: 'chat' })])(
    'an unknown source of a document is named: $provider.name',
    async (model) => {
      const document = {
        type: 'document',
        source: { type: 'file', fileId: 'file_1' },
        mimeType: 'application/pdf',
      } as unknown as Document
      const error = await failure(() =>
        llm({ model, config: { apiKey: 'k', baseUrl: 'http://127.0.0.1:1' } }).generate(document),
      )
      expect(error).toEqual(invalid(/source.*"file"/))
      expect((error as { hint: string }).hint).toMatch(/fromUpload/)
    },
  )

  test('a message of another library is answered with ours', async () => {
    const message = { role: 'user', content: 'hi' } as never
    const error = await failure(() => llm({ model: openai('m') }).generate([message], 'x'))
    expect(error).toEqual(invalid(/role/))
    expect((error as { hint: string }).hint).toContain('new UserMessage(')
  })

  test('a rate limit without a limiter fails when it is made', async () => {
    const make = (options: unknown) => () => rateLimit(openai('m'), options as never)
    expect(await failure(make({ requests: 3 }))).toEqual(invalid(/limiter/))
    expect(await failure(make(undefined))).toEqual(invalid(/limiter/))
    expect(await failure(make({ limiter: {} }))).toEqual(invalid(/limiter/))
    expect(rateLimit(openai('m'), { limiter: new RateLimiter({ requests: 1 }) }).modelId).toBe('m')
  })
})

test('a system prompt that is not a text is refused when the instance is made', async () => {
  for (const system of [[{ type: 'text', text: 'x' }], 5, null, {}]) {
    const options = { model: anthropic('m'), system } as unknown as LLMOptions
    expect(await failure(() => llm(options))).toEqual(invalid(/system/))
  }
})

test('a thread made from a list says how to make it', async () => {
  const Wrong = Thread as unknown as new (messages: unknown) => Thread
  const error = await failure(() => new Wrong([new UserMessage('hi')]))
  expect(error).toEqual(invalid(/list/))
  expect((error as { hint: string }).hint).toContain('new Thread({ messages })')
  expect(await failure(() => new Wrong({ messages: ['hi'] }))).toEqual(invalid(/not a message/))
})

test('the text of tool results is what the model reads', () => {
  const text = (...results: unknown[]): string =>
    new ToolResultMessage(results.map((result, index) => ({ toolCallId: String(index), result })))
      .text
  expect(text('sun')).toBe('sun')
  expect(text({ type: 'text', text: 'block' })).toBe('block')
  expect(text('a', 'b')).toBe('a\nb')
  expect(text({ degrees: 5 })).toBe('{"degrees":5}')
  expect(text(undefined)).toBe('')
  expect(text([{ type: 'image', source: { type: 'url', url: 'https://x.test/' }, mimeType: 'image/png' }])).toBe('') // prettier-ignore
})

test('a request for an unknown stream is answered with 404', async () => {
  const response = await new ResumableStreams().respond('nope', new Request('http://localhost/'))
  expect(response.status).toBe(404)
  expect(response.headers.get('content-type')).toContain('application/json')
  expect(await response.json()).toEqual({
    error: { code: 'STREAM_NOT_FOUND', message: 'There is no stream "nope".' },
  })
})
