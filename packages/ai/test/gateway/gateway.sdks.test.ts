import Anthropic from '@anthropic-ai/sdk'
import { embedding, llm, NoRetry, type ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel, type Gateway, type GatewayOptions } from '@skein/ai/gateway'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import {
  calls,
  fails,
  reasons,
  says,
  scripted,
  stops,
  vendorServer,
  waits,
  type ScriptedModel,
  type VendorServer,
} from '@skein/ai/testing'
import { xai } from '@skein/ai/xai'
import { manualClock, sequentialIds, type JsonObject } from '@skein/base'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { serveFetch } from './serve-fetch.ts'

const hi = [{ role: 'user', content: 'Hi' }]
const bodies: Readonly<Record<string, JsonObject>> = {
  '/v1/chat/completions': { model: 'm', messages: hi },
  '/v1/responses': { model: 'm', input: 'Hi' },
  '/v1/messages': { model: 'm', max_tokens: 5, messages: hi },
}
const paths = Object.keys(bodies)

function post(
  handler: Gateway,
  path: string,
  body: unknown = bodies[path],
  init: RequestInit = {},
): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return handler(new Request(`http://gateway.test${path}`, { method: 'POST', body: text, ...init }))
}

const serving = (model: ModelReference, options: Partial<GatewayOptions> = {}): Gateway =>
  gateway({ models: { m: model }, ...options })

describe.each(paths)('%s', (path) => {
  test('answers, and tells failures of the model with their status', async () => {
    const handler = serving(
      scripted([
        says('Hello'),
        fails({ code: 'RATE_LIMITED', message: 'Slow down.', retryAfterMs: 1500 }),
        fails({ code: 'CONTEXT_LENGTH_EXCEEDED', message: 'Too long.' }),
      ]),
    )
    const answer = await post(handler, path)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('Hello')
    const limited = await post(handler, path)
    expect(limited.status).toBe(429)
    expect(limited.headers.get('retry-after')).toBe('2')
    expect(await limited.text()).toContain('Slow down.')
    expect((await post(handler, path)).status).toBe(400)
  })

  test('a stream that fails before its first word is an HTTP error', async () => {
    const handler = serving(scripted([fails({ code: 'RATE_LIMITED', statusCode: 429 })]))
    const response = await post(handler, path, { ...bodies[path], stream: true })
    expect(response.status).toBe(429)
  })

  test('reasoning, text and calls of a stream reach the client', async () => {
    const handler = serving(
      scripted([[reasons('ponder'), says('speak'), calls('add', { a: 41 }, { id: 'call_9' })]]),
    )
    const response = await post(handler, path, { ...bodies[path], stream: true })
    const text = await response.text()
    for (const word of ['ponder', 'speak', 'call_9', '41']) expect(text, word).toContain(word)
  })

  test('a stream that fails later tells it in the stream', async () => {
    const handler = serving(scripted([[says('part'), fails('Broken here.')]]))
    const response = await post(handler, path, { ...bodies[path], stream: true })
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toContain('part')
    expect(text).toContain('Broken here.')
    expect(text).not.toContain('[DONE]')
  })

  test('what cannot be read is refused with the name of the field', async () => {
    const handler = serving(scripted([]))
    expect((await post(handler, path, '{"model":')).status).toBe(400)
    expect((await post(handler, path, [])).status).toBe(400)
    const nameless = await post(handler, path, { ...bodies[path], model: undefined })
    expect(nameless.status).toBe(400)
    expect(await nameless.text()).toContain('model')
    const wrong = await post(handler, path, { ...bodies[path], messages: 3, input: 3 })
    expect(wrong.status).toBe(400)
  })

  test('a large body is refused, whether its length was told or not', async () => {
    const handler = serving(scripted([]), { limits: { maxBodyBytes: 50 } })
    expect((await post(handler, path, { ...bodies[path], x: 'x'.repeat(60) })).status).toBe(413)
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(20).fill(32)),
    })
    const request = new Request(`http://gateway.test${path}`, {
      method: 'POST',
      body: endless,
      duplex: 'half',
    } as RequestInit)
    expect((await handler(request)).status).toBe(413)
  })

  test('a client that leaves aborts the model, streamed or not', async () => {
    for (const stream of [true, false]) {
      const model = scripted([[says('word'), waits(Infinity)]])
      const left = new AbortController()
      const pending = post(
        serving(model),
        path,
        { ...bodies[path], stream },
        { signal: left.signal },
      )
      await expect.poll(() => model.requests.length).toBe(1)
      if (stream) {
        const reader = (await pending).body!.getReader()
        const decoder = new TextDecoder()
        while (!decoder.decode((await reader.read()).value).includes('word'));
        void reader.read() // the model is being waited for when the client leaves
        await new Promise((resolve) => setTimeout(resolve, 5))
        await reader.cancel()
        expect(model.requests[0]?.signal.aborted).toBe(true)
      } else {
        left.abort()
        await pending
      }
      await expect.poll(() => model.requests[0]?.signal.aborted).toBe(true)
    }
  })

  test('an answer of the wrong method or path says so', async () => {
    const handler = serving(scripted([]))
    expect((await handler(new Request(`http://gateway.test${path}`))).status).toBe(405)
    expect((await post(handler, `${path}/nowhere`, bodies[path])).status).toBe(404)
    expect((await post(handler, `/mounted/here${path}`)).status).not.toBe(404)
  })
})

