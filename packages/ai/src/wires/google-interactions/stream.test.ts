import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { checkGrammar, contextOf, decodeStream, fold } from '../../../test/wires/wire-cases.ts'
import { llm } from '../../llm.ts'
import { google } from '../../vendors/google.ts'
import { googleInteractions } from './wire.ts'

const target = { provider: 'google', modelId: 'm', dialect: {} }
const completed = (fields: JsonObject = {}): JsonObject => ({
  event_type: 'interaction.completed',
  interaction: { id: 'i', status: 'completed', ...fields },
})

function decoded(...events: JsonObject[]) {
  const all = decodeStream(googleInteractions, events, contextOf(target))
  checkGrammar(all)
  return fold(all)
}

test('usage: thoughts are output, results of hosted tools input', () => {
  const { stop } = decoded(
    { event_type: 'step.start', index: 0, step: { type: 'model_output' } },
    completed({
      usage: {
        total_input_tokens: 10,
        total_tool_use_tokens: 5,
        total_cached_tokens: 4,
        total_output_tokens: 3,
        total_thought_tokens: 2,
        output_tokens_by_modality: [{ modality: 'video', tokens: 3 }],
      },
    }),
  )
  expect(stop?.usage).toMatchObject({
    inputTokens: 15,
    outputTokens: 5,
    totalTokens: 20,
    cacheReadTokens: 4,
    reasoningTokens: 2,
    tokensByModality: { outputVideo: 3 },
  })
})

test.each([
  ['completed', {}, 'end_turn'],
  ['incomplete', {}, 'max_tokens'],
  ['incomplete', { errors: [{ code: 'content_filtered', message: '' }] }, 'content_filter'],
  ['requires_continuation', { continuation_token: 't' }, 'pause'],
  ['budget_exceeded', {}, 'other'],
])('the status %s %j is the stop reason %s', (status, more, stopReason) => {
  const { stop } = decoded(completed({ status, ...more }))
  expect(stop).toMatchObject({ stopReason, rawStopReason: status })
})

test('sources are what annotations cite', () => {
  const annotations = [
    { type: 'url_citation', url: 'https://x.test', title: 'X' },
    { type: 'file_citation', document_uri: 'files/a', file_name: 'a.pdf' },
    { type: 'word_info', word: 'x' },
  ]
  const { stop, content } = decoded(
    { event_type: 'step.start', index: 0, step: { type: 'model_output' } },
    { event_type: 'step.delta', index: 0, delta: { type: 'text', text: 'Hi' } },
    { event_type: 'step.delta', index: 0, delta: { type: 'text_annotation_delta', annotations } },
    completed(),
  )
  expect(content).toMatchObject([
    { type: 'text', metadata: { google: { native: { annotations } } } },
  ])
  expect(stop?.sources).toMatchObject([
    { type: 'url', url: 'https://x.test', title: 'X' },
    { type: 'document', id: 'files/a', title: 'a.pdf' },
  ])
})

test('pieces of sound are one block', () => {
  const piece = (data: string): JsonObject => ({
    event_type: 'step.delta',
    index: 0,
    delta: { type: 'audio', data, mime_type: 'audio/l16', sample_rate: 24_000 },
  })
  const { content } = decoded(piece('AQI='), piece('AwQ='), completed())
  expect(content).toMatchObject([
    {
      type: 'audio',
      data: new Uint8Array([1, 2, 3, 4]),
      metadata: { google: { native: { sample_rate: 24_000 } } },
    },
  ])
})

describe('an answer that fails', () => {
  test.each<[string, JsonObject[], object]>([
    ['in an event', [{ event_type: 'error', error: { code: 'unavailable', message: 'Busy' } }], { code: 'PROVIDER_ERROR', message: 'Busy' }], // prettier-ignore
    ['by its status', [completed({ status: 'failed', errors: [{ code: '429', message: 'Slow' }] })], { code: 'RATE_LIMITED', message: 'Slow' }], // prettier-ignore
    ['by its status alone', [{ event_type: 'interaction.status_update', status: 'cancelled' }], { code: 'PROVIDER_ERROR' }], // prettier-ignore
    ['by its end', [{ event_type: 'interaction.created', interaction: { status: 'in_progress' } }], { code: 'INVALID_RESPONSE' }], // prettier-ignore
  ])('%s', (_, events, error) => {
    expect(() => decoded(...events)).toThrow(expect.objectContaining(error))
  })
})

test('an interaction in the background is asked for until it is over', async () => {
  const urls: string[] = []
  const answers = [
    { id: 'v1_x', status: 'in_progress' },
    { id: 'v1_x', status: 'in_progress' },
    { id: 'v1_x', status: 'completed', steps: [{ type: 'model_output', content: [{ type: 'text', text: 'Done.' }] }] }, // prettier-ignore
  ]
  const fetch = async (url: string, { method = 'GET' }: RequestInit): Promise<Response> => {
    urls.push(`${method} ${new URL(url).pathname}`)
    return Response.json(answers[urls.length - 1])
  }
  const model = google('gemini-omni-flash-preview', { api: 'interactions' })
  const config = { apiKey: 'k', fetch }
  const turn = await llm({ model, config, params: { background: true } }).generate('A film.')
  expect(turn.text).toBe('Done.')
  expect(urls).toEqual([
    'POST /v1beta/interactions',
    'GET /v1beta/interactions/v1_x',
    'GET /v1beta/interactions/v1_x',
  ])
})

test('google() takes the API that the model needs, or the one that is named', () => {
  const wireOf = (model: ReturnType<typeof google>) => llm({ model, config: { apiKey: 'k' } }).model.wire // prettier-ignore
  expect(wireOf(google('gemini-3.8-flash'))).toBe('google-generate')
  expect(wireOf(google('gemini-omni-flash-preview'))).toBe('google-interactions')
  expect(wireOf(google('gemini-3.8-flash', { api: 'interactions' }))).toBe('google-interactions')
  expect(wireOf(google('gemini-omni-flash-preview', { api: 'generate' }))).toBe('google-generate')
  const wrong = google('x', { api: 'chat' as 'generate' })
  expect(() => wireOf(wrong)).toThrow(/asks for the API "chat"/)
})
