/**
 * The streamed answers of five vendors, frame by frame, with what real ones carry next to the text: random
 * padding, numbers and times that change, usage in each frame.
 */
export interface Format {
  readonly contentType: string
  /** The frames before the first token. */
  readonly first: string
  /** The frame of one token. */
  readonly token: (index: number) => string
  /** The frames after the last token. */
  readonly last: (tokens: number) => string
}

/** Every hundredth word is not ASCII and every twentieth has a line break, as in real answers. */
function word(index: number): string {
  if (index % 100 === 99) return ' Fäden'
  return index % 20 === 10 ? ' word\n' : ` word${index % 10}`
}

let state = 1
function random(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
/** Padding that hides the length of a token, as OpenAI sends it in `obfuscation`. */
function padding(): string {
  let text = ''
  for (let left = random(15); left >= 0; left--) text += letters[random(letters.length)]
  return text
}

const sse = (data: object, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`

const chunkHead = {
  id: 'chatcmpl-CvUe1Wk8mVZ1x2fYkq3DhT0bBGbLo',
  object: 'chat.completion.chunk',
  created: 1_766_000_000,
  model: 'mock-2025-08-07',
  service_tier: 'default',
  system_fingerprint: 'fp_50906f2aac',
}
const chunk = (delta: object, finish_reason: string | null = null): string =>
  sse({
    ...chunkHead,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
    obfuscation: padding(),
  })

const chat: Format = {
  contentType: 'text/event-stream',
  first: chunk({ role: 'assistant', content: '', refusal: null }),
  token: (index) => chunk({ content: word(index) }),
  last: (tokens) =>
    chunk({}, 'stop') +
    sse({
      ...chunkHead,
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 },
      obfuscation: padding(),
    }) +
    'data: [DONE]\n\n',
}

const item_id = 'msg_68a1c2f0d3b481a2b9c4e5f60718293a'
const response = { id: 'resp_68a1c2f0d3b481a2', object: 'response', model: 'mock-2025-08-07' }
const message = { id: item_id, type: 'message', role: 'assistant' }
const event = (type: string, fields: object): string => sse({ type, ...fields }, type)
const place = { item_id, output_index: 0, content_index: 0 }

const responses: Format = {
  contentType: 'text/event-stream',
  first:
    event('response.created', {
      sequence_number: 0,
      response: { ...response, status: 'in_progress', output: [] },
    }) +
    event('response.output_item.added', {
      sequence_number: 1,
      output_index: 0,
      item: { ...message, status: 'in_progress', content: [] },
    }) +
    event('response.content_part.added', {
      sequence_number: 2,
      ...place,
      part: { type: 'output_text', annotations: [], logprobs: [], text: '' },
    }),
  token: (index) =>
    event('response.output_text.delta', {
      sequence_number: index + 3,
      ...place,
      delta: word(index),
      logprobs: [],
      obfuscation: padding(),
    }),
  last: (tokens) => {
    const text = Array.from({ length: tokens }, (_, index) => word(index)).join('')
    const content = [{ type: 'output_text', annotations: [], logprobs: [], text }]
    const item = { ...message, status: 'completed', content }
    const usage = { input_tokens: 10, output_tokens: tokens, total_tokens: tokens + 10 }
    return (
      event('response.output_item.done', {
        sequence_number: tokens + 3,
        output_index: 0,
        item,
      }) +
      event('response.completed', {
        sequence_number: tokens + 4,
        response: { ...response, status: 'completed', output: [item], usage },
      })
    )
  },
}

/** The vendor of Messages hides the length of a token with spaces before the last brace. */
const spaced = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields }).slice(0, -1)}${' '.repeat(random(15))}}\n\n`

const messages: Format = {
  contentType: 'text/event-stream; charset=utf-8',
  first:
    spaced('message_start', {
      message: {
        id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
        type: 'message',
        role: 'assistant',
        model: 'mock',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }) +
    spaced('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
    spaced('ping', {}),
  token: (index) =>
    spaced('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word(index) } }),
  last: (tokens) =>
    spaced('content_block_stop', { index: 0 }) +
    spaced('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: tokens },
    }) +
    spaced('message_stop', {}),
}

/** Gemini writes a space after each colon and counts tokens in every frame. */
const candidate = (text: string, tokens: number, finish = ''): string =>
  `data: {"candidates": [{"content": {"parts": [{"text": ${JSON.stringify(text)}}],"role": "model"}${finish},"index": 0}],` +
  `"usageMetadata": {"promptTokenCount": 10,"candidatesTokenCount": ${tokens},"totalTokenCount": ${tokens + 10},` +
  `"promptTokensDetails": [{"modality": "TEXT","tokenCount": 10}]},"modelVersion": "mock","responseId": "aBcDeFgHiJkLmNoP"}\r\n\r\n`

const gemini: Format = {
  contentType: 'text/event-stream',
  first: '',
  token: (index) => candidate(word(index), index + 1),
  last: (tokens) => candidate('', tokens, ',"finishReason": "STOP"'),
}

const line = (content: string, index: number, rest: object): string => {
  const created_at = `2026-01-01T00:00:${String(index % 60).padStart(2, '0')}.${100_000 + random(899_999)}Z`
  const message = { role: 'assistant', content }
  return `${JSON.stringify({ model: 'mock', created_at, message, ...rest })}\n`
}

const ollama: Format = {
  contentType: 'application/x-ndjson',
  first: '',
  token: (index) => line(word(index), index, { done: false }),
  last: (tokens) =>
    line('', tokens, {
      done: true,
      done_reason: 'stop',
      total_duration: 1_000_000_000,
      prompt_eval_count: 10,
      eval_count: tokens,
    }),
}

/** The name of a wire format that the mock vendor speaks. */
export type FormatName = 'chat' | 'responses' | 'messages' | 'gemini' | 'ollama'
export const formats: Readonly<Record<FormatName, Format>> = {
  chat,
  responses,
  messages,
  gemini,
  ollama,
}