describe('limits', () => {
  const clock = manualClock(1_000_000)
  const keyed = (model: ScriptedModel): Gateway =>
    serving(model, {
      clock,
      keys: [
        { key: 'sk-a', name: 'a' },
        { key: 'sk-b', name: 'b', limits: { requestsPerMinute: 100, concurrency: 1 } },
      ],
      limits: { requestsPerMinute: 2 },
    })
  const asks = (handler: Gateway, key: string, body: object = {}): Promise<Response> =>
    post(
      handler,
      '/v1/responses',
      { ...bodies['/v1/responses'], ...body },
      {
        headers: { authorization: `Bearer ${key}` },
      },
    )

  test('requests a minute, per client, refilled steadily', async () => {
    const handler = keyed(scripted(() => says('ok')))
    const statuses = async (key: string, count: number): Promise<number[]> => {
      const list: number[] = []
      for (let i = 0; i < count; i++) list.push((await asks(handler, key)).status)
      return list
    }
    expect(await statuses('sk-a', 3)).toEqual([200, 200, 429])
    expect(await statuses('sk-b', 3)).toEqual([200, 200, 200])
    const refused = await asks(handler, 'sk-a')
    expect(refused.headers.get('retry-after')).toBe('30')
    clock.advance(30_000)
    expect(await statuses('sk-a', 2)).toEqual([200, 429])
    clock.advance(600_000)
    expect(await statuses('sk-a', 3)).toEqual([200, 200, 429])
  })

  test('requests at once: a stream counts until it was read or left', async () => {
    const handler = keyed(scripted(() => says('one two')))
    const first = await asks(handler, 'sk-b', { stream: true })
    expect((await asks(handler, 'sk-b')).status).toBe(429)
    await first.text()
    const second = await asks(handler, 'sk-b', { stream: true })
    expect(second.status).toBe(200)
    expect((await asks(handler, 'sk-b')).status).toBe(429)
    await second.body!.cancel()
    expect((await asks(handler, 'sk-b')).status).toBe(200)
  })

  test('refused requests and failures do not leave a place taken', async () => {
    const handler = keyed(scripted(() => fails('no')))
    for (let i = 0; i < 5; i++) {
      expect((await asks(handler, 'sk-b')).status).toBe(500)
      expect((await asks(handler, 'sk-b', { model: 'none' })).status).toBe(404)
    }
  })
})

