/**
 * A vendor stub: answers "Hello" in whichever format the address asks for. Bodies are written from
 * the vendors' documentation, not recorded.
 */
import type { Fetch } from '@skein/ai'
import { eventMessage, eventStream } from './event-stream.ts'

export interface Seen {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: string
  readonly signal: AbortSignal | undefined
}

export interface Stub {
  readonly fetch: Fetch
  readonly seen: Seen[]
}

export type Answer = (seen: Seen, count: number) => Response | Promise<Response>

/** A `fetch` that records what it is asked and answers; `Hello` by default. */
export function stub(answer: Answer = hello): Stub {
  const seen: Seen[] = []
  const fetch: Fetch = async (input, init) => {
    const one: Seen = {
      url: input,
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      body: typeof init.body === 'string' ? init.body : '',
      signal: init.signal ?? undefined,
    }
    seen.push(one)
    return answer(one, seen.length)
  }
  return { fetch, seen }
}

/** The answer of a vendor that works. */
export function hello({ url, body }: Pick<Seen, 'url' | 'body'>): Response {
  const { type, text } = helloBody(url, body)
  const headers = { 'content-type': type, 'x-request-id': 'req-hello' }
  return new Response(bytesOf(type, text), { headers })
}

/** The bytes of a body. The text of a binary stream has a line for each of its events. */
export function bytesOf(type: string, text: string): Uint8Array<ArrayBuffer> {
  return type === EVENT_STREAM
    ? new Uint8Array(eventStream(text))
    : new Uint8Array(Buffer.from(text))
}

/** A frame of a stream that is not JSON. */
export function brokenFrame(type: string): Uint8Array<ArrayBuffer> {
  const headers = { ':event-type': 'contentBlockDelta', ':message-type': 'event' }
  if (type === EVENT_STREAM) return new Uint8Array(eventMessage(headers, '{"a":'))
  return new Uint8Array(Buffer.from(type === 'text/event-stream' ? 'data: {"a":\n\n' : '{"a":\n'))
}

export const EVENT_STREAM = 'application/vnd.amazon.eventstream'

export function helloBody(url: string, body: string): { type: string; text: string } {
  const path = new URL(url).pathname
  const format = formats.find(({ pattern }) => pattern.test(path))
  if (!format) throw new Error(`The stub has no answer for ${path}.`)
  const streams = /streamGenerateContent|converse-stream/.test(path) || /"stream":true/.test(body)
  return streams
    ? { type: format.streamType ?? 'text/event-stream', text: format.stream }
    : { type: 'application/json', text: JSON.stringify(format.whole(body)) }
}

interface Format {
  readonly pattern: RegExp
  readonly whole: (body: string) => unknown
  readonly stream: string
  readonly streamType?: string
}

interface GoogleBatch {
  readonly requests: readonly { content: { parts: readonly { text?: string }[] } }[]
}

function inputsOf(body: string): string[] {
  const { input } = JSON.parse(body) as { input: unknown[] }
  return input.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
}

function sse(frames: readonly object[], named = false): string {
  return frames
    .map((frame) => {
      const event = named ? `event: ${(frame as { type: string }).type}\n` : ''
      return `${event}data: ${JSON.stringify(frame)}\n\n`
    })
    .join('')
}

const chatUsage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
const chatChunk = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' }
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
}
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [message],
  usage: { input_tokens: 3, output_tokens: 1, total_tokens: 4 },
}
const part = { type: 'output_text', text: '', annotations: [] }
const item = { item_id: 'msg_1', output_index: 0, content_index: 0 }
const anthropicMessage = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [] as unknown[],
  stop_reason: null as string | null,
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
}
const gemini = {
  candidates: [
    { content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 },
  ],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
  modelVersion: 'm',
  responseId: 'r1',
}
const ollama = { model: 'm', created_at: '2026-01-01T00:00:00Z' }
const ollamaEnd = { done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 1 }

/** A red dot: the smallest PNG that is one. */
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

const inlineData = { mimeType: 'image/png', data: png }
const geminiImage = {
  ...gemini,
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'Here:' }, { inlineData }] },
      finishReason: 'STOP',
    },
  ],
}
const imageUsage = { input_tokens: 5, output_tokens: 7, total_tokens: 12 }

/** Vectors that tell which input they are of: the text's length, and half of it. */
export function vectorOf(text: string): number[] {
  return [text.length, text.length / 2]
}

