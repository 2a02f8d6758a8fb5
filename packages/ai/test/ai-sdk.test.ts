import { describe, expect, test } from 'vitest'
import { type AiSdkModel, fromAiSdk, toAiSdk } from '@skein/ai/ai-sdk'
import {
  AssistantMessage,
  Document,
  Image,
  llm,
  type Message,
  NoRetry,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { calls, emits, fails, reasons, says, scripted, stops, waits } from '@skein/ai/testing'

const weather = {
  name: 'weather',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  run: ({ city }: { city: string }) => `rain in ${city}`,
} as const

interface FakeCall {
  readonly prompt: readonly Record<string, unknown>[]
  readonly abortSignal: AbortSignal
  readonly [name: string]: unknown
}
type Part = { readonly type: string } & Readonly<Record<string, unknown>>

const streamOf = (parts: readonly Part[]): ReadableStream<Part> =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })

async function readAll<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** A model of the AI SDK that answers with these parts, streamed or whole, and records its calls. */
function fake(
  parts: readonly Part[] | Error,
  whole: Readonly<Record<string, unknown>> = {},
  version: 'v3' | 'v4' = 'v4',
): AiSdkModel & { readonly seen: FakeCall[] } {
  const seen: FakeCall[] = []
  const note = (call: FakeCall) => {
    seen.push(call)
    if (parts instanceof Error) throw parts
    return parts
  }
  return {
    specificationVersion: version,
    provider: 'maker',
    modelId: 'm-1',
    seen,
    doGenerate: async (call: never) => {
      note(call)
      return whole
    },
    doStream: async (call: never) => ({ stream: streamOf(note(call)) }),
  }
}

const finish = (unified: string, usage?: object): Part => ({
  type: 'finish',
  finishReason: { unified, raw: `raw-${unified}` },
  usage: usage ?? { inputTokens: {}, outputTokens: {} },
})