describe('secrets', () => {
  const upstream = 'sk-upstream-canary'
  const client = 'sk-client-canary'

  async function everythingSaid(vendor: VendorServer, seen: unknown[]): Promise<string> {
    const handler = gateway({
      models: {
        m: servedModel({
          model: openai('gpt-5'),
          config: { fetch: vendor.fetch, apiKey: upstream, retryStrategy: new NoRetry() },
        }),
      },
      keys: [{ key: client, name: 'someone' }],
      onError: (error) => seen.push(error),
    })
    let said = ''
    for (const key of [client, 'sk-wrong'])
      for (const path of [...paths, '/v1/models', '/v1/nothing'])
        for (const stream of [true, false]) {
          const response = await post(
            handler,
            path,
            { ...bodies[path], stream },
            {
              headers: { 'x-api-key': key },
            },
          )
          said += JSON.stringify([...response.headers]) + (await response.text())
        }
    return said
  }

  test('neither key shows, whatever the vendor answers', async () => {
    // The server quotes the key it refuses, as vendors do.
    const refusing = vendorServer(() => says('ok'), { apiKey: 'sk-another' })
    const broken = vendorServer(() => [says('a'), fails(`What is ${upstream}?`)])
    const seen: unknown[] = []
    const said = (await everythingSaid(refusing, seen)) + (await everythingSaid(broken, seen))
    expect(said).not.toContain(upstream)
    expect(said).not.toContain(client)
    expect(said).toContain('no access to this model')
    expect(seen.length).toBeGreaterThan(0)
    const errors = seen.map((error) => `${JSON.stringify(error)} ${String(error)}`).join()
    expect(errors).not.toContain(upstream)
    expect(errors).not.toContain(client)
    for (const { headers, text } of [...refusing.requests, ...broken.requests])
      expect(JSON.stringify(headers) + text).not.toContain(client)
  })

  test('an error that is not ours says nothing of its inside', async () => {
    const handler = gateway({
      models: {
        m: () => {
          throw new Error('password=hunter2')
        },
      },
    })
    const response = await post(handler, '/v1/responses')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('hunter2')
  })
})

