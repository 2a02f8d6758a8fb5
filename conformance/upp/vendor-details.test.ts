import type { JsonObject } from '@skein/base'
import {
  AssistantMessage,
  Document,
  embedding,
  image,
  llm,
  NoRetry,
  ToolResultMessage,
  UserMessage,
  type LLMOptions,
  type ModelReference,
  type Tool,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { hello, stub, type Answer } from './support/stub.ts'
import { llmVendors, vendors } from './support/vendors.ts'

const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))
const modelOf = (vendor: string, api?: string): ModelReference =>
  (providers.get(vendor) as (id: string, options?: object) => ModelReference)(
    'm',
    api ? { api } : {},
  )

/** Asks a vendor once; returns the body that it got and the turn. */
async function ask(
  model: ModelReference,
  options: Partial<LLMOptions> = {},
  answer: Answer = hello,
) {
  const { fetch, seen } = stub(answer)
  const config = { apiKey: 'key-0123456789', fetch, retryStrategy: new NoRetry() }
  const talker = llm({ model, config, ...options })
  return { talker, body: (): JsonObject => JSON.parse(seen[0]!.body) as JsonObject, seen }
}

const tool: Tool = { name: 't', description: '', parameters: {}, run: () => 1 }

describe('UPP-112 UPP-123 a native tool of the same name as a function is refused', () => {
  const forms: [string, string | undefined, object[]][] = [
    ['google', undefined, [{ functionDeclarations: [{ name: 'a' }, { name: 't' }] }]],
    ['google', undefined, [{ googleSearch: {} }, { functionDeclarations: [{ name: 't' }] }]],
    ['anthropic', undefined, [{ type: 'web_search_20250305', name: 'a' }, { name: 't' }]],
    ['openai', 'responses', [{ type: 'web_search' }, { type: 'function', name: 't' }]],
    ['openai', 'chat', [{ type: 'function', function: { name: 't' } }]],
    ['openai', 'chat', [{ type: 'custom', custom: { name: 't' } }]],
    ['mistral', undefined, [{ type: 'function', function: { name: 't' } }]],
    ['ollama', undefined, [{ type: 'function', function: { name: 't' } }]],
  ]
  test.each(forms)('UPP-112 UPP-123 %s %s %j', async (vendor, api, tools) => {
    const { talker, seen } = await ask(modelOf(vendor, api), { tools: [tool], params: { tools } })
    for (const call of [talker.generate('x'), talker.stream('x').turn])
      await expect(call).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect(seen).toEqual([])
  })
})

describe('UPP-112 UPP-120 a tool with a schema object keeps all it has', () => {
  const log: string[] = []
  class Weather {
    readonly name = 'weather'
    readonly description = 'd'
    readonly parameters = z.object({ city: z.string() }) as never
    readonly word = 'sunny'
    run(): string {
      log.push('run')
      return this.word
    }
    approval(): boolean {
      log.push('approval')
      return this.word === 'sunny'
    }
    toModel(): string {
      return `${this.word}!`
    }
  }
  test('UPP-112 UPP-120 methods of its class, approval and the form for the model', async () => {
    log.length = 0
    const model = scripted([calls('weather', { city: 'Bern' }), says('ok')])
    const turn = await llm({ model, tools: [new Weather() as never] }).generate('x')
    expect(log).toEqual(['approval', 'run'])
    expect(turn.toolExecutions[0]).toMatchObject({ result: 'sunny', isError: false })
    expect(turn.messages[2]).toMatchObject({ results: [{ result: 'sunny!' }] })
    expect(model.requests[0]?.tools[0]?.parameters).toMatchObject({ type: 'object' })
  })
})

test.each<JsonObject>([
  { type: 'object', properties: { a: { type: 'string' } } },
  { type: 'array', items: { type: 'string' } },
  { type: 'string' },
  { anyOf: [{ type: 'object' }, { type: 'null' }] },
])('UPP-124 UPP-147 Ollama gets the schema itself: %j', async (structure) => {
  const { talker, body } = await ask(modelOf('ollama'), { structure })
  await talker.generate('x').catch(() => {}) // the answer is no JSON
  expect(body()['format']).toEqual(structure)
})

