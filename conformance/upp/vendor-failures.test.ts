/** Errors inside answers, and streams that end too early, for each vendor. */
import type { JsonObject } from '@skein/base'
import { llm, type ModelReference, type UPPError } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { describe, expect, test } from 'vitest'
import { requests } from './cases/requests.ts'
import { answering } from './support/ask-vendor.ts'
import { exchange, type Reply } from './support/exchange.ts'
import { vendorCases } from './vendors.ts'

async function failureOf(model: ModelReference, reply: Reply): Promise<UPPError> {
  const instance = llm({ model, config: exchange(reply).config })
  const asking = reply.json === undefined ? instance.stream('x').turn : instance.generate('x')
  return asking.then(
    ({ response }) => Promise.reject(new Error(`no error, but ${response.text}`)),
    (error: UPPError) => error,
  )
}

describe('errors', () => {
  const line = (message: JsonObject): JsonObject => ({ model: 'm', message, done: false })
  const frame = (part: JsonObject): JsonObject => ({ candidates: [{ content: { parts: [part] } }] })
  const googleError = { error: { code: 503, message: 'It broke', status: 'UNAVAILABLE' } }
  const chatError = { error: { message: 'It broke', type: 'server_error' } }
  const flat = { type: 'error', code: 'rate_limit_exceeded', message: 'It broke' }
  const start = { type: 'message_start', message: { id: 'm', content: [], usage: {} } }
  const thinking = { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: 'Hm' } } // prettier-ignore
  const overloaded = { type: 'error', error: { type: 'rate_limit_error', message: 'It broke' } }

  test.each<[string, ModelReference, Reply, string]>([
    [
      'Ollama, after reasoning',
      ollama('m'),
      { lines: [line({ thinking: 'Hm' }), { error: 'It broke' }] },
      'PROVIDER_ERROR',
    ],
    [
      'Ollama, after text',
      ollama('m'),
      { lines: [line({ content: 'Hi' }), { error: 'It broke' }] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after reasoning',
      google('m'),
      { events: [frame({ text: 'Hm', thought: true }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after text',
      google('m'),
      { events: [frame({ text: 'Hi' }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Google, after a call',
      google('m'),
      { events: [frame({ functionCall: { name: 'a' } }), googleError] },
      'PROVIDER_ERROR',
    ],
    [
      'Groq, after reasoning',
      groq('m'),
      { events: [{ choices: [{ delta: { reasoning: 'Hm' } }] }, chatError] },
      'PROVIDER_ERROR',
    ],
    [
      'Groq, in x_groq',
      groq('m'),
      { events: [{ choices: [{ delta: { content: 'Hi' } }] }, { x_groq: chatError }] },
      'PROVIDER_ERROR',
    ],
    [
      'Responses, flat',
      openai('m'),
      { events: [{ type: 'response.output_text.delta', output_index: 0, delta: 'Hi' }, flat] },
      'RATE_LIMITED',
    ],
    [
      'Anthropic, after reasoning',
      anthropic('m'),
      { events: [start, thinking, overloaded] },
      'RATE_LIMITED',
    ],
  ])('UPP-060 UPP-036 %s', async (_name, model, reply, code) => {
    // prettier-ignore
    const { provider } = model
    const error = await failureOf(model, reply)
    expect(error).toMatchObject({ code, message: 'It broke', provider: provider.name, modality: 'llm' }) // prettier-ignore
    expect(error.turn?.response.content.length).toBe(_name.includes('call') ? 0 : 1)
  })

  test('UPP-036 Google: a prompt that is blocked after content has come', async () => {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }
    const error = await failureOf(google('m'), { events: [frame({ text: 'Hi' }), blocked] })
    expect(error).toMatchObject({ code: 'CONTENT_FILTERED', vendorCode: 'PROHIBITED_CONTENT' })
  })

  test('UPP-036 Google: a daily quota is spent, whichever limit is named first', async () => {
    const quota = (...ids: string[]): Reply => ({
      status: 429,
      json: {
        error: {
          status: 'RESOURCE_EXHAUSTED',
          message: 'Too many requests',
          details: [
            {
              '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
              violations: ids.map((quotaId) => ({ quotaId })),
            },
          ],
        },
      },
    })
    const codeOf = async (...ids: string[]): Promise<string> =>
      (await failureOf(google('m'), quota(...ids))).code
    expect(await codeOf('RequestsPerMinute')).toBe('RATE_LIMITED')
    expect(await codeOf('RequestsPerMinute', 'RequestsPerDay')).toBe('QUOTA_EXCEEDED')
    expect(await codeOf('RequestsPerDay', 'RequestsPerMinute')).toBe('QUOTA_EXCEEDED')
  })

  test('UPP-036 Azure: the inner error says what a general code does not', async () => {
    const error = {
      message: 'The prompt was refused.',
      code: 'BadRequest',
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    }
    const failed = await failureOf(azureOpenai('m'), { status: 400, json: { error } })
    expect(failed).toMatchObject({ code: 'CONTENT_FILTERED', vendorCode: 'BadRequest' })
  })

  test('UPP-036 Ollama: an answer that is not done is not an answer', async () => {
    const message = { role: 'assistant', content: 'Hel' }
    for (const end of [{}, { done: false }]) {
      const error = await failureOf(ollama('m'), { json: { model: 'm', message, ...end } })
      expect(error.code).toBe('INVALID_RESPONSE')
    }
  })
})

describe.each(vendorCases)('$name', (vendor) => {
  const { text, calls, structure } = vendor.answers
  const whole = { text, calls, structure }

  test.each(Object.keys(whole) as (keyof typeof whole)[])(
    'UPP-036 %s: a stream that ends too early is INVALID_RESPONSE, wherever it ends',
    async (kind) => {
      const { stream } = whole[kind]
      const separator = stream.startsWith('{') ? '\n' : '\n\n'
      const frames = stream.split(separator).filter((frame) => frame !== '')
      const outcome = async (count: number): Promise<unknown> => {
        const cut = frames.slice(0, count).map((frame) => frame + separator).join('') // prettier-ignore
        const { fetch } = answering({ whole: null, stream: cut })
        const { options, history, input } = requests[kind === 'text' ? 'text' : kind === 'calls' ? 'tools' : 'structure'] // prettier-ignore
        const config = { apiKey: 'key', fetch, retryStrategy: { onRetry: () => null } }
        const toolStrategy = { maxIterations: 0 }
        const model = llm({ model: vendor.model, config, ...options, toolStrategy })
        return model.stream(history, input).turn.then(
          ({ response, stopReason }) => JSON.stringify([response.content, response.toolCalls?.map(({ toolName, arguments: args }) => [toolName, args]), stopReason]), // prettier-ignore
          ({ code }: UPPError) => code,
        )
      }
      const complete = await outcome(frames.length)
      expect(complete).not.toBe('INVALID_RESPONSE')
      const outcomes: unknown[] = []
      for (let count = 0; count < frames.length; count++) outcomes.push(await outcome(count))
      // What follows the end of an answer, such as usage, may be missing.
      expect(outcomes.filter((one) => one !== 'INVALID_RESPONSE' && one !== complete)).toEqual([])
      expect(outcomes.slice(0, Math.max(1, frames.length - 3)).every((one) => one === 'INVALID_RESPONSE')) // prettier-ignore
        .toBe(true)
    },
  )
})