describe('settings and tools of a client reach any vendor', () => {
  const chat: JsonObject = {
    model: 'm',
    messages: [{ role: 'system', content: 'Be brief.' }, ...hi],
    max_completion_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    stop: ['END'],
    seed: 7,
    tool_choice: { type: 'function', function: { name: 'add' } },
    parallel_tool_calls: false,
    reasoning_effort: 'low',
    logit_bias: { 50256: -100 },
    tools: [
      {
        type: 'function',
        function: {
          name: 'add',
          description: 'Adds.',
          parameters: { type: 'object', properties: {} },
        },
      },
    ],
  }

  interface Case {
    readonly name: string
    readonly model: ModelReference
    readonly prefix: string
    readonly sent: JsonObject
    readonly dropped: string | null
  }

  const cases: readonly Case[] = [
    {
      name: 'anthropic, which neither thinks nor takes two samplers while a call is forced',
      model: anthropic('claude-sonnet-4-6'),
      prefix: '/v1',
      sent: {
        max_tokens: 50,
        temperature: 0.5,
        stop_sequences: ['END'],
        tool_choice: { type: 'tool', name: 'add', disable_parallel_tool_use: true },
        system: 'Be brief.',
      },
      dropped: 'top_p, seed, reasoning_effort, logit_bias',
    },
    {
      name: 'anthropic, a model that nothing is known of',
      model: anthropic('claude-x'),
      prefix: '/v1',
      sent: {
        max_tokens: 50,
        stop_sequences: ['END'],
        thinking: { type: 'adaptive' },
        output_config: { effort: 'low' },
        tool_choice: { type: 'auto', disable_parallel_tool_use: true },
        system: 'Be brief.',
      },
      dropped: 'temperature, top_p, seed, tool_choice, logit_bias',
    },
    {
      name: 'openai responses',
      model: openai('gpt-5'),
      prefix: '/v1',
      sent: {
        max_output_tokens: 50,
        reasoning: { effort: 'low' },
        parallel_tool_calls: false,
        tool_choice: { type: 'function', name: 'add' },
        instructions: 'Be brief.',
      },
      dropped: 'temperature, top_p, stop, seed, logit_bias',
    },
    {
      name: 'google',
      model: google('gemini-2.5-pro'),
      prefix: '/v1beta',
      sent: {
        generationConfig: {
          maxOutputTokens: 50,
          temperature: 0.5,
          topP: 0.9,
          stopSequences: ['END'],
          seed: 7,
          thinkingConfig: { thinkingBudget: 1024 },
        },
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['add'] } },
      },
      dropped: 'parallel_tool_calls, logit_bias',
    },
    {
      name: 'ollama',
      model: ollama('qwen3'),
      prefix: '/api',
      sent: {
        options: { num_predict: 50, temperature: 0.5, top_p: 0.9, stop: ['END'], seed: 7 },
        think: true,
      },
      dropped: 'tool_choice, parallel_tool_calls, logit_bias',
    },
    {
      name: 'openai chat',
      model: openai('gpt-4o', { api: 'chat' }),
      prefix: '/v1',
      sent: chat,
      dropped: null,
    },
  ]

  test.each(cases)('$name', async ({ model, prefix, sent, dropped }) => {
    const vendor = vendorServer([calls('add', { a: 1 })])
    const config = { fetch: vendor.fetch, apiKey: 'k', baseUrl: `http://vendor.test${prefix}` }
    const handler = gateway({ models: { m: servedModel({ model, config }) } })
    const response = await post(handler, '/v1/chat/completions', chat)
    expect(response.headers.get('skein-dropped-params')).toBe(dropped)
    const answer = (await response.json()) as { choices: { message: JsonObject }[] }
    expect(answer.choices[0]?.message['tool_calls']).toMatchObject([
      { type: 'function', function: { name: 'add', arguments: '{"a":1}' } },
    ])
    const { model: _, ...rest } = sent
    const body = vendor.requests[0]?.body
    expect(body).toMatchObject(rest)
    for (const name of ['temperature', 'top_p', 'thinking', 'output_config'])
      if (!(name in rest)) expect(body).not.toHaveProperty(name)
  })

  test('Anthropic’s settings in OpenAI’s words', async () => {
    const vendor = vendorServer([says('ok')])
    const config = { fetch: vendor.fetch, apiKey: 'k' }
    const model = servedModel({ model: openai('gpt-4o', { api: 'chat' }), config })
    await post(gateway({ models: { m: model } }), '/v1/messages', {
      model: 'm',
      max_tokens: 9,
      top_k: 3,
      stop_sequences: ['END'],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      tools: [{ name: 'add', input_schema: { type: 'object' } }],
      messages: hi,
    })
    expect(vendor.requests[0]?.body).toMatchObject({
      max_completion_tokens: 9,
      stop: ['END'],
      tool_choice: 'required',
      parallel_tool_calls: false,
    })
  })

  test('every level of effort, and both values of a switch, are passed on', async () => {
    const sent = async (body: JsonObject) => {
      const vendor = vendorServer([says('ok')])
      const config = { fetch: vendor.fetch, apiKey: 'k' }
      const model = servedModel({ model: openai('gpt-5.1'), config })
      const response = await post(gateway({ models: { m: model } }), '/v1/chat/completions', {
        model: 'm',
        messages: hi,
        ...body,
      })
      return {
        body: vendor.requests[0]?.body,
        dropped: response.headers.get('skein-dropped-params'),
      }
    }
    for (const effort of ['low', 'medium', 'high'])
      expect((await sent({ reasoning_effort: effort })).body).toMatchObject({
        reasoning: { effort },
      })
    // OpenAI's own words reach OpenAI, whichever of its formats they were written for.
    const minimal = await sent({ reasoning_effort: 'minimal' })
    expect(minimal).toMatchObject({ body: { reasoning: { effort: 'minimal' } }, dropped: null })
    for (const value of [true, false])
      expect((await sent({ parallel_tool_calls: value })).body).toMatchObject({
        parallel_tool_calls: value,
      })
    expect((await sent({ parallel_tool_calls: 'yes' })).dropped).toBe('parallel_tool_calls')
    for (const choice of ['auto', 'none', 'required'])
      expect((await sent({ tool_choice: choice })).body).toMatchObject({ tool_choice: choice })
    expect((await sent({ stop: ['a', 'b'], seed: 1 })).dropped).toBe('stop, seed')
  })

  test('an answer that dropped parameters keeps its other headers and is told as JSON', async () => {
    const vendor = vendorServer([says('ok'), says('ok')])
    const config = { fetch: vendor.fetch, apiKey: 'k' }
    const model = servedModel({ model: anthropic('c'), config })
    const handler = gateway({ models: { m: model } })
    const plain = await post(handler, '/v1/chat/completions')
    const dropped = await post(handler, '/v1/chat/completions', {
      ...bodies['/v1/chat/completions'],
      seed: 1,
    })
    expect(dropped.headers.get('skein-dropped-params')).toBe('seed')
    expect(plain.headers.get('skein-dropped-params')).toBeNull()
    expect(plain.headers.get('content-type')).toContain('application/json')
    for (const [name, value] of plain.headers)
      if (name !== 'x-request-id') expect(dropped.headers.get(name), name).toBe(value)
  })

  test('a structure that the client asks for reaches the model', async () => {
    const model = scripted([says('{"n":1}')])
    const handler = gateway({ models: { m: servedModel({ model }) } })
    const schema = { type: 'object', properties: { n: { type: 'number' } } }
    const response = await post(handler, '/v1/chat/completions', {
      ...bodies['/v1/chat/completions'],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
    })
    expect(response.status).toBe(200)
    expect(model.requests[0]!.structure).toMatchObject(schema)
  })

  test('a body that is missing or is no JSON is a bad request', async () => {
    const handler = serving(scripted([]))
    for (const init of [{}, { body: '{' }])
      expect(
        (await handler(new Request('http://g.test/v1/messages', { method: 'POST', ...init })))
          .status,
      ).toBe(400)
  })

  test('a conversation that lies with another vendor is not left out in silence', async () => {
    const config = { fetch: vendorServer([]).fetch, apiKey: 'k' }
    const handler = gateway({ models: { m: servedModel({ model: anthropic('c'), config }) } })
    const body = { ...bodies['/v1/responses'], previous_response_id: 'resp_1' }
    const response = await post(handler, '/v1/responses', body)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('previous_response_id')
  })
})

