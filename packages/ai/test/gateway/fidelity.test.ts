/** What a client of a vendor's own format sent reaches that vendor, and comes back from others. */
import { type ModelReference, NoRetry } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel, type GatewayOptions } from '@skein/ai/gateway'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { calls, reasons, says, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { hi, post } from './clients.ts'

function toAnthropic(options: Partial<GatewayOptions> = {}) {
  const vendor = vendorServer(() => says('ok'))
  const config = { apiKey: 'k', fetch: vendor.fetch, headers: { 'Anthropic-Beta': 'own-1' } }
  const m = servedModel({ model: anthropic('claude-sonnet-4-5'), config })
  return { vendor, handler: gateway({ models: { m }, ...options }) }
}

const cached = { cache_control: { type: 'ephemeral' } } as const
const base = { model: 'm', max_tokens: 9 }

describe('from Anthropic to Anthropic', () => {
  test('cache marks of the system prompt, of tools and of blocks', async () => {
    const { vendor, handler } = toAnthropic()
    const body = {
      ...base,
      system: [
        { type: 'text', text: 'Long.' },
        { type: 'text', text: 'Rules.', ...cached },
      ],
      tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' }, ...cached }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] }],
    }
    expect((await post(handler, '/v1/messages', body)).status).toBe(200)
    expect(vendor.requests[0]!.body).toMatchObject({ system: body.system, tools: body.tools, messages: body.messages }) // prettier-ignore
  })

  test('search results, content documents and blocks that only Anthropic has', async () => {
    const { vendor, handler } = toAnthropic()
    const search = {
      type: 'search_result',
      source: 'https://a.test/page',
      title: 'A page',
      content: [{ type: 'text', text: 'Facts.' }],
      citations: { enabled: true },
    }
    const document = {
      type: 'document',
      source: { type: 'content', content: [{ type: 'text', text: 'Part one.' }] },
      title: 'Parts',
      ...cached,
    }
    const messages = [
      { role: 'user', content: [search, document, { type: 'text', text: 'Find it.' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'find', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 't1',
            content: [search, { type: 'tool_reference', tool_name: 'other' }],
          },
        ],
      },
    ]
    const tools = [{ name: 'find', input_schema: { type: 'object' } }]
    expect((await post(handler, '/v1/messages', { ...base, messages, tools })).status).toBe(200)
    expect(vendor.requests[0]!.body['messages']).toEqual(messages)
  })

  test('beta features by an allow list; the others are named', async () => {
    const { vendor, handler } = toAnthropic()
    const headers = {
      'anthropic-beta':
        'context-management-2025-06-27, context-1m-2025-08-07,mcp-client-2025-11-20',
    }
    const response = await post(handler, '/v1/messages', { ...base, messages: hi }, headers)
    expect(vendor.requests[0]!.headers['anthropic-beta']).toBe(
      'own-1,context-management-2025-06-27,mcp-client-2025-11-20',
    )
    expect(response.headers.get('skein-dropped-params')).toBe(
      'anthropic-beta: context-1m-2025-08-07',
    )
    const open = toAnthropic({ betas: ['context-1m-*'] })
    await post(open.handler, '/v1/messages', { ...base, messages: hi }, headers)
    expect(open.vendor.requests[0]!.headers['anthropic-beta']).toBe('own-1,context-1m-2025-08-07')
    const closed = toAnthropic({ betas: [] })
    await post(closed.handler, '/v1/messages', { ...base, messages: hi }, headers)
    expect(closed.vendor.requests[0]!.headers['anthropic-beta']).toBe('own-1')
  })
})

test('the thinking budget of an Anthropic client reaches Gemini; "disabled" is off', async () => {
  const vendor = vendorServer(() => says('ok'))
  const model = servedModel({
    model: google('gemini-2.5-flash'),
    config: { apiKey: 'k', fetch: vendor.fetch },
  })
  const handler = gateway({ models: { m: model } })
  // An effort says less, wherever it is.
  const output_config = { effort: 'high' }
  for (const thinking of [{ type: 'enabled', budget_tokens: 3000 }, { type: 'disabled' }])
    for (const fields of [{ thinking }, { thinking, output_config }, { output_config, thinking }])
      await post(handler, '/v1/messages', { ...base, messages: hi, ...fields })
  const sent = vendor.requests.map(({ body }) => (body['generationConfig'] as JsonObject)['thinkingConfig']) // prettier-ignore
  const [budget, off] = [{ thinkingBudget: 3000 }, { thinkingBudget: 0 }]
  expect(sent).toEqual([budget, budget, budget, off, off, off])
})

describe('signed thinking of a vendor survives a client of another format', () => {
  /** Runs a tool loop through a client's format, with a vendor that checks its own signatures. */
  async function loop(
    model: ModelReference,
    stream: boolean,
    ask: (send: (body: object) => Promise<JsonObject>) => Promise<void>,
    path: string,
  ) {
    const vendor = vendorServer([[reasons('Hm.'), calls('add', { a: 1 })], says('Two.')])
    const config = { apiKey: 'k', fetch: vendor.fetch, retryStrategy: new NoRetry() }
    const handler = gateway({ models: { m: servedModel({ model, config }) } })
    await ask(async (body) => {
      const response = await post(handler, path, { ...body, stream })
      expect(response.status).toBe(200)
      if (!stream) return (await response.json()) as JsonObject
      return { text: await response.text() }
    })
    return vendor.requests[1]!.body
  }

  test.each([false, true])('Claude for a client of Responses, streamed: %s', async (stream) => {
    const tools = [{ type: 'function', name: 'add', parameters: { type: 'object' } }]
    const body = await loop(
      anthropic('claude-sonnet-4-5'),
      stream,
      async (send) => {
        const first = await send({ model: 'm', input: 'Add.', tools })
        const output = stream ? outputOf(String(first['text'])) : (first['output'] as JsonObject[])
        expect(output[0]).toMatchObject({ type: 'reasoning', encrypted_content: expect.any(String) }) // prettier-ignore
        const { call_id } = output.find(({ type }) => type === 'function_call')!
        const result = { type: 'function_call_output', call_id, output: '2' }
        await send({ model: 'm', input: [{ role: 'user', content: 'Add.' }, ...output, result], tools }) // prettier-ignore
      },
      '/v1/responses',
    )
    expect((body['messages'] as JsonObject[])[1]).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: expect.stringMatching(/^anthropic/) },
        { type: 'tool_use' },
      ],
    })
  })

  test('OpenAI for a client of Anthropic', async () => {
    const tools = [{ name: 'add', input_schema: { type: 'object' } }]
    const body = await loop(
      openai('gpt-5'),
      false,
      async (send) => {
        const { content } = await send({ ...base, messages: hi, tools })
        const blocks = content as JsonObject[]
        expect(blocks[0]).toMatchObject({ type: 'thinking', signature: expect.stringMatching(/./) })
        const { id } = blocks.find(({ type }) => type === 'tool_use')!
        const result = { type: 'tool_result', tool_use_id: id, content: '2' }
        await send({
          ...base,
          tools,
          messages: [...hi, { role: 'assistant', content }, { role: 'user', content: [result] }],
        })
      },
      '/v1/messages',
    )
    expect((body['input'] as JsonObject[]).map(({ type }) => type)).toContain('reasoning')
  })

  test('a signature that is not ours, or forged, is only text', async () => {
    const vendor = vendorServer(() => says('ok'), { isStrict: false })
    const config = { apiKey: 'k', fetch: vendor.fetch }
    const m = servedModel({ model: anthropic('claude-sonnet-4-5'), config })
    const handler = gateway({ models: { m } })
    for (const encrypted_content of ['skein1.', 'skein1.e30=', 'skein1.!!', 'gAAAA']) {
      const input = [
        { role: 'user', content: 'Hi' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content },
        { role: 'assistant', content: 'Yes?' },
        { role: 'user', content: 'Go.' },
      ]
      expect((await post(handler, '/v1/responses', { model: 'm', input })).status).toBe(200)
      expect(JSON.stringify(vendor.requests.at(-1)!.body)).not.toContain('thinking')
    }
  })
})

