/**
 * Claude with `thinking.budget_tokens` refuses a request in the middle of a tool loop that has no thinking of its own:
 * "a final assistant message must start with a thinking block". Adaptive thinking has no such rule.
 */
import {
  AssistantMessage,
  llm,
  type Message,
  NoRetry,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel } from '@skein/ai/gateway'
import { openai } from '@skein/ai/openai'
import { fallback } from '@skein/ai/routing'
import { calls, fails, reasons, says, vendorServer, type VendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { expect, test } from 'vitest'
import { post } from '../gateway/clients.ts'

const config = (vendor: VendorServer) => ({
  apiKey: 'k',
  fetch: vendor.fetch,
  retryStrategy: new NoRetry(),
})
const look = { name: 'look', description: '', parameters: { type: 'object' }, run: () => 'rain' }
const call = { toolCallId: 'c1', toolName: 'look', arguments: {} }
const asked = new UserMessage('Look.')
const result = new ToolResultMessage([{ toolCallId: 'c1', toolName: 'look', result: 'rain' }])
const foreign = new AssistantMessage([{ type: 'reasoning', text: 'I must look.' }], [call])
const signed = new AssistantMessage(
  [
    {
      type: 'reasoning',
      text: 'I must look.',
      metadata: {
        anthropic: { api: 'anthropic-messages', native: { type: 'thinking', signature: 's' } },
      },
    },
  ],
  [call],
)
const again = new AssistantMessage([], [{ ...call, toolCallId: 'c2' }])
const second = new ToolResultMessage([{ toolCallId: 'c2', toolName: 'look', result: 'sun' }])
const high = { reasoning: 'high' } as const

test.each<[string, string, readonly Message[], object, string | undefined]>([
  ['a loop of another vendor', 'claude-sonnet-4-5', [asked, foreign, result], high, undefined],
  [
    'and a word of the person in it',
    'claude-haiku-4-5',
    [asked, foreign, result, new UserMessage('Quick.')],
    high,
    undefined,
  ],
  ['two steps of it', 'claude-opus-4-1', [asked, foreign, result, again, second], high, undefined],
  [
    'a budget for Claude 4.6',
    'claude-opus-4-6',
    [asked, foreign, result],
    { reasoning: { budget: 5000 } },
    undefined,
  ],
  ['its own loop', 'claude-sonnet-4-5', [asked, signed, result], high, 'enabled'],
  [
    'its own loop, whose second step has no thinking',
    'claude-sonnet-4-5',
    [asked, signed, result, again, second],
    high,
    'enabled',
  ],
  [
    'a finished loop',
    'claude-sonnet-4-5',
    [asked, foreign, result, new AssistantMessage('Rain.'), asked],
    high,
    'enabled',
  ],
  ['adaptive thinking', 'claude-opus-4-8', [asked, foreign, result], high, 'adaptive'],
  ['off', 'claude-sonnet-4-5', [asked, foreign, result], { reasoning: 'off' }, 'disabled'],
  [
    'params',
    'claude-sonnet-4-5',
    [asked, foreign, result],
    { params: { thinking: { type: 'enabled', budget_tokens: 2000 } } },
    'enabled',
  ],
])('%s, %s', async (_, id, history, settings, type) => {
  let body: JsonObject = {}
  const fetch = async (_address: string, init: RequestInit): Promise<Response> => {
    body = JSON.parse(init.body as string) as JsonObject
    return Response.json({
      id: 'm',
      content: [{ type: 'text', text: 'ok' }],
      stop_reason: 'end_turn',
    })
  }
  const options = { tools: [look], config: { apiKey: 'k', fetch }, ...settings }
  const turn = await llm({ model: anthropic(id), ...options }).generate(history)
  expect((body['thinking'] as JsonObject | undefined)?.['type']).toBe(type)
  const dropped = turn.warnings.filter(({ pointer }) => pointer === '/settings/reasoning')
  expect(dropped.map(({ code }) => code)).toEqual(type === undefined ? ['setting_dropped'] : [])
})

test('a sampler that thinking excludes is sent while there is none', async () => {
  const vendor = vendorServer([says('ok')])
  const model = anthropic('claude-sonnet-4-5')
  await llm({ model, tools: [look], config: config(vendor), ...high, temperature: 0.2 }).generate([asked, foreign, result]) // prettier-ignore
  expect(vendor.requests[0]!.body).toMatchObject({ temperature: 0.2 })
})

test('a fallback that takes over in the middle of a loop', async () => {
  const first = vendorServer([calls('look', {}), fails({ code: 'RATE_LIMITED', statusCode: 429 })])
  const claude = vendorServer([says('Rain.')])
  const model = fallback([
    { model: openai('gpt-5'), config: config(first) },
    { model: anthropic('claude-sonnet-4-5'), config: config(claude) },
  ])
  const turn = await llm({ model, tools: [look], ...high }).generate('Look.')
  expect(turn.response.text).toBe('Rain.')
  expect(claude.requests[0]!.body).not.toHaveProperty('thinking')
  expect(turn.warnings.map(({ code }) => code)).toContain('setting_dropped')
})

test('a client whose format has no place for signatures, behind the gateway', async () => {
  const vendor = vendorServer([[reasons('I must look.'), calls('look', {})], says('Rain.')])
  const m = servedModel({ model: anthropic('claude-sonnet-4-5'), config: config(vendor) })
  const handler = gateway({ models: { m } })
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  const user = { role: 'user', content: 'Look.' }
  const body = { model: 'm', tools, reasoning_effort: 'high', max_tokens: 9000, messages: [user] }
  const answer = (await (await post(handler, '/v1/chat/completions', body)).json()) as JsonObject
  const { message } = (answer['choices'] as unknown as { message: { tool_calls: { id: string }[] } }[])[0]! // prettier-ignore
  const told = { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'rain' }
  const next = { ...body, messages: [user, message as unknown as JsonObject, told] }
  const response = await post(handler, '/v1/chat/completions', next)
  expect(vendor.requests[0]!.body).toHaveProperty('thinking')
  expect(vendor.requests[1]!.body).not.toHaveProperty('thinking')
  expect(response.headers.get('skein-dropped-params')).toBe('reasoning_effort')
})
