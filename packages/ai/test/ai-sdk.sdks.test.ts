/** Both bridges with the AI SDK itself and the providers that its users have. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Document, Image, isUPPError, llm, type ModelReference, NoRetry } from '@skein/ai'
import { type AiSdkModel, fromAiSdk, toAiSdk } from '@skein/ai/ai-sdk'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { fallback } from '@skein/ai/routing'
import {
  calls,
  fails,
  reasons,
  type RunningVendorServer,
  says,
  scripted,
  startVendorServer,
  waits,
} from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { peersOf } from '../../../scripts/peers.ts'

const peers = peersOf('sdks')
type Make = (options: object) => (id: string) => AiSdkModel
const weather = {
  name: 'weather',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  run: ({ city }: { city: string }) => `rain in ${city}`,
} as const

describe.runIf(peers.isInstalled)('a model of an AI SDK provider', () => {
  let server: Server
  let origin = ''
  let answers: unknown[] = []
  let seen: { path: string; body: string }[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        seen.push({ path: request.url ?? '', body })
        const answer = answers.shift()
        const status = answer === undefined ? 400 : 200
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(answer ?? { message: 'no' }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  beforeEach(() => {
    seen = []
    answers = []
  })

  const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
  const converse = (content: unknown[], stopReason: string) => ({
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage,
    metrics: { latencyMs: 1 },
  })

  async function bedrock(): Promise<AiSdkModel> {
    const { createAmazonBedrock } = await peers.load<{ createAmazonBedrock: Make }>(
      '@ai-sdk/amazon-bedrock',
    )
    return createAmazonBedrock({
      region: 'us-east-1',
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'fake',
      baseURL: origin,
    })('anthropic.claude-3-haiku-20240307-v1:0')
  }

  test('Bedrock: tools, an image and usage', async () => {
    answers = [
      converse([{ toolUse: { toolUseId: 't1', name: 'weather', input: { city: 'Oslo' } } }], 'tool_use'), // prettier-ignore
      converse([{ text: 'Rain.' }], 'end_turn'),
    ]
    const model = fromAiSdk(await bedrock())
    const turn = await llm({ model, tools: [weather], system: 'Be brief.' }).generate(
      'Weather?',
      Image.fromBase64('iVBORw0KGgo='),
    )
    expect(turn.response.text).toBe('Rain.')
    expect(turn.toolExecutions).toMatchObject([{ toolName: 'weather', result: 'rain in Oslo' }])
    expect(turn.usage).toMatchObject({ inputTokens: 6, outputTokens: 4 })
    expect(turn.stopReason).toBe('end_turn')
    expect(seen[0]?.path).toContain('/converse')
    expect(seen[0]?.body).toContain('"image"')
    expect(seen[1]?.body).toContain('rain in Oslo')
  })

  test('a failure is a typed error of ours', async () => {
    await expect(llm({ model: fromAiSdk(await bedrock()) }).generate('hi')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      statusCode: 400,
      provider: 'amazon-bedrock',
    })
  })

  test('Vertex: an express key, a call and its result', async () => {
    const { createVertex } = await peers.load<{ createVertex: Make }>('@ai-sdk/google-vertex')
    const model = createVertex({ apiKey: 'fake', baseURL: origin })('gemini-2.5-flash')
    const candidate = (part: object) => ({
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    })
    answers = [
      candidate({ functionCall: { name: 'weather', args: { city: 'Rome' } } }),
      candidate({ text: 'Rain.' }),
    ]
    const turn = await llm({ model: fromAiSdk(model), tools: [weather] }).generate('Weather?')
    expect(turn.response.text).toBe('Rain.')
    expect(turn.toolExecutions).toMatchObject([{ result: 'rain in Rome' }])
    expect(seen[0]?.path).toContain('gemini-2.5-flash:generateContent')
  })

  test.each(['openai', 'anthropic'] as const)(
    '%s: streams the same as it completes',
    async (name) => {
      const vendor = await startVendorServer((request) =>
        request.messages.some(({ type }) => type === 'tool_result')
          ? says('It rains.')
          : calls('weather', { city: 'Oslo' }),
      )
      try {
        const module = await peers.load<Record<string, Make>>(`@ai-sdk/${name}`)
        const make = module[name === 'openai' ? 'createOpenAI' : 'createAnthropic']!
        const provider = make({ apiKey: 'fake', baseURL: vendor.baseUrls[name] })
        const ours = llm({ model: fromAiSdk(provider('any')), tools: [weather] })
        const whole = await ours.generate('Weather?')
        const streamed = await ours.stream('Weather?').turn
        for (const turn of [whole, streamed]) {
          expect(turn.response.text).toBe('It rains.')
          expect(turn.toolExecutions).toMatchObject([{ result: 'rain in Oslo' }])
          expect(turn.usage.totalTokens).toBeGreaterThan(0)
        }
      } finally {
        await vendor.close()
      }
    },
  )
})

describe.runIf(peers.isInstalled)('a model of ours in the AI SDK', () => {
  interface Result {
    readonly text: string | Promise<string>
    readonly textStream: AsyncIterable<string>
    readonly usage: { totalTokens: number }
    readonly steps: readonly unknown[]
  }
  interface Ai {
    generateText(options: object): Promise<Result>
    streamText(options: object): Result
    tool(definition: object): object
    jsonSchema(schema: object): object
    stepCountIs(count: number): unknown
  }
  const script = () =>
    scripted([calls('weather', { city: 'Oslo' }), says('It rains in Oslo.')], { chunks: 'word' })

  async function options() {
    const ai = await peers.load<Ai>('ai')
    const ran: unknown[] = []
    const tools = {
      weather: ai.tool({
        description: 'The weather.',
        inputSchema: ai.jsonSchema(weather.parameters),
        execute: async (input: unknown) => {
          ran.push(input)
          return 'rain'
        },
      }),
    }
    return { ai, ran, tools, stopWhen: ai.stepCountIs(3) }
  }

  test('generateText runs its tools', async () => {
    const { ai, ran, tools, stopWhen } = await options()
    const scriptedModel = script()
    const model = toAiSdk({ model: scriptedModel })
    const result = await ai.generateText({ model, tools, stopWhen, prompt: 'Weather?', system: 'Be brief.' }) // prettier-ignore
    expect(result.text).toBe('It rains in Oslo.')
    expect(ran).toEqual([{ city: 'Oslo' }])
    expect(result.steps).toHaveLength(2)
    expect(scriptedModel.requests[1]).toMatchObject({
      system: 'Be brief.',
      messages: [
        { type: 'user' },
        { type: 'assistant' },
        { type: 'tool_result', results: [{ toolName: 'weather', result: 'rain' }] },
      ],
    })
  })

  test('streamText streams text and runs its tools', async () => {
    const { ai, ran, tools, stopWhen } = await options()
    const model = toAiSdk({ model: script() })
    const result = ai.streamText({ model, tools, stopWhen, prompt: 'Weather?' })
    let text = ''
    for await (const piece of result.textStream) text += piece
    expect(text).toBe('It rains in Oslo.')
    expect(ran).toEqual([{ city: 'Oslo' }])
  })
})

/** A picture of one pixel, and the shortest PDF that its checkers accept. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==' // prettier-ignore
const pdf = 'JVBERi0xLjQKJSVFT0YK'

const schema = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
} as const

type VendorName = 'anthropic' | 'openai' | 'google'
const names: readonly VendorName[] = ['anthropic', 'openai', 'google']

/** The bodies that a vendor got, with the signature of its thinking in the second. */
const bodiesOf = (vendor: RunningVendorServer): JsonObject[] => vendor.requests.map(({ body }) => body) // prettier-ignore

