// What only Ollama does. Bodies follow its documentation and SDK types; none is recorded.
import type { JsonObject } from '@skein/base'
import { llm, type Params, type StreamEvent } from '@skein/ai'
import { ollama } from '@skein/ai/ollama'
import { describe, expect, test } from 'vitest'
import { exchange, type Reply } from './support/exchange.ts'

const model = ollama('qwen')
const line = (message: JsonObject, more: JsonObject = {}): JsonObject => ({
  model: 'qwen:1',
  created_at: '2026-11-15T00:00:00Z',
  message: { role: 'assistant', content: '', ...message },
  done: false,
  ...more,
})
const end = { done: true, done_reason: 'stop', prompt_eval_count: 7, eval_count: 3 }
const answer = (message: JsonObject): Reply => ({ json: line(message, end) })
const add = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
  run: ({ a }: { a: number }) => a + 1,
}
const asks = (a: number) => ({ function: { name: 'add', arguments: { a } } })

describe('a turn with tools', () => {
  const replies = [
    answer({ thinking: 'Hm', tool_calls: [asks(1)] }),
    answer({ tool_calls: [asks(2)] }),
    answer({ content: 'Two, three.' }),
  ]

  test('UPP-057 UPP-059 UPP-146 goes out in the format of the API, results by tool name', async () => {
    const { config, requests } = exchange(...replies)
    const { apiKey: _, ...keyless } = config
    const instance = llm({ model, config: keyless, system: 'Be brief.', tools: [add] })
    const turn = await instance.generate('Add!')
    expect(turn.response.text).toBe('Two, three.')
    expect(turn.usage).toMatchObject({ inputTokens: 21, outputTokens: 9, totalTokens: 30 })
    expect(requests[0]?.url.href).toBe('http://127.0.0.1:11434/api/chat')
    expect(requests[0]?.headers.has('authorization')).toBe(false)
    const { name, description, parameters } = add
    expect(requests[2]?.body).toEqual({
      model: 'qwen',
      stream: false,
      tools: [{ type: 'function', function: { name, description, parameters } }],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Add!' },
        { role: 'assistant', content: '', thinking: 'Hm', tool_calls: [asks(1)] },
        { role: 'tool', content: '2', tool_name: 'add' },
        { role: 'assistant', content: '', tool_calls: [asks(2)] },
        { role: 'tool', content: '3', tool_name: 'add' },
      ],
    })
  })

  test('UPP-058 UPP-061 calls of all rounds have different ids', async () => {
    const { config } = exchange(...replies)
    const turn = await llm({ model, config, tools: [add] }).generate('Add!')
    const ids = turn.toolExecutions.map(({ toolCallId }) => toolCallId)
    expect(new Set(ids).size).toBe(2)
    expect(turn.response.metadata).toEqual({
      ollama: { api: 'ollama-chat', model: 'qwen:1', created_at: '2026-11-15T00:00:00Z' },
    })
  })
})

test('UPP-123 UPP-004 parameters and native tools keep their place', async () => {
  const params = { think: true, options: { temperature: 0 }, x_new: { a: [null] } }
  const { config, requests } = exchange(answer({ content: 'ok' }))
  await llm({
    model,
    config,
    params: { ...params, tools: [{ type: 'other' }] },
    tools: [add],
  }).generate('Hi')
  expect(requests[0]?.body).toMatchObject(params)
  expect(requests[0]?.body['tools']).toMatchObject([
    { function: { name: 'add' } },
    { type: 'other' },
  ])
})

test('a sampling option outside of options is sent as it is, with a warning', async () => {
  const { config, requests } = exchange(answer({ content: 'ok' }))
  const params: Params = { temperature: 0 }
  const { warnings } = await llm({ model, config, params }).generate('Hi')
  expect(requests[0]?.body['temperature']).toBe(0)
  expect(warnings).toMatchObject([{ code: 'misplaced_parameter' }])
})

test('UPP-062 UPP-157 fields no one knows come back as they were', async () => {
  const calls = [{ id: 'c1', extra: 1, function: { ...asks(1).function, index: 4 } }]
  const { config, requests } = exchange(answer({ tool_calls: calls }), answer({ content: 'ok' }))
  await llm({ model, config, tools: [add] }).generate('Hi')
  expect((requests[1]!.body['messages'] as JsonObject[]).slice(1)).toEqual([
    { role: 'assistant', content: '', tool_calls: calls },
    { role: 'tool', content: '2', tool_name: 'add', tool_call_id: 'c1' },
  ])
})

test('UPP-124 UPP-147 structure is the format', async () => {
  const structure = { type: 'object', properties: { age: { type: 'integer' } } }
  const { config, requests } = exchange(answer({ content: '{"age":30}' }))
  const turn = await llm({ model, config, structure }).generate('John is 30.')
  expect(turn.data).toEqual({ age: 30 })
  expect(requests[0]?.body['format']).toEqual(structure)
})

test('UPP-145 UPP-089 lines become blocks with starts and stops', async () => {
  const lines = [
    line({ thinking: 'Hm' }),
    line({ content: 'Hel' }),
    line({ content: 'lo' }),
    line({ tool_calls: [asks(1), asks(2)] }),
    line({}, end),
  ]
  const { config } = exchange({ lines })
  const result = llm({ model, config, tools: [add], toolStrategy: { maxIterations: 0 } }).stream(
    'Hi',
  )
  const seen: StreamEvent[] = []
  for await (const event of result) seen.push(event)
  expect(seen.map(({ type, index }) => `${type} ${index}`)).toEqual([
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
    'content_block_stop 2',
    'content_block_start 3',
    'tool_call_delta 3',
    'content_block_stop 3',
    'message_stop 0',
  ])
})

test('UPP-060 UPP-036 errors keep their words, also inside a stream', async () => {
  const { config } = exchange(
    { status: 404, json: { error: "model 'qwen' not found" } },
    { lines: [line({ content: 'Hel' }), { error: 'out of memory' }] },
    { lines: [line({ content: 'Hel' })] },
  )
  const instance = llm({ model, config })
  await expect(instance.generate('1')).rejects.toMatchObject({
    code: 'MODEL_NOT_FOUND',
    message: "model 'qwen' not found",
    statusCode: 404,
  })
  await expect(instance.stream('2').turn).rejects.toMatchObject({
    code: 'PROVIDER_ERROR',
    message: 'out of memory',
    turn: { response: { text: 'Hel' } },
  })
  await expect(instance.stream('3').turn).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
})

test('UPP-148 UPP-071 images are data; an address is refused before any request', async () => {
  const { config, requests } = exchange(answer({ content: 'ok' }))
  const instance = llm({ model, config })
  const image = { type: 'image' as const, mimeType: 'image/png' }
  const url = { ...image, source: { type: 'url' as const, url: 'https://x/y.png' } }
  await expect(instance.generate(url)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  const document = {
    type: 'document' as const,
    source: { type: 'text' as const, data: 'x' },
    mimeType: 'text/plain',
  }
  await expect(instance.generate(document)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  expect(requests).toHaveLength(0)
  await instance.generate('See', { ...image, source: { type: 'base64', data: 'AQID' } })
  expect(requests[0]?.body['messages']).toEqual([
    { role: 'user', content: 'See', images: ['AQID'] },
  ])
})