test('UPP-147 Google: definitions are $defs, and references follow them', async () => {
  const structure = {
    type: 'object',
    properties: { a: { $ref: '#/definitions/leaf' }, b: { $ref: '#/$defs/other' } },
    definitions: { leaf: { type: 'string' } },
    $defs: { other: { type: 'array', items: { $ref: '#/definitions/leaf' } } },
  }
  const { talker, body } = await ask(modelOf('google'), { structure })
  await talker.generate('x').catch(() => {}) // the answer is no JSON
  expect(body()['generationConfig']).toEqual({
    responseMimeType: 'application/json',
    responseJsonSchema: {
      type: 'object',
      properties: { a: { $ref: '#/$defs/leaf' }, b: { $ref: '#/$defs/other' } },
      $defs: {
        leaf: { type: 'string' },
        other: { type: 'array', items: { $ref: '#/$defs/leaf' } },
      },
    },
  })
})

test('UPP-148 Responses: documents by address and as data, with and without a title', async () => {
  const data = Buffer.from('%PDF-1.7\n').toString('base64')
  const file_data = `data:application/pdf;base64,${data}`
  const { talker, body } = await ask(modelOf('openai', 'responses'))
  await talker.generate(
    new UserMessage([
      Document.fromUrl('https://x.test/a.pdf', 'Title'),
      Document.fromUrl('https://x.test/a.pdf'),
      Document.fromBase64(data, 'application/pdf', 'Title'),
      Document.fromBase64(data, 'application/pdf'),
      Document.fromText('text', 'Title'),
      Document.fromText('text'),
    ]),
  )
  expect((body()['input'] as JsonObject[])[0]?.['content']).toEqual([
    { type: 'input_file', file_url: 'https://x.test/a.pdf', filename: 'Title' },
    { type: 'input_file', file_url: 'https://x.test/a.pdf' },
    { type: 'input_file', filename: 'Title', file_data },
    { type: 'input_file', filename: 'document.pdf', file_data },
    { type: 'input_text', text: 'Title\n\ntext' },
    { type: 'input_text', text: 'text' },
  ])
})

const sse = (...frames: object[]): Answer => {
  const text = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')
  return () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

test('UPP-157 Anthropic: unknown fields of a message, its delta and next to the delta are kept', async () => {
  const answer = sse(
    { type: 'message_start', message: { id: 'i', model: 'm', content: [], x_start: 1 } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', x_delta: 2 }, x_beside: { a: 3 } },
    { type: 'message_stop' },
  )
  const { talker } = await ask(modelOf('anthropic'), {}, answer)
  const { response } = await talker.stream('x').turn
  expect(response.metadata?.['anthropic']).toMatchObject({
    x_start: 1,
    x_delta: 2,
    x_beside: { a: 3 },
  })
})

test('UPP-091 UPP-157 Anthropic: pieces of a delta of a new type are joined', async () => {
  const piece = (fields: object): object => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'x_delta', ...fields },
  })
  const answer = sse(
    { type: 'message_start', message: { id: 'i', model: 'm', content: [] } },
    { type: 'content_block_start', index: 0, content_block: { type: 'x_block', x_text: '' } },
    piece({ x_text: 'a', x_list: [1], x_number: 1 }),
    piece({ x_text: 'ab', x_list: [2], x_number: 2 }),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  )
  const { talker } = await ask(modelOf('anthropic'), {}, answer)
  const { response } = await talker.stream('x').turn
  expect(response.content).toMatchObject([
    {
      type: 'native',
      name: 'x_block',
      metadata: { anthropic: { native: { x_text: 'aab', x_list: [1, 2], x_number: 2 } } },
    },
  ])
})

test('UPP-157 Chat: unknown fields of all pieces of a call, and of a last chunk without choices', async () => {
  const piece = (call: object, finish_reason?: string): object => ({
    id: 'c',
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason }],
  })
  const answer = sse(
    piece({ id: 'a', type: 'function', function: { name: 't', arguments: '{' }, x_first: 1 }),
    piece({ function: { arguments: '}' }, x_second: 2 }, 'tool_calls'),
    { id: 'c', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 }, x_last: 3 },
  )
  const { talker } = await ask(modelOf('groq'), { toolStrategy: { maxIterations: 0 } }, answer)
  const { response } = await talker.stream('x').turn
  expect(response.toolCalls?.[0]?.metadata).toEqual({
    groq: { api: 'openai-chat', native: { x_first: 1, x_second: 2 } },
  })
  expect(response.metadata?.['groq']).toMatchObject({ x_last: 3 })
})

