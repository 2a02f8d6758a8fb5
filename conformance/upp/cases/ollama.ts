/** Ollama's chat. */
import type { JsonObject } from '@skein/base'
import ollama from '@skein/ai/ollama'
import { expect } from 'vitest'
import { person, weather } from './requests.ts'
import type { ErrorCase, VendorAnswer, VendorCase } from './vendor-case.ts'

const said = (...messages: JsonObject[]): JsonObject => ({ model: 'm', stream: false, messages })
const user = (content: string, images?: string[]): JsonObject => ({
  role: 'user',
  content,
  ...(images && { images }),
})
const call = (city: string): JsonObject => ({ function: { name: 'weather', arguments: { city } } })
const { run: _, ...declared } = weather

const bodies: VendorCase['bodies'] = {
  text: said(user('Hello')),
  system: said({ role: 'system', content: 'Be brief.' }, user('Hello')),
  params: { ...said(user('Hello')), temperature: 0.5, unknown_key: { deep: [1, null] } },
  tools: { ...said(user('Weather?')), tools: [{ type: 'function', function: declared }] },
  toolResults: said(
    user('Weather?'),
    { role: 'assistant', content: 'Let me see.', tool_calls: [call('Oslo'), call('Rome')] },
    { role: 'tool', content: '{"sky":"grey"}', tool_name: 'weather' },
    { role: 'tool', content: 'Error: No data.', tool_name: 'weather' },
    user('And tomorrow?'),
  ),
  structure: { ...said(user('Who?')), format: person },
  imageBase64: said(user('What is it?', ['AQI='])),
  imageBytes: said(user('', ['AQI='])),
  imageUrl: 'refused',
  documentBase64: 'refused',
  documentUrl: 'refused',
  documentText: 'refused',
  audio: 'refused',
  video: 'refused',
}

const head = { model: 'm-2026', created_at: '2026-11-15T00:00:00Z' }
const end = { done: true, done_reason: 'stop', prompt_eval_count: 3, eval_count: 2 }

/** A whole answer and the stream that says the same: a line for each piece of the message. */
function answer(
  whole: JsonObject,
  pieces: readonly JsonObject[],
  more: JsonObject = {},
): VendorAnswer {
  const line = (message: JsonObject, rest: JsonObject): JsonObject => ({
    ...head,
    message: { role: 'assistant', content: '', ...message },
    ...rest,
  })
  const lines = [
    ...pieces.map((piece) => line(piece, { done: false })),
    line({}, { ...end, ...more }),
  ]
  return {
    whole: line(whole, { ...end, ...more }),
    stream: lines.map((each) => `${JSON.stringify(each)}\n`).join(''),
  }
}

const failed = (
  name: string,
  status: number,
  message: string,
  code: ErrorCase['code'],
): ErrorCase => ({ name, status, body: { error: message }, code, message })

/** A server that gives its calls an id gets it back, and what else it said of them. */
const signed = { id: 'callOslo1', ...call('Oslo'), extra: { a: [1] } }

export const ollamaCases: readonly VendorCase[] = [
  {
    name: 'ollama',
    provider: 'ollama',
    model: ollama('m'),
    path: '/api/chat',
    bodies,
    streamFields: { stream: true },
    systemOf: ({ messages }) => (messages as JsonObject[])[0],
    answers: {
      text: answer({ content: 'Hello there' }, [{ content: 'Hello' }, { content: ' there' }]),
      calls: answer({ tool_calls: [call('Oslo'), call('Rome')] }, [
        { tool_calls: [call('Oslo')] },
        { tool_calls: [call('Rome')] },
      ]),
      empty: answer({}, []),
      structure: answer({ content: '{"name":"Ada"}' }, [
        { content: '{"name":' },
        { content: '"Ada"}' },
      ]),
    },
    unknown: {
      ...answer(
        { thinking: 'Hm', content: 'Hi', tool_calls: [signed] },
        [{ thinking: 'Hm' }, { content: 'Hi' }, { tool_calls: [signed] }],
        { brand_new: { a: [1] } },
      ),
      metadata: { model: 'm-2026', brand_new: { a: [1] } },
      sentBack: {
        of: (body) => (body['messages'] as JsonObject[])[1],
        value: { role: 'assistant', content: 'Hi', thinking: 'Hm', tool_calls: [signed] },
      },
    },
    native: {
      ...answer({ content: 'Sunny.' }, [{ content: 'Sunny.' }]),
      tool: { type: 'web_search' },
      check: ({ response }) => expect(response.text).toBe('Sunny.'),
    },
    errors: [
      failed('a bad request', 400, 'invalid options: top_k', 'INVALID_REQUEST'),
      failed('no tools', 400, '"m" does not support tools', 'INVALID_REQUEST'),
      failed('a bad key', 401, 'unauthorized', 'AUTHENTICATION_FAILED'),
      failed('no such model', 404, "model 'm' not found", 'MODEL_NOT_FOUND'),
      failed('too fast', 429, 'too many requests', 'RATE_LIMITED'),
      failed('too long', 400, 'input exceeds the context length', 'CONTEXT_LENGTH_EXCEEDED'),
      failed('down', 500, 'llama runner process has terminated', 'PROVIDER_ERROR'),
    ],
  },
]
