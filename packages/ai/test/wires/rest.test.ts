/** Details of single formats and of turns: signatures, schemas of tools, parameters that replace fields, limits. */
import {
  llm,
  messageFromJSON,
  NoRetry,
  tool,
  type Middleware,
  type ModelReference,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { openai } from '@skein/ai/openai'
import { says, scripted, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryEvents } from '../../src/resumable/event-log.ts'

function answers(...bodies: readonly object[]) {
  const requests: JsonObject[] = []
  const paths: string[] = []
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    paths.push(`${init.method} ${new URL(url).pathname}`)
    if (init.body) requests.push(JSON.parse(init.body as string) as JsonObject)
    return Response.json(bodies[paths.length - 1])
  }
  return { requests, paths, config: { apiKey: 'k', fetch, retryStrategy: new NoRetry() } }
}

const chat = (message: object, finish_reason = 'stop'): object => ({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})

test('the signature of a thinking chunk goes back to Mistral', async () => {
  const content = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }], signature: 'sig' },
    { type: 'text', text: 'Yes' },
  ]
  const { requests, config } = answers(chat({ content }), chat({ content: 'ok' }))
  const bot = llm({ model: mistral('magistral-medium'), config })
  const turn = await bot.generate('q')
  await bot.generate(turn.messages, 'and?')
  expect((requests[1]!['messages'] as JsonObject[])[1]!['content']).toEqual(content)
})

test('a structure that onCycle sets is parsed', async () => {
  const structure: Middleware = {
    name: 'structure',
    onCycle: (request) => ({
      ...request,
      structure: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
    }),
  }
  const turn = await llm({ model: scripted([says('{"a":1}')]), middleware: [structure] }).generate(
    'q',
  )
  expect(turn.data).toEqual({ a: 1 })
})

describe('a wrapped scalar at the token limit', () => {
  const ask = (content: string) =>
    llm({
      model: openai('gpt-4o', { api: 'chat' }),
      config: answers(chat({ content }, 'length')).config,
      structure: { type: 'number' },
    }).generate('q')

  test('is read if the vendor closed its wrapper', async () => {
    expect((await ask('{"value": 12}')).data).toBe(12)
  })

  test('is refused if the wrapper is open', async () => {
    await expect(ask('{"value": 12')).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  })
})

test('tools reach Gemini with the keywords that it has', async () => {
  const node: z.ZodType = z.object({
    name: z.string(),
    get children() {
      return z.array(node).optional()
    },
  })
  const find = tool({
    name: 'find',
    description: '',
    parameters: z.object({ tree: node }),
    run: () => 1,
  })
  const raw = {
    name: 'old',
    description: '',
    parameters: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { a: { $ref: '#/definitions/n' }, kind: { const: 'x' } },
      definitions: { n: { type: 'string' } },
    },
    run: () => 1,
  }
  const server = vendorServer([says('Hi')])
  const config = { fetch: server.fetch, baseUrl: 'http://vendor.test/v1beta', apiKey: 'k' }
  const turn = await llm({ model: google('gemini-3-pro'), config, tools: [find, raw] }).generate(
    'q',
  )
  const text = JSON.stringify(server.requests[0]!.body['tools'])
  expect(text).not.toMatch(/\$schema|definitions/)
  expect(text).toContain('"$ref":"#/$defs/n"')
  expect(text).toContain('"$defs":{"n":{"type":"string"}}')
  expect(turn.warnings).toEqual([])
})

describe('params that replace fields of the request', () => {
  const bodies = (
    model: ModelReference,
  ): { server: ReturnType<typeof vendorServer>; config: object } => {
    const server = vendorServer([says('Hi')])
    const prefix = model.provider.name === 'google' ? '/v1beta' : '/v1'
    return {
      server,
      config: { fetch: server.fetch, baseUrl: `http://vendor.test${prefix}`, apiKey: 'k' },
    }
  }
  test.each<[string, ModelReference, string, unknown]>([
    ['openai', openai('gpt-5'), 'input', 'replaced'],
    ['openai', openai('gpt-5'), 'instructions', 'replaced'],
    ['openai', openai('gpt-5'), 'model', 'gpt-4o'],
    [
      'openai chat',
      openai('gpt-4o', { api: 'chat' }),
      'messages',
      [{ role: 'user', content: 'replaced' }],
    ],
    ['anthropic', anthropic('claude-x'), 'messages', [{ role: 'user', content: 'replaced' }]],
    [
      'google',
      google('gemini-3-pro'),
      'contents',
      [{ role: 'user', parts: [{ text: 'replaced' }] }],
    ],
  ])(
    '%s %#: %s win, and the turn has a warning that names them',
    async (_name, model, field, value) => {
      const { server, config } = bodies(model)
      const params = { [field]: value } as never
      const turn = await llm({ model, config, params, system: 'Be kind' }).generate('q')
      expect(server.requests[0]!.body[field]).toEqual(value)
      expect(turn.warnings).toMatchObject([{ code: 'field_replaced', pointer: `/params/${field}` }])
    },
  )

  test('what is only added gives none', async () => {
    const { config } = bodies(anthropic('claude-x'))
    const params = {
      system: [{ type: 'text', text: 'more' }],
      max_tokens: 9,
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    }
    expect(
      (await llm({ model: anthropic('claude-x'), config, params, system: 'x' }).generate('q'))
        .warnings,
    ).toEqual([])
  })
})