describe.runIf(peers.isInstalled)('fromAiSdk with the real providers', () => {
  const makers = {
    anthropic: ['@ai-sdk/anthropic', 'createAnthropic', 'claude-sonnet-4-5'],
    openai: ['@ai-sdk/openai', 'createOpenAI', 'gpt-5'],
    google: ['@ai-sdk/google', 'createGoogle', 'gemini-2.5-flash'],
  } as const

  async function modelOf(name: VendorName, vendor: RunningVendorServer): Promise<ModelReference> {
    const [folder, maker, id] = makers[name]
    const module = await peers.load<Record<string, Make>>(folder)
    return fromAiSdk(module[maker]!({ apiKey: 'sk-canary', baseURL: vendor.baseUrls[name] })(id))
  }

  describe.each(names)('%s', (name) => {
    test.each([false, true])('text, with settings and usage; streamed: %s', async (streaming) => {
      await using vendor = await startVendorServer([says('Hello.')])
      const model = llm({
        model: await modelOf(name, vendor),
        system: 'Be brief.',
        maxOutputTokens: 77,
        // Anthropic and OpenAI refuse it for models that reason.
        ...(name === 'google' && { temperature: 0.5, seed: 3, stop: 'END' }),
      })
      const turn = await (streaming ? model.stream('Hi').turn : model.generate('Hi'))
      expect(turn.response.text).toBe('Hello.')
      expect(turn.usage.totalTokens).toBeGreaterThan(0)
      const limits = {
        anthropic: { max_tokens: 77 },
        openai: { max_output_tokens: 77 },
        google: { generationConfig: { maxOutputTokens: 77, temperature: 0.5, seed: 3, stopSequences: ['END'] } }, // prettier-ignore
      }
      expect(bodiesOf(vendor)[0]).toMatchObject(limits[name])
      expect(JSON.stringify(bodiesOf(vendor)[0])).toContain('Be brief.')
    })

    test.each([false, true])('thinking survives a tool loop; streamed: %s', async (streaming) => {
      await using vendor = await startVendorServer([
        [reasons('I must look.'), calls('weather', { city: 'Oslo' }, { id: 'call_1' })],
        says('Rain.'),
      ])
      const model = llm({
        model: await modelOf(name, vendor),
        tools: [weather],
        reasoning: { budget: 2000 },
        // OpenAI's provider knows no budget; its signature is encrypted content, which it asks for.
        ...(name === 'openai' && { reasoning: 'low', params: { providerOptions: { openai: { store: false } } } }), // prettier-ignore
      })
      const turn = await (streaming ? model.stream('Weather?').turn : model.generate('Weather?'))
      expect(turn.response.text).toBe('Rain.')
      expect(turn.warnings.filter(({ code }) => code === 'setting_dropped')).toEqual([])
      const [first, second] = bodiesOf(vendor)
      const asked = {
        anthropic: { thinking: { type: 'enabled', budget_tokens: 2000 } },
        openai: { reasoning: { effort: 'low' } },
        google: { generationConfig: { thinkingConfig: { thinkingBudget: 2000 } } },
      }
      expect(first).toMatchObject(asked[name])
      const kept = {
        anthropic: /"thinking":"I must look\."[^}]*"signature":"anthropic-messages@|"signature":"anthropic-messages@/,
        openai: /"encrypted_content":"openai-responses@/,
        google: /"thoughtSignature":"google-generate@/,
      } // prettier-ignore
      expect(JSON.stringify(second)).toMatch(kept[name])
    })

    test('files: a picture and a PDF', async () => {
      await using vendor = await startVendorServer([says('A pixel.')])
      const model = llm({ model: await modelOf(name, vendor) })
      const turn = await model.generate(
        'What are these?',
        Image.fromBase64(png),
        Document.fromBase64(pdf, 'application/pdf'),
      )
      expect(turn.response.text).toBe('A pixel.')
      const sent = JSON.stringify(bodiesOf(vendor)[0])
      expect(sent).toContain(png)
      expect(sent).toContain(pdf)
    })

    test('a structured answer with an optional property', async () => {
      await using vendor = await startVendorServer([says('{"a":1}')], { isStrict: name !== 'openai' }) // prettier-ignore
      // OpenAI's provider sends every schema as strict unless it is told not to.
      const params = name === 'openai' ? { providerOptions: { openai: { strictJsonSchema: false } } } : {} // prettier-ignore
      const model = llm({ model: await modelOf(name, vendor), structure: schema, params })
      expect((await model.generate('x')).data).toEqual({ a: 1 })
    })

    test('a refusal for a while is waited for, then answered', async () => {
      const busy = fails({ code: 'RATE_LIMITED', statusCode: 429, retryAfterMs: 1000, message: 'Slow.' }) // prettier-ignore
      await using vendor = await startVendorServer([busy, says('Now.'), busy, says('Again.')])
      const model = llm({ model: await modelOf(name, vendor) })
      const start = Date.now()
      expect((await model.generate('x')).response.text).toBe('Now.')
      expect(Date.now() - start).toBeGreaterThan(950)
      expect((await model.stream('x').turn).response.text).toBe('Again.')
      expect(vendor.requests).toHaveLength(4)
    })

    test('errors have their code, and no word of the vendor', async () => {
      const codes = ['CONTEXT_LENGTH_EXCEEDED', 'CONTENT_FILTERED', 'RATE_LIMITED', 'MODEL_NOT_FOUND'] as const // prettier-ignore
      for (const code of codes) {
        if (code === 'CONTENT_FILTERED' && name !== 'openai') continue // not an HTTP error of the others
        await using vendor = await startVendorServer(() => fails({ code, message: 'prompt is too long: sk-canary' })) // prettier-ignore
        const config = { retryStrategy: new NoRetry() }
        const model = llm({ model: await modelOf(name, vendor), config })
        for (const failure of [model.generate('x'), model.stream('x').turn]) {
          const error: unknown = await failure.catch((thrown: unknown) => thrown)
          if (code === 'RATE_LIMITED' || !/context/i.test(code)) expect(error).toMatchObject({ name: 'UPPError' }) // prettier-ignore
          expect(isUPPError(error) && error.code, `${name} ${code}`).toBe(
            // Its message says that the prompt is too long, which is more than the status.
            code === 'MODEL_NOT_FOUND' ? 'MODEL_NOT_FOUND' : code,
          )
          expect(`${JSON.stringify(error)} ${String(error)}`).not.toContain('sk-canary')
        }
      }
    })

    test('an abort reaches the vendor, whole or streamed', async () => {
      await using vendor = await startVendorServer(() => [says('part'), waits(Infinity)])
      const model = llm({ model: await modelOf(name, vendor) })
      for (const streaming of [false, true]) {
        const abort = new AbortController()
        const asked = model.with({ signal: abort.signal })
        const turn = streaming ? asked.stream('x').turn : asked.generate('x')
        const failed = expect(turn).rejects.toMatchObject({ code: 'CANCELLED' })
        await expect.poll(() => vendor.model.requests.length).toBe(streaming ? 2 : 1)
        abort.abort()
        await failed
        await expect.poll(() => vendor.model.requests.every(({ signal }) => signal.aborted)).toBe(true) // prettier-ignore
      }
    })
  })

  test('redacted thinking of Claude is sent back, streamed too', async () => {
    const seen: string[] = []
    const redacted = { type: 'redacted_thinking', data: 'c2VjcmV0' }
    const use = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'c', usage: { input_tokens: 1, output_tokens: 1 } } // prettier-ignore
    const frames = (content: JsonObject[], stop_reason: string) =>
      [
        { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
        ...content.flatMap((block, index) => [
          { type: 'content_block_start', index, content_block: block['type'] === 'text' ? { type: 'text', text: '' } : { ...block, ...(block['input'] ? { input: {} } : {}) } },
          ...(block['type'] === 'text' ? [{ type: 'content_block_delta', index, delta: { type: 'text_delta', text: block['text'] } }] : []),
          ...(block['input'] ? [{ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: JSON.stringify(block['input']) } }] : []),
          { type: 'content_block_stop', index },
        ]),
        { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('') // prettier-ignore
    const fetch = async (_: unknown, init: { body: string }): Promise<Response> => {
      seen.push(init.body)
      const isFirst = !init.body.includes('tool_result')
      const content = isFirst ? [redacted, use] : [{ type: 'text', text: 'Rain.' }]
      const stop_reason = isFirst ? 'tool_use' : 'end_turn'
      return init.body.includes('"stream":true')
        ? new Response(frames(content, stop_reason), { headers: { 'content-type': 'text/event-stream' } }) // prettier-ignore
        : Response.json({ ...message, content, stop_reason })
    }
    const { createAnthropic } = await peers.load<{ createAnthropic: Make }>('@ai-sdk/anthropic')
    const provider = createAnthropic({ apiKey: 'k', fetch })
    const model = llm({ model: fromAiSdk(provider('claude-sonnet-4-5')), tools: [weather] })
    for (const turn of [await model.generate('x'), await model.stream('x').turn])
      expect(turn.response.text).toBe('Rain.')
    for (const body of [seen[1]!, seen[3]!]) expect(body).toContain(JSON.stringify(redacted))
  })
})