describe('fromAiSdk', () => {
  const usage = {
    inputTokens: { total: 10, cacheRead: 3, cacheWrite: 2, noCache: 5 },
    outputTokens: { total: 7, reasoning: 4, text: 3 },
    raw: { prompt: 10 },
  }
  const source = { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.example', title: 'A' } // prettier-ignore
  const file = { type: 'source', sourceType: 'document', id: 'doc', filename: 'b.pdf' }
  const ran = { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: '{}', providerExecuted: true } // prettier-ignore
  const answer: readonly Part[] = [
    { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'seed', details: 'no seed' }, { type: 'other', message: 'odd' }] }, // prettier-ignore
    { type: 'response-metadata', id: 'r1', modelId: 'm-1-real' },
    { type: 'reasoning-start', id: 'a' },
    { type: 'reasoning-delta', id: 'a', delta: 'hm' },
    { type: 'reasoning-end', id: 'a', providerMetadata: { maker: { signature: 'sig' } } },
    { type: 'text-start', id: 'b' },
    { type: 'text-delta', id: 'b', delta: 'Hel' },
    { type: 'text-delta', id: 'b', delta: 'lo' },
    { type: 'text-end', id: 'b' },
    { type: 'raw', rawValue: 1 },
    source,
    file,
    { type: 'tool-input-start', id: 'p', toolName: 'search', providerExecuted: true },
    { type: 'tool-input-delta', id: 'p', delta: '{}' },
    ran,
    { type: 'tool-input-start', id: 'c', toolName: 'weather' },
    { type: 'tool-input-delta', id: 'c', delta: '{"city":' },
    { type: 'tool-input-delta', id: 'c', delta: '"Oslo"}' },
    { type: 'tool-input-end', id: 'c' },
    { type: 'tool-call', toolCallId: 'c', toolName: 'weather', input: '{"city":"Oslo"}', providerMetadata: { maker: { n: 1 } } }, // prettier-ignore
    { type: 'tool-call', toolCallId: 'd', toolName: 'weather', input: '{"city":"Rome"}' },
    { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } },
    { type: 'file', mediaType: 'audio/wav', data: new Uint8Array([4]) },
    { type: 'file', mediaType: 'text/plain', data: 'AQID' },
    { ...finish('tool-calls', usage), providerMetadata: { maker: { own: true } } },
  ]
  const whole = {
    content: [
      { type: 'reasoning', text: 'hm', providerMetadata: { maker: { signature: 'sig' } } },
      { type: 'text', text: 'Hello' },
      source,
      file,
      ran,
      { type: 'tool-call', toolCallId: 'c', toolName: 'weather', input: '{"city":"Oslo"}', providerMetadata: { maker: { n: 1 } } }, // prettier-ignore
      { type: 'tool-call', toolCallId: 'd', toolName: 'weather', input: '{"city":"Rome"}' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } },
      { type: 'file', mediaType: 'audio/wav', data: new Uint8Array([4]) },
      { type: 'file', mediaType: 'text/plain', data: 'AQID' },
    ],
    warnings: (answer[0] as { warnings?: unknown })['warnings'],
    response: { id: 'r1', modelId: 'm-1-real' },
    finishReason: { unified: 'tool-calls', raw: 'raw-tool-calls' },
    usage,
    providerMetadata: { maker: { own: true } },
  }
  const manual = { tools: [weather], toolStrategy: { maxIterations: 0 } }

  test.each(['generate', 'stream'] as const)('%s: every part of an answer is read', async (how) => {
    const instance = llm({ model: fromAiSdk(fake(answer, whole)), ...manual })
    const turn = await (how === 'generate' ? instance.generate('x') : instance.stream('x').turn)
    expect(turn.response.content).toEqual([
      { type: 'reasoning', text: 'hm', metadata: { maker: { signature: 'sig' } } },
      { type: 'text', text: 'Hello' },
      { type: 'image', source: { type: 'bytes', data: new Uint8Array([1, 2, 3]) }, mimeType: 'image/png' }, // prettier-ignore
      { type: 'audio', data: new Uint8Array([4]), mimeType: 'audio/wav' },
    ])
    expect(turn.response.toolCalls).toEqual([
      { toolCallId: 'c', toolName: 'weather', arguments: { city: 'Oslo' }, metadata: { maker: { n: 1 } } }, // prettier-ignore
      { toolCallId: 'd', toolName: 'weather', arguments: { city: 'Rome' } },
    ])
    expect(turn.response.metadata).toMatchObject({
      maker: { own: true },
      aiSdk: { parts: [source, file, ran] },
    })
    expect(turn.sources).toEqual([
      { type: 'url', url: 'https://a.example', title: 'A', originals: [source] },
      { type: 'document', id: 'doc', title: 'b.pdf', originals: [file] },
    ])
    expect(turn.warnings).toEqual([
      { code: 'ai_sdk_unsupported', message: 'seed: no seed' },
      { code: 'ai_sdk_other', message: 'odd' },
    ])
    expect([turn.stopReason, turn.rawStopReason]).toEqual(['tool_use', 'raw-tool-calls'])
    expect(turn.usageByCycle).toEqual([
      {
        inputTokens: 10,
        outputTokens: 7,
        totalTokens: 17,
        cacheReadTokens: 3,
        cacheWriteTokens: 2,
        reasoningTokens: 4,
        raw: { prompt: 10 },
      },
    ])
  })

  test('events come as they arrive, within the frame of a message', async () => {
    const stream = llm({ model: fromAiSdk(fake(answer)), ...manual }).stream('x')
    const events = await readAll(stream)
    expect(events[0]).toEqual({
      type: 'message_start',
      index: 0,
      delta: { provider: 'maker', model: 'm-1-real', id: 'r1' },
    })
    expect(events.map(({ type, index }) => `${type} ${index}`)).toEqual([
      'message_start 0',
      'content_block_start 0',
      'reasoning_delta 0',
      'content_block_stop 0',
      'content_block_start 1',
      'text_delta 1',
      'text_delta 1',
      'content_block_stop 1',
      'content_block_start 2',
      'tool_call_delta 2',
      'tool_call_delta 2',
      'content_block_stop 2',
      'content_block_start 3',
      'tool_call_delta 3',
      'content_block_stop 3',
      'content_block_start 4',
      'image_delta 4',
      'content_block_stop 4',
      'content_block_start 5',
      'audio_delta 5',
      'content_block_stop 5',
      'message_stop 0',
    ])
    expect(events[8]!.delta).toEqual({ block: 'tool_call', toolCallId: 'c', toolName: 'weather' })
    expect(events[10]!.delta).toEqual({ toolCallId: 'c', toolName: 'weather', argumentsJson: '"Oslo"}' }) // prettier-ignore
  })

  test.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['content-filter', 'content_filter'],
    ['error', 'other'],
    ['other', 'other'],
  ])('the finish reason %s is %s', async (unified, expected) => {
    const text = [
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'a' },
      { type: 'text-end', id: '1' },
    ]
    const turn = await llm({ model: fromAiSdk(fake([...text, finish(unified)])) }).stream('x').turn
    expect([turn.stopReason, turn.rawStopReason]).toEqual([expected, `raw-${unified}`])
    expect(turn.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, totalTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }) // prettier-ignore
  })

  const history: readonly Message[] = [
    new UserMessage(
      [
        { type: 'text', text: 'look', metadata: { maker: { cache: true }, openai: { api: 'chat' } } }, // prettier-ignore
        Image.fromBase64('iVBORw0KGgo=').toBlock(),
        { type: 'image', source: { type: 'url', url: 'https://a.example/i.png' }, mimeType: 'image/png' }, // prettier-ignore
        { type: 'image', source: { type: 'url', url: 'data:image/gif;base64,AQID' }, mimeType: 'image/png' }, // prettier-ignore
        Document.fromText('notes', 'Notes').toBlock(),
        { type: 'document', source: { type: 'base64', data: 'AQID' }, mimeType: 'application/pdf', title: 'a.pdf' }, // prettier-ignore
        { type: 'document', source: { type: 'url', url: 'https://a.example/d.pdf' }, mimeType: 'application/pdf' }, // prettier-ignore
        { type: 'video', data: new Uint8Array([5]), mimeType: 'video/mp4' },
        { type: 'binary', data: new Uint8Array([6]), mimeType: 'application/zip' },
      ],
      { metadata: { maker: { user: 1 } } },
    ),
    new AssistantMessage(
      [
        { type: 'reasoning', text: 'hm', metadata: { maker: { signature: 'sig' } } },
        { type: 'text', text: 'wait' },
        { type: 'audio', data: new Uint8Array([7]), mimeType: 'audio/wav' },
        { type: 'native', name: 'x', metadata: {} },
      ],
      ['a', 'b', 'c', 'd'].map((toolCallId) => ({
        toolCallId,
        toolName: 'weather',
        arguments: { city: toolCallId },
        ...(toolCallId === 'a' && { metadata: { maker: { call: 1 } } }),
      })),
      { metadata: { maker: { said: 1 } } },
    ),
    new ToolResultMessage(
      [
        { toolCallId: 'a', toolName: 'weather', result: { rain: true }, metadata: { maker: { got: 1 } } }, // prettier-ignore
        { toolCallId: 'b', toolName: 'weather', result: 'no', isError: true },
        { toolCallId: 'c', toolName: 'weather', result: [{ type: 'text', text: 'p' }, { type: 'text', text: 'q' }] }, // prettier-ignore
        { toolCallId: 'd', toolName: 'weather', result: [{ type: 'text', text: 'see' }, { type: 'audio', data: new Uint8Array([8]), mimeType: 'audio/wav' }] }, // prettier-ignore
      ],
      { metadata: { maker: { told: 1 } } },
    ),
  ]

  test('v4: the whole history is sent, with its options for the provider', async () => {
    const model = fake([], { content: [], ...finish('stop') })
    const own = { providerOptions: { maker: expect.anything() } }
    await llm({
      model: fromAiSdk(model),
      system: 'Be brief.',
      tools: [weather],
      structure: { type: 'object' },
      params: { temperature: 0.5, providerOptions: { maker: { k: 1 } } },
      toolStrategy: { maxIterations: 0 },
    })
      .generate(history, 'now')
      .catch(() => {})
    const [{ prompt, abortSignal, ...rest }] = model.seen as [FakeCall]
    const data = (value: unknown) => ({ type: 'data', data: value })
    expect(abortSignal).toBeInstanceOf(AbortSignal)
    expect(rest).toEqual({
      temperature: 0.5,
      providerOptions: { maker: { k: 1 } },
      responseFormat: { type: 'json', schema: { type: 'object' } },
      tools: [{ type: 'function', name: 'weather', description: 'The weather.', inputSchema: weather.parameters }], // prettier-ignore
    })
    expect(prompt).toEqual([
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look', providerOptions: { maker: { cache: true } } },
          { type: 'file', mediaType: 'image/png', data: data('iVBORw0KGgo=') },
          { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://a.example/i.png') } }, // prettier-ignore
          { type: 'file', mediaType: 'image/gif', data: data('AQID') },
          { type: 'file', mediaType: 'text/plain', data: data(new TextEncoder().encode('notes')), filename: 'Notes' }, // prettier-ignore
          { type: 'file', mediaType: 'application/pdf', data: data('AQID'), filename: 'a.pdf' },
          { type: 'file', mediaType: 'application/pdf', data: { type: 'url', url: new URL('https://a.example/d.pdf') } }, // prettier-ignore
          { type: 'file', mediaType: 'video/mp4', data: data(new Uint8Array([5])) },
          { type: 'file', mediaType: 'application/zip', data: data(new Uint8Array([6])) },
        ],
        providerOptions: { maker: { user: 1 } },
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: { maker: { signature: 'sig' } } },
          { type: 'text', text: 'wait' },
          { type: 'file', mediaType: 'audio/wav', data: data(new Uint8Array([7])) },
          { type: 'tool-call', toolCallId: 'a', toolName: 'weather', input: { city: 'a' }, ...own },
          { type: 'tool-call', toolCallId: 'b', toolName: 'weather', input: { city: 'b' } },
          { type: 'tool-call', toolCallId: 'c', toolName: 'weather', input: { city: 'c' } },
          { type: 'tool-call', toolCallId: 'd', toolName: 'weather', input: { city: 'd' } },
        ],
        providerOptions: { maker: { said: 1 } },
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'weather', output: { type: 'text', value: '{"rain":true}' }, providerOptions: { maker: { got: 1 } } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'b', toolName: 'weather', output: { type: 'error-text', value: 'no' } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'c', toolName: 'weather', output: { type: 'text', value: 'pq' } }, // prettier-ignore
          {
            type: 'tool-result',
            toolCallId: 'd',
            toolName: 'weather',
            output: {
              type: 'content',
              value: [
                { type: 'text', text: 'see' },
                { type: 'file', mediaType: 'audio/wav', data: data(new Uint8Array([8])) },
              ],
            },
          },
        ],
        providerOptions: { maker: { told: 1 } },
      },
      { role: 'user', content: [{ type: 'text', text: 'now' }] },
    ])
  })

  test('v3: a file is the plain bytes, text or URL; without options nothing is sent for them', async () => {
    const model = fake([], { content: [{ type: 'text', text: 'ok' }], ...finish('stop') }, 'v3')
    await llm({ model: fromAiSdk(model) }).generate(history[0]!)
    const [{ prompt, tools, responseFormat }] = model.seen as [FakeCall]
    expect([tools, responseFormat]).toEqual([undefined, undefined])
    const [{ role, content }] = prompt as unknown as [
      { role: string; content: { data: unknown }[] },
    ]
    expect(role).toBe('user')
    expect(content.slice(1).map(({ data }) => data)).toEqual([
      'iVBORw0KGgo=',
      new URL('https://a.example/i.png'),
      'AQID',
      new TextEncoder().encode('notes'),
      'AQID',
      new URL('https://a.example/d.pdf'),
      new Uint8Array([5]),
      new Uint8Array([6]),
    ])
  })

  test.each([
    [400, 'INVALID_REQUEST'],
    [401, 'AUTHENTICATION_FAILED'],
    [403, 'AUTHENTICATION_FAILED'],
    [404, 'MODEL_NOT_FOUND'],
    [422, 'INVALID_REQUEST'],
    [429, 'RATE_LIMITED'],
    [500, 'PROVIDER_ERROR'],
    [undefined, 'PROVIDER_ERROR'],
  ])('UPP-030 UPP-038 HTTP %s is %s, without the words of the AI SDK', async (statusCode, code) => {
    const error = Object.assign(new Error('key sk-secret was refused'), { statusCode })
    const streamed: readonly Part[] = [{ type: 'error', error }]
    for (const parts of [error, streamed]) {
      const config = { retryStrategy: new NoRetry() }
      const instance = llm({ model: fromAiSdk(fake(parts)), config })
      const failures = [instance.stream('x').turn]
      if (parts === error) failures.push(instance.generate('x'))
      for (const failure of failures) {
        const failed: unknown = await failure.catch((e: unknown) => e)
        expect(failed).toMatchObject({ name: 'UPPError', code, provider: 'maker', modality: 'llm' })
        expect((failed as { statusCode?: number }).statusCode).toBe(statusCode)
        expect((failed as Error).message).toBe(
          statusCode === undefined ? 'maker failed.' : `maker answered HTTP ${statusCode}.`,
        )
        expect((failed as Error).cause).toBeUndefined()
      }
    }
  })

  test('halves of surrogate pairs in arguments are repaired', async () => {
    const model = fake([{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'ok' }, { type: 'text-end', id: '1' }, { type: 'finish', finishReason: { unified: 'stop' } }]) // prettier-ignore
    const call = { toolCallId: 'c1', toolName: 'w', arguments: { '\ud83d': ['\ud83d', 1] } }
    const history = [new AssistantMessage([], [call]), new ToolResultMessage([{ ...call, result: '' }])] // prettier-ignore
    await llm({ model: fromAiSdk(model) }).stream(history).turn
    const [{ content }] = model.seen[0]!.prompt as [{ content: { input: unknown }[] }]
    expect(content[0]!.input).toEqual({ '\ufffd': ['\ufffd', 1] })
  })

  test('UPP-094 an abort reaches the model, and is CANCELLED', async () => {
    const controller = new AbortController()
    let told: AbortSignal | undefined
    const waiting = (call: { abortSignal: AbortSignal }) => {
      told = call.abortSignal
      controller.abort()
      return Promise.reject(new Error('aborted'))
    }
    const model = { ...fake([]), doGenerate: waiting, doStream: waiting } as unknown as AiSdkModel
    const instance = llm({ model: fromAiSdk(model), signal: controller.signal })
    await expect(instance.generate('x')).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(told?.aborted).toBe(true)
  })

  test('a model of another specification is refused', () => {
    const old = { ...fake([]), specificationVersion: 'v2' } as unknown as AiSdkModel
    expect(() => fromAiSdk(old)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
  })
})