test.each([
  ['messages', anthropic('m')],
  ['responses', openai('m')],
  ['chat', openai('m', { api: 'chat' })],
] as const)('%s: our own client through the gateway to a vendor, and back', async (_, model) => {
  const usage = { inputTokens: 11, outputTokens: 2, totalTokens: 13 }
  const vendor = vendorServer([
    [reasons('Hm.'), says('I add.'), calls('add', { a: 1, b: 2 })],
    [says('Three.'), stops('end_turn', { usage })],
  ])
  const handler = gateway({
    models: {
      m: servedModel({
        model: google('gemini-3-pro'),
        config: { fetch: vendor.fetch, apiKey: 'k' },
        system: 'House rules.',
      }),
    },
    ids: sequentialIds('id'),
  })
  await using server = await serveFetch(handler)
  const add = {
    name: 'add',
    description: 'Adds.',
    parameters: { type: 'object', properties: {} },
    run: ({ a, b }: { a: number; b: number }) => a + b,
  }
  const config = { baseUrl: `${server.url}/v1`, apiKey: 'any' }
  const stream = llm({ model, config, tools: [add], system: 'Be brief.' }).stream('1+2?')
  for await (const event of stream) void event
  const turn = await stream.turn
  expect(turn.response.text).toBe('Three.')
  expect(turn.toolExecutions).toMatchObject([{ toolName: 'add', result: 3 }])
  expect(turn.usageByCycle[1]).toMatchObject({ inputTokens: 11, outputTokens: 2 })
  expect(vendor.model.requests[0]?.system).toBe('House rules.\n\nBe brief.')
})

test('a lookup may find the client elsewhere; one without a key has none', async () => {
  const handler = serving(
    scripted(() => says('ok')),
    {
      keys: async (key) => (key === 'sk-db' ? { name: 'db', models: ['m'] } : undefined),
    },
  )
  const status = async (headers: Record<string, string>): Promise<number> =>
    (await post(handler, '/v1/messages', bodies['/v1/messages'], { headers })).status
  expect(await status({ 'x-api-key': 'sk-db' })).toBe(200)
  expect(await status({ authorization: 'bearer sk-db' })).toBe(200)
  expect(await status({ 'api-key': 'nobody' })).toBe(401)
  expect(await status({})).toBe(401)
})

test('an answer may take its time, name its response, add fields and word its failures', async () => {
  const handler = gateway({
    models: {
      m: async (request) => {
        await Promise.resolve()
        const { events } = await servedModel({ model: scripted(() => says('Hello')) })(request)
        return { events, id: 'mine', fields: { conversation: { id: 'c' } } }
      },
      broken: async (request) => ({
        ...(await servedModel({ model: scripted(() => fails('Secret.')) })(request)),
        toServerError: () => ({
          code: 'INVALID_REQUEST',
          message: 'Ask somebody.',
          statusCode: 409,
          fields: { code: 'ASK', where: '/inbox' },
        }),
      }),
    },
  })
  const answer = await (await post(handler, '/v1/responses')).json()
  expect(answer).toMatchObject({ id: 'resp_mine', conversation: { id: 'c' } })
  for (const path of paths) {
    const refused = await post(handler, path, { ...bodies[path], model: 'broken' })
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({
      error: { message: 'Ask somebody.', code: 'ASK', where: '/inbox' },
    })
  }
})