describe.runIf(peers.isInstalled)('toAiSdk with the real AI SDK', () => {
  interface Result {
    readonly text: string
    readonly output: unknown
    readonly usage: { readonly totalTokens: number }
    readonly steps: readonly unknown[]
    readonly files: readonly { readonly mediaType: string; readonly uint8Array: Uint8Array }[]
    readonly warnings: readonly { readonly feature?: string }[] | undefined
    readonly response: {
      readonly id: string
      readonly modelId: string
      readonly headers?: Record<string, string>
    }
    readonly providerMetadata: unknown
  }
  type Streamed = { readonly [Name in keyof Result]: PromiseLike<Result[Name]> } & {
    readonly fullStream: AsyncIterable<{ readonly type: string }>
    readonly partialOutputStream: AsyncIterable<unknown>
  }
  interface Ai {
    generateText(options: object): Promise<Result>
    streamText(options: object): Streamed
    tool(definition: object): object
    jsonSchema(schema: object): object
    stepCountIs(count: number): unknown
    Output: { object(options: object): unknown }
    NoObjectGeneratedError: { isInstance(error: unknown): boolean }
  }
  const vendors = {
    anthropic: anthropic('claude-sonnet-4-5'),
    openai: openai('gpt-5'),
    google: google('gemini-2.5-flash'),
  }

  const modelOf = (name: VendorName, vendor: RunningVendorServer) =>
    toAiSdk({
      model: vendors[name],
      config: { apiKey: 'sk-canary', baseUrl: vendor.baseUrls[name], retryStrategy: new NoRetry() },
    })

  /** Runs a call whole or streamed; both give the same result. */
  async function ask(streaming: boolean, options: object): Promise<Result> {
    const ai = await peers.load<Ai>('ai')
    if (!streaming) return ai.generateText({ maxRetries: 0, ...options })
    const errors: unknown[] = []
    const onError = ({ error }: { error: unknown }) => void errors.push(error)
    const stream = ai.streamText({ maxRetries: 0, onError, ...options })
    const parts: { type: string }[] = []
    for await (const part of stream.fullStream) parts.push(part)
    if (errors.length > 0) throw errors[0]
    const entries = ['text', 'usage', 'steps', 'files', 'warnings', 'response', 'providerMetadata'] as const // prettier-ignore
    const values = await Promise.all(entries.map(async (entry) => [entry, await stream[entry]]))
    const output = 'output' in options ? await stream.output : undefined
    return { ...Object.fromEntries(values), output } as Result
  }

  describe.each(names.flatMap((name) => [false, true].map((streaming) => ({ name, streaming }))))(
    '$name, streamed: $streaming',
    ({ name, streaming }) => {
      test('text, with settings, usage, and the response', async () => {
        await using vendor = await startVendorServer([says('Hello.')])
        const result = await ask(streaming, {
          model: modelOf(name, vendor),
          system: 'Be brief.',
          prompt: 'Hi',
          maxOutputTokens: 77,
          stopSequences: ['END'],
          headers: { 'x-tenant': 'a' },
        })
        expect(result.text).toBe('Hello.')
        expect(result.usage.totalTokens).toBeGreaterThan(0)
        expect(result.response.id).toMatch(/1$/)
        expect(result.response.modelId).toBe(vendors[name].modelId)
        expect(result.response.headers).toMatchObject({ 'content-type': expect.stringMatching(/json|event-stream/) }) // prettier-ignore
        const sent = {
          anthropic: { max_tokens: 77, stop_sequences: ['END'] },
          openai: { max_output_tokens: 77 },
          google: { generationConfig: { maxOutputTokens: 77, stopSequences: ['END'] } },
        }
        expect(bodiesOf(vendor)[0]).toMatchObject(sent[name])
        expect(vendor.requests[0]!.headers['x-tenant']).toBe('a')
        expect(result.warnings?.map(({ feature }) => feature) ?? []).toEqual(
          name === 'openai' ? ['stopSequences'] : [],
        )
      })

      test('thinking survives a tool loop', async () => {
        await using vendor = await startVendorServer([
          [reasons('I must look.'), calls('weather', { city: 'Oslo' }, { id: 'call_1' })],
          says('Rain.'),
        ])
        const ai = await peers.load<Ai>('ai')
        const tools = {
          weather: ai.tool({
            description: 'The weather.',
            inputSchema: ai.jsonSchema(weather.parameters),
            execute: async () => 'rain',
          }),
        }
        const options = { tools, stopWhen: ai.stepCountIs(3), prompt: 'Weather?' }
        const result = await ask(streaming, { model: modelOf(name, vendor), ...options })
        expect(result.text).toBe('Rain.')
        expect(result.steps).toHaveLength(2)
        const kept = {
          anthropic: /"signature":"anthropic-messages@/,
          openai: /"encrypted_content":"openai-responses@/,
          google: /"thoughtSignature":"google-generate@/,
        }
        expect(JSON.stringify(bodiesOf(vendor)[1])).toMatch(kept[name])
      })

      test('files: a picture and a PDF', async () => {
        await using vendor = await startVendorServer([says('A pixel.')])
        const content = [
          { type: 'text', text: 'What are these?' },
          { type: 'file', data: png, mediaType: 'image/png' },
          { type: 'file', data: pdf, mediaType: 'application/pdf', filename: 'a.pdf' },
        ]
        const messages = [{ role: 'user', content }]
        const result = await ask(streaming, { model: modelOf(name, vendor), messages })
        expect(result.text).toBe('A pixel.')
        const sent = JSON.stringify(bodiesOf(vendor)[0])
        expect(sent).toContain(png)
        expect(sent).toContain(pdf)
      })

      test('a structured answer has no null for a property that is absent', async () => {
        // OpenAI requires every property, so an absent one is null in its answer.
        const text = name === 'openai' ? '{"a":1,"b":null}' : '{"a":1}'
        await using vendor = await startVendorServer([says(text), says('no JSON')])
        const ai = await peers.load<Ai>('ai')
        const output = ai.Output.object({
          schema: {
            ...ai.jsonSchema(schema),
            validate: (value: object) =>
              'b' in value && typeof value.b !== 'string'
                ? { success: false, error: new Error('b is null') }
                : { success: true, value },
          },
        })
        const model = modelOf(name, vendor)
        expect((await ask(streaming, { model, prompt: 'x', output })).output).toEqual({ a: 1 })
        const failed: unknown = await ask(streaming, { model, prompt: 'x', output }).then(
          (result) => result.output,
          (error: unknown) => error,
        )
        expect(ai.NoObjectGeneratedError.isInstance(failed)).toBe(true)
      })

      test('an error is ours, with its code', async () => {
        await using vendor = await startVendorServer(() => fails({ code: 'CONTEXT_LENGTH_EXCEEDED', message: 'The prompt is too long.' })) // prettier-ignore
        const failed = ask(streaming, { model: modelOf(name, vendor), prompt: 'x' })
        await expect(failed).rejects.toMatchObject({ code: 'CONTEXT_LENGTH_EXCEEDED' })
      })

      test('an abort reaches the vendor', async () => {
        await using vendor = await startVendorServer(() => [says('part'), waits(Infinity)])
        const abort = new AbortController()
        const model = modelOf(name, vendor)
        const answer = ask(streaming, { model, prompt: 'x', abortSignal: abort.signal }).catch(() => {}) // prettier-ignore
        await expect.poll(() => vendor.model.requests.length).toBe(1)
        abort.abort()
        await answer
        await expect.poll(() => vendor.model.requests[0]!.signal.aborted).toBe(true)
      })
    },
  )

  test('provider options of a call, of parts, of tools and of the system prompt are the vendor’s', async () => {
    await using vendor = await startVendorServer(() => says('ok'))
    const ai = await peers.load<Ai>('ai')
    const cached = { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }
    const mark = { cache_control: { type: 'ephemeral' } }
    const messages = [
      { role: 'system', content: 'Rules.', ...cached },
      { role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] },
    ]
    const tools = { find: ai.tool({ inputSchema: ai.jsonSchema({ type: 'object' }), ...cached }) }
    const providerOptions = {
      anthropic: {
        thinking: { type: 'enabled', budgetTokens: 2000 },
        effort: 'low',
        disableParallelToolUse: true,
        contextManagement: { edits: [{ type: 'clear_tool_uses_20250919', clearAtLeast: { type: 'input_tokens', value: 9 } }] },
        anthropicBeta: ['context-management-2025-06-27'],
        sendReasoning: false,
      },
      openai: { reasoningEffort: 'high' },
    } // prettier-ignore
    const model = modelOf('anthropic', vendor)
    const options = { model, messages, tools, providerOptions, allowSystemInMessages: true }
    const result = await ask(false, options)
    const [{ body, headers }] = vendor.requests as [(typeof vendor.requests)[0]]
    expect(body).toMatchObject({
      system: [{ type: 'text', text: 'Rules.', ...mark }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...mark }] }],
      tools: [{ name: 'find', ...mark }],
      thinking: { type: 'enabled', budget_tokens: 2000 },
      output_config: { effort: 'low' },
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919', clear_at_least: { value: 9 } }] }, // prettier-ignore
    })
    expect(JSON.stringify(body)).not.toMatch(/cacheControl|reasoningEffort|sendReasoning|anthropicBeta/) // prettier-ignore
    expect(headers['anthropic-beta']).toBe('context-management-2025-06-27')
    expect(result.warnings).toMatchObject([{ type: 'unsupported', feature: 'providerOptions.anthropic.sendReasoning' }]) // prettier-ignore

    await using other = await startVendorServer(() => says('ok'))
    const openaiOptions = {
      reasoningEffort: 'low',
      reasoningSummary: 'auto',
      textVerbosity: 'low',
      promptCacheKey: 'k',
      serviceTier: 'flex',
      metadata: { userId: '7' },
    }
    await ask(false, { model: modelOf('openai', other), prompt: 'x', providerOptions: { openai: openaiOptions } }) // prettier-ignore
    expect(bodiesOf(other)[0]).toMatchObject({
      reasoning: { effort: 'low', summary: 'auto' },
      text: { verbosity: 'low' },
      prompt_cache_key: 'k',
      service_tier: 'flex',
      metadata: { userId: '7' },
    })
  })

  test('each member of a fallback gets the options of its own vendor', async () => {
    await using first = await startVendorServer(() => fails({ code: 'RATE_LIMITED', statusCode: 429 })) // prettier-ignore
    await using second = await startVendorServer(() => says('ok'))
    const config = { apiKey: 'k', retryStrategy: new NoRetry() }
    const model = toAiSdk({
      model: fallback([
        { model: vendors.anthropic, config: { ...config, baseUrl: first.baseUrls.anthropic } },
        { model: vendors.google, config: { ...config, baseUrl: second.baseUrls.google } },
      ]),
    })
    const providerOptions = {
      anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } },
      google: { thinkingConfig: { thinkingBudget: 7 } },
    }
    const result = await ask(false, { model, prompt: 'x', providerOptions, maxOutputTokens: 9000, stopSequences: ['END'] }) // prettier-ignore
    expect(result.text).toBe('ok')
    expect(result.response.modelId).toBe('gemini-2.5-flash')
    expect(bodiesOf(first)[0]).toMatchObject({
      max_tokens: 9000,
      stop_sequences: ['END'],
      thinking: { type: 'enabled', budget_tokens: 2000 },
    })
    expect(bodiesOf(first)[0]).not.toHaveProperty('thinkingConfig')
    expect(bodiesOf(second)[0]).toMatchObject({
      generationConfig: { maxOutputTokens: 9000, thinkingConfig: { thinkingBudget: 7 } },
    })
    expect(bodiesOf(second)[0]).not.toHaveProperty('thinking')
  })

  test('signatures of the AI SDK’s own providers are sent on by ours', async () => {
    const conversations = {
      anthropic: { signature: 'sig-a' },
      openai: { itemId: 'rs_1', reasoningEncryptedContent: 'enc-o' },
      google: { thoughtSignature: 'sig-g' },
    }
    for (const name of names) {
      await using vendor = await startVendorServer(() => says('ok'), { isStrict: false })
      const part = { type: 'reasoning', text: 'Hm.', providerOptions: { [name]: conversations[name] } } // prettier-ignore
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [part, { type: 'text', text: 'Yes?' }] },
        { role: 'user', content: 'Go.' },
      ]
      await ask(false, { model: modelOf(name, vendor), messages })
      const sent = JSON.stringify(bodiesOf(vendor)[0])
      expect(sent).toMatch(/"(signature|encrypted_content|thoughtSignature)":"(sig-a|enc-o|sig-g)"/)
    }
  })

  test('generated pictures are files, whole and streamed', async () => {
    const bytes = Uint8Array.from(Buffer.from(png, 'base64'))
    const inlineData = { mimeType: 'image/png', data: png }
    const answer = {
      candidates: [{ content: { role: 'model', parts: [{ text: 'Here.' }, { inlineData }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    } // prettier-ignore
    const fetch = async (url: string): Promise<Response> =>
      url.includes('alt=sse')
        ? new Response(`data: ${JSON.stringify(answer)}\n\n`, { headers: { 'content-type': 'text/event-stream' } }) // prettier-ignore
        : Response.json(answer)
    const model = toAiSdk({ model: google('gemini-2.5-flash-image'), config: { apiKey: 'k', fetch } }) // prettier-ignore
    for (const streaming of [false, true]) {
      const { files, text } = await ask(streaming, { model, prompt: 'Draw.' })
      expect(text).toBe('Here.')
      expect(files.map(({ mediaType }) => mediaType)).toEqual(['image/png'])
      expect(files[0]!.uint8Array).toEqual(bytes)
    }
  })

  test('addresses are read by the vendors that read them, and downloaded for the others', async () => {
    await using vendor = await startVendorServer(() => says('A pixel.'))
    const content = [{ type: 'file', data: new URL('https://pictures.test/a.png'), mediaType: 'image/png' }] // prettier-ignore
    const messages = [{ role: 'user', content }]
    let downloads = 0
    const experimental_download = async (wanted: readonly { isUrlSupportedByModel: boolean }[]) =>
      wanted.map(({ isUrlSupportedByModel }) => {
        if (isUrlSupportedByModel) return null
        downloads++
        return { data: Uint8Array.from(Buffer.from(png, 'base64')), mediaType: 'image/png' }
      })
    const config = { baseUrl: vendor.baseUrls.ollama }
    const model = toAiSdk({ model: ollama('llava'), config })
    await ask(false, { model, messages, experimental_download })
    expect(downloads).toBe(1)
    expect(JSON.stringify(bodiesOf(vendor)[0])).toContain(png)
    await ask(false, { model: modelOf('anthropic', vendor), messages, experimental_download })
    expect(downloads).toBe(1)
    expect(JSON.stringify(bodiesOf(vendor)[1])).toContain('https://pictures.test/a.png')
  })
})