describe('toAiSdk', () => {
  type Options = Parameters<ReturnType<typeof toAiSdk>['doGenerate']>[0]
  const user = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] })

  test('a prompt becomes messages, with all its parts', async () => {
    const scriptedModel = scripted([says('ok')])
    const cache = { providerOptions: { scripted: { cache: true } } }
    const prompt: Options['prompt'] = [
      { role: 'system', content: 'One.' },
      { role: 'system', content: 'Two.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look', ...cache },
          { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' }, ...cache },
          { type: 'file', mediaType: 'image/png', data: new URL('https://a.example/i.png') },
          { type: 'file', mediaType: 'application/pdf', data: { type: 'url', url: new URL('https://a.example/d.pdf') }, filename: 'd.pdf' }, // prettier-ignore
          { type: 'file', mediaType: 'application/pdf', data: new Uint8Array([1]), filename: 'e.pdf' }, // prettier-ignore
          { type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'hi' } },
          { type: 'file', mediaType: 'audio/wav', data: 'AQID' },
          { type: 'file', mediaType: 'video/mp4', data: new Uint8Array([2]) },
        ],
        ...cache,
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', ...cache },
          { type: 'text', text: 'calling' },
          { type: 'tool-call', toolCallId: 'a', toolName: 'w', input: { n: 1 }, ...cache },
          { type: 'tool-call', toolCallId: 'b', toolName: 'w', input: '{"n":2}' },
          { type: 'tool-call', toolCallId: 'c', toolName: 'w', input: '' },
          { type: 'tool-call', toolCallId: 'd', toolName: 'w', input: {} },
          { type: 'tool-call', toolCallId: 'e', toolName: 'w', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'w', output: { type: 'json', value: { r: 1 } } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'b', toolName: 'w', output: { type: 'error-text', value: 'no' } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'c', toolName: 'w', output: { type: 'execution-denied', reason: 'not now' } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'd', toolName: 'w', output: { type: 'execution-denied' } }, // prettier-ignore
          { type: 'tool-result', toolCallId: 'e', toolName: 'w', output: { type: 'content', value: [{ type: 'text', text: 'seen' }] } }, // prettier-ignore
        ],
        ...cache,
      },
    ]
    await toAiSdk({ model: scriptedModel, system: 'Zero.' }).doGenerate({ prompt })
    const [{ system, messages }] = scriptedModel.requests as [(typeof scriptedModel.requests)[0]]
    const metadata = { scripted: { cache: true } }
    expect(system).toBe('Zero.\n\nOne.\n\nTwo.')
    expect(messages.map(({ type }) => type)).toEqual(['user', 'assistant', 'tool_result'])
    expect([messages[0]!.metadata, messages[2]!.metadata]).toEqual([metadata, metadata])
    expect(messages[0]).toMatchObject({
      content: [
        { type: 'text', text: 'look', metadata },
        { type: 'image', source: { type: 'base64', data: 'AQID' }, mimeType: 'image/png', metadata }, // prettier-ignore
        { type: 'image', source: { type: 'url', url: 'https://a.example/i.png' }, mimeType: 'image/png' }, // prettier-ignore
        { type: 'document', source: { type: 'url', url: 'https://a.example/d.pdf' }, mimeType: 'application/pdf', title: 'd.pdf' }, // prettier-ignore
        { type: 'document', source: { type: 'base64', data: 'AQ==' }, mimeType: 'application/pdf', title: 'e.pdf' }, // prettier-ignore
        { type: 'document', source: { type: 'base64', data: 'aGk=' }, mimeType: 'text/plain' },
        { type: 'audio', data: new Uint8Array([1, 2, 3]), mimeType: 'audio/wav' },
        { type: 'video', data: new Uint8Array([2]), mimeType: 'video/mp4' },
      ],
    })
    expect(messages[1]).toMatchObject({
      content: [
        { type: 'reasoning', text: 'hm', metadata },
        { type: 'text', text: 'calling' },
      ],
      toolCalls: [
        { toolCallId: 'a', toolName: 'w', arguments: { n: 1 }, metadata },
        { toolCallId: 'b', toolName: 'w', arguments: { n: 2 } },
        { toolCallId: 'c', toolName: 'w', arguments: {} },
        { toolCallId: 'd' },
        { toolCallId: 'e' },
      ],
    })
    expect((messages[2] as ToolResultMessage).results).toEqual([
      { toolCallId: 'a', toolName: 'w', result: { r: 1 } },
      { toolCallId: 'b', toolName: 'w', result: 'no', isError: true },
      { toolCallId: 'c', toolName: 'w', result: 'not now', isError: true },
      { toolCallId: 'd', toolName: 'w', result: 'The call was denied.', isError: true },
      { toolCallId: 'e', toolName: 'w', result: [{ type: 'text', text: 'seen' }] },
    ])
  })

  test('tools, structure and settings of a call reach the model; what it lacks is a warning', async () => {
    const scriptedModel = scripted([says('{"n":1}')])
    const abort = new AbortController()
    const { warnings } = await toAiSdk({
      model: scriptedModel,
      params: { kept: 1, temperature: 1 },
    }).doGenerate({
      prompt: [user('x')],
      tools: [
        { type: 'function', name: 'w', description: 'W.', inputSchema: { type: 'object' } },
        { type: 'provider', name: 'search' },
      ],
      toolChoice: { type: 'tool', toolName: 'w' },
      responseFormat: { type: 'json', schema: { type: 'object' } },
      maxOutputTokens: 5,
      temperature: 0.1,
      topP: 0.2,
      topK: 3,
      presencePenalty: 0.4,
      frequencyPenalty: 0.5,
      stopSequences: ['.'],
      seed: 6,
      abortSignal: abort.signal,
    })
    const [request] = scriptedModel.requests
    expect(request).toMatchObject({
      structure: { type: 'object' },
      tools: [{ name: 'w', description: 'W.', parameters: { type: 'object' } }],
    })
    expect(request!.tools).toHaveLength(1)
    expect(request!.params).toEqual({ kept: 1, temperature: 1 })
    expect(request!.settings).toEqual({
      maxOutputTokens: 5,
      temperature: 0.1,
      topP: 0.2,
      topK: 3,
      stop: ['.'],
      seed: 6,
      toolChoice: { tool: 'w' },
    })
    expect(warnings).toEqual([{ type: 'unsupported', feature: 'tool search' }])
  })

  test('settings are written as the vendor of the model has them', async () => {
    const sent: Record<string, unknown>[] = []
    const fetch = async (_: unknown, init?: RequestInit) => {
      sent.push(JSON.parse(String(init?.body)) as Record<string, unknown>)
      return Response.json({
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'claude-x',
        content: [{ type: 'text', text: 'ok' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      })
    }
    const { warnings } = await toAiSdk({
      model: anthropic('claude-sonnet-4-5'),
      config: { apiKey: 'k', fetch },
    }).doGenerate({
      prompt: [user('x')],
      maxOutputTokens: 5,
      temperature: 0.1,
      topK: 3,
      stopSequences: ['.'],
      seed: 6,
      toolChoice: { type: 'auto' },
    })
    expect(sent[0]).toMatchObject({
      max_tokens: 5,
      temperature: 0.1,
      top_k: 3,
      stop_sequences: ['.'],
    })
    expect(sent[0]).not.toHaveProperty('tool_choice')
    expect(warnings).toEqual([{ type: 'unsupported', feature: 'seed' }])
  })

  const usage = { inputTokens: 10, outputTokens: 7, totalTokens: 17, cacheReadTokens: 3, cacheWriteTokens: 2, reasoningTokens: 4 } // prettier-ignore
  const metadata = { scripted: { n: 1 } }
  const script = (text = 'Rain.') => [
    reasons('hm', { metadata }),
    says(text, { metadata }),
    calls('w', { n: 1 }, { id: 'a', metadata }),
    calls('w', { n: 2 }, { id: 'b' }),
    stops('tool_use', { usage }),
  ]
  const finished = {
    finishReason: { unified: 'tool-calls', raw: undefined },
    usage: {
      inputTokens: { total: 10, cacheRead: 3, cacheWrite: 2, noCache: 5 },
      outputTokens: { total: 7, reasoning: 4, text: 3 },
    },
  }
  const twoCalls = [
    { type: 'tool-call', toolCallId: 'a', toolName: 'w', input: '{"n":1}', providerMetadata: metadata }, // prettier-ignore
    { type: 'tool-call', toolCallId: 'b', toolName: 'w', input: '{"n":2}' },
  ]

  test('a whole answer has all its parts', async () => {
    const model = toAiSdk({ model: scripted([script()]) })
    expect(model).toMatchObject({ specificationVersion: 'v4', provider: 'scripted', modelId: 'script' }) // prettier-ignore
    expect(await model.doGenerate({ prompt: [user('x')] })).toEqual({
      content: [
        { type: 'reasoning', text: 'hm', providerMetadata: metadata },
        { type: 'text', text: 'Rain.', providerMetadata: metadata },
        ...twoCalls,
      ],
      ...finished,
      response: { id: 'response_1', modelId: 'script' },
      warnings: [],
    })
  })

  test('a streamed answer has all its parts, in order', async () => {
    const { stream } = await toAiSdk({ model: scripted([script()]) }).doStream({ prompt: [user('x')] }) // prettier-ignore
    expect(await readAll(stream)).toEqual([
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'response_1', modelId: 'script' },
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'hm' },
      { type: 'reasoning-end', id: '0', providerMetadata: metadata },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'Rain.' },
      { type: 'text-end', id: '1', providerMetadata: metadata },
      { type: 'tool-input-start', id: 'a', toolName: 'w' },
      { type: 'tool-input-delta', id: 'a', delta: '{"n":1}' },
      { type: 'tool-input-end', id: 'a' },
      { type: 'tool-input-start', id: 'b', toolName: 'w' },
      { type: 'tool-input-delta', id: 'b', delta: '{"n":2}' },
      { type: 'tool-input-end', id: 'b' },
      ...twoCalls,
      { type: 'finish', ...finished },
    ])
  })

  test('a structured answer is streamed as text, and a failure is a part', async () => {
    const structured = toAiSdk({ model: scripted([says('{"n":1}'), [says('hal'), fails('cut')]]) })
    const responseFormat = { type: 'json', schema: { type: 'object' } }
    const { stream } = await structured.doStream({ prompt: [user('x')], responseFormat })
    const parts = await readAll(stream)
    expect(parts.map(({ type }) => type)).toEqual([
      'stream-start',
      'response-metadata',
      'text-start',
      'text-delta',
      'text-end',
      'finish',
    ])
    expect(parts.map(({ delta = '' }) => delta).join('')).toBe('{"n":1}')
    const failing = await structured.doStream({ prompt: [user('x')] })
    const last = (await readAll(failing.stream)).at(-1)
    expect(last).toMatchObject({ type: 'error', error: { name: 'UPPError', message: 'cut' } })
  })

  test('UPP-094 cancelling the stream aborts a request that has not answered yet', async () => {
    let ask = (): void => {}
    const asked = new Promise<void>((resolve) => (ask = resolve))
    const scriptedModel = scripted(() => {
      ask()
      return waits(Infinity)
    })
    const { stream } = await toAiSdk({ model: scriptedModel }).doStream({ prompt: [user('x')] })
    const reader = stream.getReader()
    await reader.read() // `stream-start`; the next part is what the model never says
    await asked
    await reader.cancel()
    expect(scriptedModel.requests[0]!.signal.aborted).toBe(true)
  })

  test('cancelling the stream, and the signal of the call, abort the request', async () => {
    const scriptedModel = scripted(() => [says('a'), waits(Infinity)])
    const model = toAiSdk({ model: scriptedModel })
    const { stream } = await model.doStream({ prompt: [user('x')] })
    const reader = stream.getReader()
    await reader.read()
    await reader.read()
    await reader.cancel()
    expect(scriptedModel.requests[0]!.signal.aborted).toBe(true)
    const controller = new AbortController()
    const answer = model.doGenerate({ prompt: [user('x')], abortSignal: controller.signal })
    controller.abort()
    await expect(answer).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['context_window', 'length'],
    ['refusal', 'content-filter'],
    ['content_filter', 'content-filter'],
    ['other', 'other'],
  ] as const)('the stop reason %s is %s', async (reason, unified) => {
    const model = toAiSdk({ model: scripted([[says('a'), stops(reason)]]) })
    expect((await model.doGenerate({ prompt: [user('x')] })).finishReason.unified).toBe(unified)
  })

  test('cited pages are sources; documents have none, because their media type is not known', async () => {
    const stop = (sources: readonly object[]) =>
      emits(
        { type: 'message_start', index: 0, delta: { provider: 'scripted' } },
        { type: 'content_block_start', index: 0, delta: { block: 'text' } },
        { type: 'text_delta', index: 0, delta: { text: 'a' } },
        { type: 'content_block_stop', index: 0, delta: {} },
        {
          type: 'message_stop',
          index: 0,
          delta: { stopReason: 'end_turn', usage: { ...usage }, sources: sources as never },
        },
      )
    const sources = [
      { type: 'url', url: 'https://a.example', title: 'A', originals: [] },
      { type: 'url', url: 'https://b.example', originals: [] },
      { type: 'document', id: 'doc', originals: [] },
    ]
    const model = toAiSdk({ model: scripted([stop(sources), stop(sources)]) })
    const expected = [
      { type: 'source', sourceType: 'url', id: 'https://a.example', url: 'https://a.example', title: 'A' }, // prettier-ignore
      { type: 'source', sourceType: 'url', id: 'https://b.example', url: 'https://b.example' },
    ]
    const { content } = await model.doGenerate({ prompt: [user('x')] })
    expect(content.slice(1)).toEqual(expected)
    const { stream } = await model.doStream({ prompt: [user('x')] })
    const parts = await readAll(stream)
    expect(parts.filter(({ type }) => type === 'source')).toEqual(expected)
  })
})