test('UPP-146 Google: results in several messages are one entry, in order', async () => {
  const ids = ['a', 'b', 'c', 'd']
  const toolCalls = ids.map((toolCallId) => ({ toolCallId, toolName: 't', arguments: {} }))
  const results = ids.map(
    (toolCallId) => new ToolResultMessage([{ toolCallId, result: toolCallId }]),
  )
  const { talker, body } = await ask(modelOf('google'))
  await talker.generate(
    [new UserMessage('x'), new AssistantMessage('', toolCalls), ...results],
    'y',
  )
  const parts = (body()['contents'] as { parts: JsonObject[] }[])[2]?.parts
  expect(parts?.map((part) => part['functionResponse'])).toEqual(
    ids.map((id) => ({ id, name: 't', response: { output: id } })),
  )
})

test('UPP-144 an error inside a list is read (servers of the OpenAI format)', async () => {
  const error = { message: 'Too long.', code: 'context_length_exceeded', type: 'some_type' }
  const answer = (): Response => Response.json([{ error }], { status: 400 })
  const { talker } = await ask(modelOf('groq'), {}, answer)
  await expect(talker.generate('x')).rejects.toMatchObject({
    code: 'CONTEXT_LENGTH_EXCEEDED',
    message: 'Too long.',
    vendorCode: 'context_length_exceeded',
    vendorType: 'some_type',
  })
})

test('UPP-133 UPP-149 Ollama: everything else in the answer is metadata', async () => {
  const more = {
    model: 'm',
    total_duration: 14,
    load_duration: 1,
    prompt_eval_count: 2,
    x_new: [1],
  }
  const fetch = async (): Promise<Response> => Response.json({ embeddings: [[1]], ...more })
  const { metadata } = await embedding({ model: modelOf('ollama'), config: { fetch } }).embed('a')
  expect(metadata).toEqual({ ollama: more })
})

test.each([
  ['imagen-4', { generate: true, streaming: false, edit: false, maxImages: 4 }],
  ['models/imagen-4', { generate: true, streaming: false, edit: false, maxImages: 4 }],
  ['publishers/google/models/imagen-4', { generate: true, streaming: false, edit: false, maxImages: 4 }], // prettier-ignore
  ['gemini-2.5-flash-image', { generate: true, streaming: false, edit: true }],
])('UPP-136 the capabilities of %s', (modelId, capabilities) => {
  expect(image({ model: providers.get('google')!(modelId) }).capabilities).toEqual(capabilities)
})

/** Input beyond text: image, document, video, audio. */
const inputs: Record<string, string> = {
  anthropic: 'image document',
  'azure-openai': 'image document',
  'azure-openai chat': 'image document audio',
  bedrock: 'image document video audio',
  cerebras: 'image',
  deepseek: '',
  google: 'image document video audio',
  groq: 'image',
  mistral: 'image document audio',
  moonshot: 'image video',
  ollama: 'image',
  openai: 'image document',
  'openai chat': 'image document audio',
  'openai-compatible': 'image document audio',
  openrouter: 'image document video audio',
  'openrouter responses': 'image document video audio',
  vertex: 'image document video audio',
  xai: 'image',
  'xai responses': 'image',
}
test('UPP-148 UPP-167 the media of every vendor and of each of its APIs', () => {
  expect(Object.keys(inputs)).toEqual(expect.arrayContaining(llmVendors.map(({ name }) => name)))
  for (const [name, media] of Object.entries(inputs)) {
    const { capabilities } = llm({ model: modelOf(...(name.split(' ') as [string])) })
    expect(capabilities, name).toEqual({
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: media.includes('image'),
      documentInput: media.includes('document'),
      videoInput: media.includes('video'),
      audioInput: media.includes('audio'),
    })
  }
})