const formats: readonly Format[] = [
  {
    // Shuffled on purpose: the index says where a vector belongs.
    pattern: /\/embeddings$/,
    whole: (body) => ({
      object: 'list',
      model: 'm',
      data: inputsOf(body)
        .map((input, index) => ({ object: 'embedding', index, embedding: vectorOf(input) }))
        .reverse(),
      usage: { prompt_tokens: inputsOf(body).length, total_tokens: inputsOf(body).length },
    }),
    stream: '',
  },
  {
    pattern: /:batchEmbedContents$/,
    whole: (body) => ({
      embeddings: (JSON.parse(body) as GoogleBatch).requests.map(({ content }) => ({
        values: vectorOf(content.parts[0]?.text ?? ''),
      })),
      usageMetadata: { promptTokenCount: (JSON.parse(body) as GoogleBatch).requests.length },
    }),
    stream: '',
  },
  {
    pattern: /\/embed$/,
    whole: (body) => ({
      model: 'm',
      embeddings: inputsOf(body).map(vectorOf),
      prompt_eval_count: inputsOf(body).length,
      total_duration: 9,
    }),
    stream: '',
  },
  {
    pattern: /\/images\/(generations|edits)$/,
    whole: () => ({
      created: 1,
      output_format: 'png',
      data: [{ b64_json: png, revised_prompt: 'A red dot.' }],
      usage: imageUsage,
    }),
    stream: sse(
      [
        {
          type: 'image_generation.partial_image',
          b64_json: png,
          partial_image_index: 0,
          output_format: 'png',
        },
        {
          type: 'image_generation.completed',
          b64_json: png,
          output_format: 'png',
          size: '1024x1024',
          usage: imageUsage,
        },
      ],
      true,
    ),
  },
  {
    pattern: /:predict$/,
    whole: () => ({ predictions: [{ bytesBase64Encoded: png, mimeType: 'image/png' }] }),
    stream: '',
  },
  {
    pattern: /\/chat\/completions$/,
    whole: (body) => ({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hello',
            ...(body.includes('"modalities":["image"') && {
              images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }],
            }),
          },
          finish_reason: 'stop',
        },
      ],
      usage: chatUsage,
    }),
    stream:
      sse([
        {
          ...chatChunk,
          choices: [
            { index: 0, delta: { role: 'assistant', content: 'Hel' }, finish_reason: null },
          ],
        },
        { ...chatChunk, choices: [{ index: 0, delta: { content: 'lo' }, finish_reason: null }] },
        { ...chatChunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        { ...chatChunk, choices: [], usage: chatUsage },
      ]) + 'data: [DONE]\n\n',
  },
  {
    pattern: /\/responses$/,
    whole: () => response,
    stream: sse(
      [
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
        {
          type: 'response.output_item.added',
          output_index: 0,
          item: { ...message, status: 'in_progress', content: [] },
        },
        { type: 'response.content_part.added', ...item, part },
        { type: 'response.output_text.delta', ...item, delta: 'Hel' },
        { type: 'response.output_text.delta', ...item, delta: 'lo' },
        { type: 'response.output_text.done', ...item, text: 'Hello' },
        { type: 'response.content_part.done', ...item, part: { ...part, text: 'Hello' } },
        { type: 'response.output_item.done', output_index: 0, item: message },
        { type: 'response.completed', response },
      ].map((event, index) => ({ ...event, sequence_number: index })),
      true,
    ),
  },
  {
    pattern: /\/messages$/,
    whole: () => ({
      ...anthropicMessage,
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
    }),
    stream: sse(
      [
        { type: 'message_start', message: anthropicMessage },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'ping' },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 1 },
        },
        { type: 'message_stop' },
      ],
      true,
    ),
  },
  {
    pattern: /:(stream)?[gG]enerateContent$/,
    whole: (body) => (body.includes('"IMAGE"') ? geminiImage : gemini),
    stream: sse([gemini]),
  },
  {
    pattern: /\/converse(-stream)?$/,
    whole: () => ({
      output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: 3, outputTokens: 1, totalTokens: 4 },
      metrics: { latencyMs: 1 },
    }),
    stream: [
      { type: 'messageStart', role: 'assistant' },
      { type: 'contentBlockDelta', contentBlockIndex: 0, delta: { text: 'Hel' } },
      { type: 'contentBlockDelta', contentBlockIndex: 0, delta: { text: 'lo' } },
      { type: 'contentBlockStop', contentBlockIndex: 0 },
      { type: 'messageStop', stopReason: 'end_turn' },
      { type: 'metadata', usage: { inputTokens: 3, outputTokens: 1, totalTokens: 4 } },
    ]
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(''),
    streamType: EVENT_STREAM,
  },
  {
    pattern: /\/chat$/,
    whole: () => ({ ...ollama, message: { role: 'assistant', content: 'Hello' }, ...ollamaEnd }),
    stream: [
      { ...ollama, message: { role: 'assistant', content: 'Hel' }, done: false },
      { ...ollama, message: { role: 'assistant', content: 'lo' }, done: false },
      { ...ollama, message: { role: 'assistant', content: '' }, ...ollamaEnd },
    ]
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(''),
    streamType: 'application/x-ndjson',
  },
]