test.each([
  { type: 'image', mimeType: 'image/png', source: {} },
  { type: 'image', mimeType: 'image/png', source: { type: 'base64' } },
  { type: 'image', mimeType: 'image/png', source: { type: 'url', url: 5 } },
  { type: 'image', source: { type: 'url', url: 'https://x' } },
  { type: 'document', mimeType: 'text/plain', source: { type: 'text' } },
])('messageFromJSON refuses %j', (block) => {
  const json = { id: '1', type: 'user', timestamp: '2026-01-01T00:00:00Z', content: [block] }
  expect(() => messageFromJSON(json)).toThrow(/content\[0\]/)
})

test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE'])(
  'an answer of Gemini that ends with %s has a warning',
  async (finishReason) => {
    const { config } = answers({ candidates: [{ finishReason }], usageMetadata: {} })
    const turn = await llm({ model: google('gemini-2.5-flash'), config }).generate('q')
    expect(turn).toMatchObject({
      stopReason: 'other',
      rawStopReason: finishReason,
      warnings: [{ code: 'malformed_answer', message: expect.stringContaining(finishReason) }],
    })
  },
)

test('reading one stream costs the same with many others', () => {
  const time = (others: number): number => {
    const log = memoryEvents({ maxStreams: 100_000 })
    for (let i = 0; i < others; i++) void log.create(`${i}`)
    const start = process.cpuUsage()
    for (let i = 0; i < 20_000; i++) void log.read('5', 0)
    const { user, system } = process.cpuUsage(start)
    return user + system
  }
  time(10)
  expect(time(10_000)).toBeLessThan(20 * time(10) + 50_000)
})

describe('answers that are not over', () => {
  const output = [
    {
      type: 'message',
      id: 'm1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'done', annotations: [] }],
    },
  ]
  const usage = { input_tokens: 1, output_tokens: 1 }

  test('OpenAI: an answer in the background is asked for until its end', async () => {
    const { paths, config } = answers(
      { id: 'resp_1', object: 'response', status: 'queued', background: true, output: [] },
      { id: 'resp_1', object: 'response', status: 'in_progress', background: true, output: [] },
      { id: 'resp_1', object: 'response', status: 'completed', background: true, output, usage },
    )
    const turn = await llm({
      model: openai('gpt-5'),
      config,
      params: { background: true },
    }).generate('q')
    expect(turn.response.text).toBe('done')
    expect(turn.stopReason).toBe('end_turn')
    expect(paths).toEqual([
      'POST /v1/responses',
      'GET /v1/responses/resp_1',
      'GET /v1/responses/resp_1',
    ])
  })

  describe('OpenAI: an answer in the background that nobody waits for any more is ended', () => {
    const pending = {
      id: 'resp_1',
      object: 'response',
      status: 'in_progress',
      background: true,
      output: [],
    }
    const ended = 'POST /v1/responses/resp_1/cancel'

    /** A vendor that never finishes; `run` gives up. */
    async function given(run: (model: ReturnType<typeof llm>, stop: AbortController, paths: readonly string[]) => unknown, timeout?: number) {
      const paths: string[] = []
      const fetch = async (url: string, { method, body }: RequestInit): Promise<Response> => {
        paths.push(`${method} ${new URL(url).pathname}`)
        if (!String(body).includes('"stream":true')) return Response.json(pending)
        const frame = `event: response.created\ndata: ${JSON.stringify({ type: 'response.created', sequence_number: 0, response: pending })}\n\n`
        const open = new ReadableStream({ start: (it) => it.enqueue(new TextEncoder().encode(frame)) })
        return new Response(open, { headers: { 'content-type': 'text/event-stream' } })
      }
      const stop = new AbortController()
      const config = { apiKey: 'k', fetch, timeout, retryStrategy: new NoRetry() }
      const params = { background: true }
      await run(llm({ model: openai('gpt-5'), config, params, signal: stop.signal }), stop, paths)
      await expect.poll(() => paths.at(-1), { timeout: 10_000 }).toBe(ended)
      expect(paths.filter((path) => path === ended)).toHaveLength(1)
      return paths
    } // prettier-ignore

    test('by an abort while it is asked for', async () => {
      const paths = await given(async (model, stop, seen) => {
        const failed = expect(model.generate('q')).rejects.toMatchObject({ code: 'CANCELLED' })
        await expect.poll(() => seen[1], { timeout: 10_000 }).toBe('GET /v1/responses/resp_1')
        stop.abort()
        await failed
      })
      expect(paths[0]).toBe('POST /v1/responses')
    })

    test('by the time limit', async () => {
      await given(async (model) => {
        const error = { code: 'TIMEOUT', hint: expect.stringContaining('config.timeout') }
        await expect(model.generate('q')).rejects.toMatchObject(error)
      }, 300)
    })

    test.each(['an abort', 'leaving the loop'])('by %s of its stream', async (way) => {
      const paths = await given(async (model, stop) => {
        const stream = model.stream('q')
        const read = async (): Promise<void> => {
          for await (const event of stream) {
            expect(event.type).toBe('message_start')
            if (way === 'leaving the loop') break
            stop.abort()
          }
        }
        if (way === 'leaving the loop') return read()
        await expect(read()).rejects.toMatchObject({ code: 'CANCELLED' })
      })
      expect(paths).toEqual(['POST /v1/responses', ended])
    })
  })

  test('Anthropic: a pause for compaction is continued', async () => {
    const message = (content: object[], stop_reason: string): object => ({
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'c',
      content,
      stop_reason,
      usage,
    })
    const compaction = { type: 'compaction', content: 'Summary.' }
    const { requests, config } = answers(
      message([compaction], 'compaction'),
      message([{ type: 'text', text: 'done' }], 'end_turn'),
    )
    const turn = await llm({ model: anthropic('claude-x'), config }).generate('q')
    expect(turn.response.text).toBe('done')
    expect((requests[1]!['messages'] as JsonObject[])[1]).toEqual({
      role: 'assistant',
      content: [compaction],
    })
  })
})
