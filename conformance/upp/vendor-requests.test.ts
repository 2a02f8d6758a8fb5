/** Requests that are written seldom: titles, sources, failed results and system prompts, for each vendor. */
import type { JsonObject } from '@skein/base'
import {
  AssistantMessage,
  Audio,
  Document,
  Image,
  llm,
  NoRetry,
  ToolResultMessage,
  UserMessage,
  type LLMOptions,
  type Message,
  type ModelReference,
  type ToolCall,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { openrouter } from '@skein/ai/openrouter'
import { describe, expect, test } from 'vitest'
import { png, stub } from './support/stub.ts'

async function bodyOf(
  model: ModelReference,
  messages: readonly Message[],
  options: Partial<LLMOptions> = {},
): Promise<JsonObject> {
  const { fetch, seen } = stub()
  const config = { apiKey: 'key-0123456789', fetch, retryStrategy: new NoRetry() }
  await llm({ model, config, ...options }).generate(messages)
  return JSON.parse(seen[0]!.body) as JsonObject
}

/** The last message, entry or item of a body, or the one before. */
function lastOf(body: JsonObject, back = 1): JsonObject {
  return (body['messages'] ?? body['input'] ?? body['contents'] as unknown as JsonObject[])!.at(-back)! // prettier-ignore
}

const say = (...content: ConstructorParameters<typeof UserMessage>[0][]): UserMessage[] =>
  content.map((one) => new UserMessage(one))

/** One call and its result. */
function round(result: unknown, { isError = false, id = 'call_1' } = {}): Message[] {
  const call: ToolCall = { toolCallId: id, toolName: 'look', arguments: {} }
  return [
    new UserMessage('go'),
    new AssistantMessage([], [call]),
    new ToolResultMessage([{ toolCallId: id, toolName: 'look', result, isError }]),
  ]
}

const chat = openaiCompatible({ name: 'local', baseUrl: 'https://x.test/v1' })
const responses = openai('m')

describe('results', () => {
  const texts = ['it broke', 'no error was found', 'errors: 2', 'Error: it broke', 'ERROR it broke', ''] // prettier-ignore
  const prefixed = (text: string): string => (/^error\b/i.test(text) ? text : `Error: ${text}`)
  const told: readonly [
    string,
    ModelReference,
    (body: JsonObject) => unknown,
    (text: string) => string,
  ][] = [
    // prettier-ignore
    ['Chat Completions', chat('m'), (body) => lastOf(body)['content'], prefixed],
    ['Responses', responses, (body) => lastOf(body)['output'], prefixed],
    ['Ollama', ollama('m'), (body) => lastOf(body)['content'], (text) => `Error: ${text}`],
  ]

  test.each(told)(
    'UPP-057 %s has no flag for a failed result: its text says so',
    async (_name, model, of, failed) => {
      for (const text of texts) {
        expect(of(await bodyOf(model, round(text, { isError: true })))).toBe(failed(text))
        expect(of(await bodyOf(model, round(text)))).toBe(text)
      }
    },
  )

  test('UPP-057 Google: objects are sent as they are, unless they have a member that the API reads', async () => {
    const responseOf = async (result: unknown, isError = false): Promise<unknown> => {
      const [part] = lastOf(await bodyOf(google('m'), round(result, { isError })))['parts'] as JsonObject[] // prettier-ignore
      return (part!['functionResponse'] as JsonObject)['response']
    }
    expect(await responseOf({ a: 1 })).toEqual({ a: 1 })
    for (const result of [{ error: 'none' }, { output: 1 }, [1], 'text', 7, null])
      expect(await responseOf(result)).toEqual({ output: result })
    expect(await responseOf({ a: 1 }, true)).toEqual({ error: { a: 1 } })
  })

  test.each([
    ['openai', openai('m', { api: 'chat' }), 'x'.repeat(41)],
    ['mistral', mistral('m'), 'call_1'],
    ['Responses', responses, 'x'.repeat(65)],
    ['anthropic', anthropic('m'), 'call:1'],
  ])(
    'UPP-057 %s: an id that is refused is mapped alike in call and result',
    async (_, model, id) => {
      const text = JSON.stringify(await bodyOf(model, round('ok', { id })))
      const ids = [...text.matchAll(/"(?:id|call_id|tool_call_id|tool_use_id)":"([^"]+)"/g)]
      expect(ids).toHaveLength(2)
      expect(new Set(ids.map(([, sent]) => sent)).size).toBe(1)
      expect(text).not.toContain(`"${id}"`)
    },
  )

  test('UPP-057 Responses: results of custom tools are items of their own, in every round', async () => {
    const native = (type: string) => ({ openai: { api: 'openai-responses', native: { type } } })
    const rounds = ['custom_tool_call', 'function_call', 'custom_tool_call'].flatMap(
      (type, index) => [
        new AssistantMessage([], [{ toolCallId: `c${index}`, toolName: 'x', arguments: { input: 'i' }, metadata: native(type) }]), // prettier-ignore
        new ToolResultMessage([{ toolCallId: `c${index}`, result: 'r' }]),
      ],
    )
    const { input } = await bodyOf(responses, [new UserMessage('go'), ...rounds])
    expect((input as JsonObject[]).map(({ type }) => type)).toEqual([
      'message',
      'custom_tool_call',
      'custom_tool_call_output',
      'function_call',
      'function_call_output',
      'custom_tool_call',
      'custom_tool_call_output',
    ])
  })

  test('UPP-057 Ollama and Google: a stored result without a name has that of its call', async () => {
    const messages = round('ok')
    const stored = [...messages.slice(0, 2), new ToolResultMessage([{ toolCallId: 'call_1', result: 'ok' }])] // prettier-ignore
    expect(lastOf(await bodyOf(ollama('m'), stored))['tool_name']).toBe('look')
    expect(JSON.stringify(lastOf(await bodyOf(google('m'), stored)))).toContain('"name":"look"')
  })
})

describe('documents, images and audio', () => {
  const named = Document.fromText('Dear reader', 'Letter')
  const paper = Document.fromUrl('https://x.test/a.pdf', 'Paper')
  const data = Document.fromBase64('JVBERi0x', 'application/pdf', 'a.pdf')
  const uri = 'data:application/pdf;base64,JVBERi0x'

  test.each<[string, ModelReference, Document, JsonObject]>([
    ['Chat Completions', chat('m'), named, { type: 'text', text: 'Letter\n\nDear reader' }],
    ['Responses', responses, named, { type: 'input_text', text: 'Letter\n\nDear reader' }],
    [
      'Anthropic',
      anthropic('m'),
      named,
      {
        type: 'document',
        title: 'Letter',
        source: { type: 'text', media_type: 'text/plain', data: 'Dear reader' },
      },
    ],
    [
      'Responses',
      responses,
      paper,
      { type: 'input_file', file_url: 'https://x.test/a.pdf', filename: 'Paper' },
    ],
    [
      'Anthropic',
      anthropic('m'),
      paper,
      { type: 'document', title: 'Paper', source: { type: 'url', url: 'https://x.test/a.pdf' } },
    ],
    [
      'Mistral',
      mistral('m'),
      paper,
      { type: 'document_url', document_url: 'https://x.test/a.pdf', document_name: 'Paper' },
    ],
    [
      'OpenRouter',
      openrouter('m'),
      paper,
      { type: 'file', file: { filename: 'Paper', file_data: 'https://x.test/a.pdf' } },
    ],
    [
      'Chat Completions',
      chat('m'),
      data,
      { type: 'file', file: { filename: 'a.pdf', file_data: uri } },
    ],
    [
      'Mistral',
      mistral('m'),
      data,
      { type: 'document_url', document_url: uri, document_name: 'a.pdf' },
    ],
    [
      'OpenRouter',
      openrouter('m'),
      data,
      { type: 'file', file: { filename: 'a.pdf', file_data: uri } },
    ],
    ['Responses', responses, data, { type: 'input_file', filename: 'a.pdf', file_data: uri }],
    [
      'Anthropic',
      anthropic('m'),
      data,
      {
        type: 'document',
        title: 'a.pdf',
        source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' },
      },
    ],
  ])('UPP-071 UPP-057 %s: %#', async (_name, model, document, expected) => {
    // prettier-ignore
    const [, part] = lastOf(await bodyOf(model, say(['Read', document].map((one) => typeof one === 'string' ? { type: 'text' as const, text: one } : one))))['content'] as JsonObject[] // prettier-ignore
    expect(part).toEqual(expected)
  })

  test.each([
    ['text/plain', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
    ['text/markdown', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
    ['text/csv', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
  ])('UPP-071 Anthropic: %s in base64 is sent as text', async (mimeType, base64, source) => {
    const [part] = lastOf(await bodyOf(anthropic('m'), say([Document.fromBase64(base64, mimeType)])))['content'] as JsonObject[] // prettier-ignore
    expect(part!['source']).toEqual(source)
  })

  test('UPP-071 Google: a text is sent as a file of its type', async () => {
    const source = { type: 'text', data: 'a,b' } as const
    const csv = { type: 'document', source, mimeType: 'text/csv' } as const
    const { parts } = lastOf(await bodyOf(google('m'), say([csv])))
    expect(parts).toEqual([{ inlineData: { mimeType: 'text/csv', data: 'YSxi' } }])
  })

  const wav = Uint8Array.from('RIFF\0\0\0\0WAVEfmt ', (letter) => letter.charCodeAt(0))
  const mp3 = Uint8Array.of(0x49, 0x44, 0x33, 4)

  test.each([
    [Audio.fromBytes(wav), 'wav'],
    [Audio.fromBytes(mp3), 'mp3'],
  ])(
    'UPP-071 audio, %#: Mistral takes the data alone, others data and format',
    async (audio, format) => {
      const data = audio.toBase64()
      const input = async (model: ModelReference): Promise<unknown> =>
        (lastOf(await bodyOf(model, say([audio])))['content'] as JsonObject[])[0]
      expect(await input(mistral('m'))).toEqual({ type: 'input_audio', input_audio: data })
      expect(await input(chat('m'))).toEqual({ type: 'input_audio', input_audio: { data, format } })
    },
  )

  test('UPP-071 a data address of an image is sent as data of the type that it names', async () => {
    const source = { type: 'url', url: `data:image/webp;base64,${png}` } as const
    const block = { type: 'image', source, mimeType: 'image/*' } as const
    const { parts } = lastOf(await bodyOf(google('m'), say([block])))
    expect(parts).toEqual([{ inlineData: { mimeType: 'image/webp', data: png } }])
    const { content } = lastOf(await bodyOf(anthropic('m'), say([block])))
    expect(content).toMatchObject([{ source: { type: 'base64', media_type: 'image/webp', data: png } }]) // prettier-ignore
  })

  test('UPP-057 Ollama: every image of a message is sent', async () => {
    const dot = Image.fromBase64(png)
    const message = lastOf(
      await bodyOf(ollama('m'), say([{ type: 'text', text: 'Two' }, dot, dot])),
    )
    expect(message).toEqual({ role: 'user', content: 'Two', images: [png, png] })
  })
})

describe('the system prompt', () => {
  const system = 'Be brief.'
  const hi = say('Hi')

  test.each<[string, LLMOptions['params'] & object, unknown]>([
    [
      'blocks',
      { systemInstruction: { role: 'system', parts: [{ text: 'And kind.' }] } },
      { role: 'system', parts: [{ text: system }, { text: 'And kind.' }] },
    ],
    [
      'a text',
      { systemInstruction: 'And kind.' },
      { parts: [{ text: system }, { text: 'And kind.' }] },
    ],
    ['nothing', {}, { parts: [{ text: system }] }],
  ])('UPP-059 UPP-004 Google: before %s in params', async (_name, params, expected) => {
    // prettier-ignore
    const body = await bodyOf(google('m'), hi, { system, params })
    expect(body['systemInstruction']).toEqual(expected)
    const alone = await bodyOf(google('m'), hi, { params })
    expect(alone['systemInstruction']).toEqual(params['systemInstruction' as never])
  })

  test.each([
    [[{ type: 'text', text: 'And kind.', cache_control: { type: 'ephemeral' } }]],
    ['And kind.'],
  ])('UPP-059 UPP-004 Anthropic: before %j in params', async (given) => {
    const more = typeof given === 'string' ? [{ type: 'text', text: given }] : given
    const body = await bodyOf(anthropic('m'), hi, { system, params: { system: given } })
    expect(body['system']).toEqual([{ type: 'text', text: system }, ...more])
  })

  test('UPP-059 UPP-004 Responses: instructions in params replace it', async () => {
    const body = await bodyOf(responses, hi, { system, params: { instructions: 'Mine.' } })
    expect(body['instructions']).toBe('Mine.')
  })

  test.each(['system', 'developer'] as const)(
    'UPP-059 its role is that of the server: %s',
    async (systemRole) => {
      const local = openaiCompatible({ name: 'local', baseUrl: 'https://x.test/v1', dialect: { systemRole } }) // prettier-ignore
      const { messages } = await bodyOf(local('m'), hi, { system })
      expect((messages as JsonObject[])[0]).toEqual({ role: systemRole, content: system })
    },
  )
})