describe('/v1/embeddings', () => {
  const vectors = [
    [0.5, -1, 2],
    [1, 0, 0.25],
  ]
  /** A vendor that embeds each text as the vector at its position. */
  function embedder() {
    const bodies: JsonObject[] = []
    const fetch = async (_: unknown, init: RequestInit = {}): Promise<Response> => {
      const body = JSON.parse(String(init.body)) as JsonObject & { input: string[] }
      bodies.push(body)
      return Response.json({
        data: body.input.map((_, index) => ({ index, embedding: vectors[index] })),
        usage: { total_tokens: 7 },
      })
    }
    const config = { fetch, apiKey: 'vendor-key', retryStrategy: new NoRetry() }
    return { bodies, config }
  }

  test('the openai client reads floats and base64, also of a model with settings of its own', async () => {
    const { bodies, config } = embedder()
    const handler = gateway({
      models: { chat: scripted([]) },
      embeddings: { small: embedding({ model: openai('text-embedding-3-small'), config }) },
      keys: [{ name: 'ann', key: 'client-key' }],
    })
    await using server = await serveFetch(handler)
    const client = new OpenAI({ apiKey: 'client-key', baseURL: `${server.url}/v1`, maxRetries: 0 })
    // The client asks for base64 by itself and decodes it.
    const answer = await client.embeddings.create({
      model: 'small',
      input: ['a', 'b'],
      dimensions: 3,
    })
    expect(answer.data.map(({ embedding }) => embedding)).toEqual(vectors)
    expect(answer).toMatchObject({ object: 'list', model: 'small', usage: { prompt_tokens: 7, total_tokens: 7 } }) // prettier-ignore
    expect(bodies[0]).toMatchObject({ model: 'text-embedding-3-small', input: ['a', 'b'], dimensions: 3 }) // prettier-ignore
    const one = await client.embeddings.create({
      model: 'small',
      input: 'a',
      encoding_format: 'float',
    })
    expect(one.data).toEqual([{ object: 'embedding', index: 0, embedding: vectors[0] }])
    const names: string[] = []
    for await (const { id } of client.models.list()) names.push(id)
    expect(names).toEqual(['chat', 'small'])
    await expect(client.embeddings.create({ model: 'chat', input: 'a' })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
    await expect(
      client.embeddings.create({ model: 'small', input: [[1, 2]] }),
    ).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('"input"'),
    })
    expect(bodies).toHaveLength(2)
  })

  test('the vendor decides the name of the size; what has no effect is named', async () => {
    const sent: JsonObject[] = []
    const fetch = async (_: unknown, init: RequestInit = {}): Promise<Response> => {
      sent.push(JSON.parse(String(init.body)) as JsonObject)
      return Response.json({ embeddings: [{ values: [1] }] })
    }
    const own = gateway({
      models: {},
      embeddings: {
        g: embedding({
          model: google('gemini-embedding-001'),
          config: { fetch, apiKey: 'k' },
          params: { title: 't' },
        }),
      },
    })
    const answer = await post(own, '/v1/embeddings', { model: 'g', input: 'a', dimensions: 8, user: 'u' }) // prettier-ignore
    expect(answer.status).toBe(200)
    expect(answer.headers.get('skein-dropped-params')).toBe('user')
    expect(sent).toMatchObject([{ requests: [{ outputDimensionality: 8, title: 't' }] }])
  })

  test('what is wrong is refused with 400, the wrong method with 405, a foreign model with 404', async () => {
    const { bodies, config } = embedder()
    const e = embedding({ model: openai('e'), config })
    const handler = gateway({ models: {}, embeddings: { e } })
    for (const body of [
      { input: 'a' },
      { model: 'e' },
      { model: 'e', input: [] },
      { model: 'e', input: '' },
      { model: 'e', input: [1, 2] },
      { model: 'e', input: 'a', encoding_format: 'int8' },
      { model: 'e', input: 'a', dimensions: 0 },
      { model: 'e', input: 'a', dimensions: '8' },
      [],
    ])
      expect((await post(handler, '/v1/embeddings', body)).status).toBe(400)
    expect((await handler(new Request('http://g/v1/embeddings'))).status).toBe(405)
    const keys = [{ name: 'ann', key: 'k', models: ['other'] }]
    const closed = gateway({ models: {}, embeddings: { e }, keys })
    const headers = { authorization: 'Bearer k' }
    const input = { model: 'e', input: 'a' }
    expect((await post(closed, '/v1/embeddings', input, { headers })).status).toBe(404)
    expect((await post(closed, '/v1/embeddings', input)).status).toBe(401)
    expect(bodies).toEqual([])
  })
})