/** The output of a streamed response, from its last event. */
function outputOf(text: string): JsonObject[] {
  const frames = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!) as JsonObject) // prettier-ignore
  const { response } = frames.find(({ type }) => type === 'response.completed')!
  return (response as { output: JsonObject[] }).output
}

test('a client gets a structured answer without invented nulls, whole or streamed', async () => {
  const vendor = vendorServer(() => says('{"a":1,"b":null,"c":null}'))
  const model = servedModel({
    model: openai('gpt-5'),
    config: { apiKey: 'k', fetch: vendor.fetch },
  })
  const handler = gateway({ models: { m: model } })
  const schema = {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'string' }, c: { type: ['string', 'null'] } },
    required: ['a'],
  }
  const body = {
    model: 'm',
    messages: hi,
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  }
  const whole = (await (await post(handler, '/v1/chat/completions', body)).json()) as {
    choices: { message: { content: string } }[]
  }
  expect(whole.choices[0]!.message.content).toBe('{"a":1,"c":null}')
  const text = await (await post(handler, '/v1/chat/completions', { ...body, stream: true })).text()
  const pieces = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => {
    const { choices } = JSON.parse(data!) as { choices: { delta: { content?: string } }[] }
    return choices[0]?.delta.content ?? ''
  })
  expect(pieces.join('')).toBe('{"a":1,"c":null}')
})