describe('/v1/messages/count_tokens', () => {
  function counted(answer: object) {
    const sent: { url: string; body: JsonObject }[] = []
    const fetch = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
      sent.push({ url: String(url), body: JSON.parse(String(init.body)) as JsonObject })
      return Response.json(answer)
    }
    return { sent, config: { fetch, apiKey: 'vendor-key', retryStrategy: new NoRetry() } }
  }
  const request = {
    model: 'm',
    system: 'Be brief.',
    messages: [{ role: 'user' as const, content: 'Hi' }],
    tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' as const } }],
  }

  test('the Anthropic client counts with the model of any vendor that can', async () => {
    for (const [model, answer, path] of [
      [anthropic('claude-sonnet-4-5'), { input_tokens: 12 }, '/v1/messages/count_tokens'],
      [openai('gpt-5'), { input_tokens: 12 }, '/v1/responses/input_tokens'],
      [google('gemini-3-pro'), { totalTokens: 12 }, '/v1beta/models/gemini-3-pro:countTokens'],
    ] as const) {
      const { sent, config } = counted(answer)
      await using server = await serveFetch(
        gateway({ models: { m: servedModel({ model, config }) } }),
      )
      const client = new Anthropic({ apiKey: 'k', baseURL: server.url, maxRetries: 0 })
      expect(await client.messages.countTokens(request)).toEqual({ input_tokens: 12 })
      expect(new URL(sent[0]!.url).pathname).toBe(path)
      expect(JSON.stringify(sent[0]!.body)).toContain('Be brief.')
      expect(JSON.stringify(sent[0]!.body)).toContain('add')
    }
  })

  test('a model that cannot count is an error of the format, and nothing is generated', async () => {
    const model = scripted([says('Hello')])
    for (const served of [model, xai('grok-4'), (() => ({ events: [] })) as never]) {
      await using server = await serveFetch(gateway({ models: { m: served } }))
      const client = new Anthropic({ apiKey: 'k', baseURL: server.url, maxRetries: 0 })
      const error: unknown = await client.messages.countTokens(request).catch((e: unknown) => e)
      expect(error).toBeInstanceOf(Anthropic.APIError)
      expect([400, 404]).toContain((error as { status: number }).status)
      expect(String(error)).toMatch(/count/)
    }
    expect(model.requests).toEqual([])
  })

  test('the wrong method and an unknown model', async () => {
    const handler = serving(anthropic('m'))
    const path = '/v1/messages/count_tokens'
    expect((await handler(new Request(`http://g${path}`))).status).toBe(405)
    expect((await post(handler, path, { ...request, model: 'x' })).status).toBe(404)
    expect((await post(handler, path, { model: 'm' })).status).toBe(400)
  })
})

test('the list of models, and one of them, in the words of OpenAI and of Anthropic', async () => {
  const clock = manualClock(1_700_000_000_500)
  const handler = gateway({ models: { a: scripted([]), 'b/c': scripted([]) }, clock })
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await handler(new Request(`http://g.test${path}`, { headers }))
    return [response.status, await response.json()]
  }
  const openaiModel = (id: string) => ({
    id,
    object: 'model',
    created: 1_700_000_000,
    owned_by: 'gateway',
  })
  const anthropicModel = (id: string) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '2023-11-14T22:13:20.500Z',
  })
  const asAnthropic = { 'anthropic-version': '2023-06-01' }
  expect(await get('/v1/models')).toEqual([
    200,
    { object: 'list', data: [openaiModel('a'), openaiModel('b/c')] },
  ])
  expect(await get('/v1/models/b%2Fc')).toEqual([200, openaiModel('b/c')])
  expect(await get('/v1/models', asAnthropic)).toEqual([
    200,
    {
      data: [anthropicModel('a'), anthropicModel('b/c')],
      has_more: false,
      first_id: 'a',
      last_id: 'b/c',
    },
  ])
  expect(await get('/v1/models/a', asAnthropic)).toEqual([200, anthropicModel('a')])
  expect((await get('/v1/models/none'))[0]).toBe(404)
})
