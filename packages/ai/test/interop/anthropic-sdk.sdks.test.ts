/** The official `@anthropic-ai/sdk` as a client of the vendor server and of the gateway. */
import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
} from '@anthropic-ai/sdk'
import { gateway } from '@skein/ai/gateway'
import {
  calls,
  fails,
  reasons,
  says,
  scripted,
  startVendorServer,
  stops,
  type ScriptStep,
} from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { serveFetch } from '../gateway/serve-fetch.ts'

interface Served {
  readonly client: Anthropic
  [Symbol.asyncDispose](): Promise<void>
}

const clientOf = (baseURL: string, apiKey = 'sk-test'): Anthropic =>
  new Anthropic({ apiKey, baseURL, maxRetries: 0 })

const servers: Readonly<Record<string, (steps: readonly ScriptStep[]) => Promise<Served>>> = {
  async 'vendor server'(steps) {
    const server = await startVendorServer(steps)
    return { client: clientOf(server.url), [Symbol.asyncDispose]: () => server.close() }
  },
  async gateway(steps) {
    const server = await serveFetch(gateway({ models: { claude: scripted(steps) } }))
    return {
      client: clientOf(server.url),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
}

const base = { model: 'claude', max_tokens: 100 }
const hi = [{ role: 'user' as const, content: 'Hi' }]
const tools: Anthropic.Tool[] = [
  {
    name: 'add',
    description: 'Adds.',
    input_schema: {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
    },
  },
]

describe.each(Object.entries(servers))('%s', (kind, serve) => {
  test('an answer with usage and a system prompt', async () => {
    await using served = await serve([says('Hello, world!')])
    const message = await served.client.messages.create({
      ...base,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: hi,
    })
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Hello, world!' }],
      stop_reason: 'end_turn',
    })
    expect(message.usage.output_tokens).toBeGreaterThan(0)
  })

  test('a stream with thinking, text and a call, read by the SDK’s own accumulator', async () => {
    await using served = await serve([
      [reasons('Let me add.'), says('I add.'), calls('add', { a: 1, b: 2 })],
    ])
    const stream = served.client.messages.stream({ ...base, messages: hi, tools })
    const texts: string[] = []
    const thoughts: string[] = []
    stream.on('text', (delta) => texts.push(delta))
    stream.on('thinking', (delta) => thoughts.push(delta))
    const final = await stream.finalMessage()
    expect(thoughts.join('')).toBe('Let me add.')
    expect(texts.join('')).toBe('I add.')
    expect(final.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use'])
    expect(final.content[2]).toMatchObject({ name: 'add', input: { a: 1, b: 2 } })
    expect(final.stop_reason).toBe('tool_use')
    if (kind === 'vendor server')
      expect(final.content[0]).toMatchObject({ signature: expect.stringMatching(/./) })
  })

  test('a tool round with the content sent back', async () => {
    await using served = await serve([
      [says('I add.'), calls('add', { a: 1, b: 2 }), calls('add', { a: 3, b: 4 })],
      says('3 and 7.'),
    ])
    const first = await served.client.messages.create({ ...base, messages: hi, tools })
    const results = first.content.flatMap((block) =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: '3' }]
        : [],
    )
    expect(results).toHaveLength(2)
    const second = await served.client.messages.create({
      ...base,
      tools,
      messages: [
        ...hi,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [...results, { type: 'text', text: 'So?' }] },
      ],
    })
    expect(second.content).toMatchObject([{ type: 'text', text: '3 and 7.' }])
  })

  test('structured output', async () => {
    await using served = await serve([says('{"city":"Ghent"}')])
    const message = await served.client.messages.create({
      ...base,
      messages: hi,
      output_config: {
        format: {
          type: 'json_schema',
          schema: {
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: false,
          },
        },
      },
    })
    const [block] = message.content
    expect(JSON.parse(block?.type === 'text' ? block.text : '')).toEqual({ city: 'Ghent' })
  })

  test('stop reasons', async () => {
    await using served = await serve([
      [says('cut'), stops('max_tokens')],
      [says('no'), stops('refusal')],
    ])
    const ask = (): Promise<Anthropic.Message> =>
      served.client.messages.create({ ...base, messages: hi })
    expect((await ask()).stop_reason).toBe('max_tokens')
    expect((await ask()).stop_reason).toBe('refusal')
  })

  test('errors are the SDK’s own', async () => {
    await using served = await serve([
      fails({ code: 'RATE_LIMITED', message: 'Slow down.' }),
      fails({ code: 'PROVIDER_ERROR', message: 'Too busy.', statusCode: 529 }),
      [says('part'), fails({ code: 'PROVIDER_ERROR', message: 'Broken.' })],
    ])
    const ask = (): Promise<unknown> => served.client.messages.create({ ...base, messages: hi })
    await expect(ask()).rejects.toThrow(RateLimitError)
    await expect(ask()).rejects.toMatchObject({ status: 529, type: 'overloaded_error' })
    const stream = served.client.messages.stream({ ...base, messages: hi })
    await expect(stream.finalMessage()).rejects.toThrow(APIError)
    await expect(
      served.client.messages.create({ ...base, messages: [{ role: 'user', content: 7 as never }] }),
    ).rejects.toThrow(BadRequestError)
  })
})

test('gateway: unknown keys and models are told in Anthropic’s words; models are listed', async () => {
  const handler = gateway({
    models: { claude: scripted([says('Hi')]), other: scripted([]) },
    keys: [{ key: 'sk-client', name: 'client', models: ['claude'] }],
  })
  await using server = await serveFetch(handler)
  const ask = (key: string, model: string): Promise<Anthropic.Message> =>
    clientOf(server.url, key).messages.create({ ...base, model, messages: hi })
  await expect(ask('sk-other', 'claude')).rejects.toThrow(AuthenticationError)
  await expect(ask('sk-client', 'other')).rejects.toThrow(NotFoundError)
  expect((await ask('sk-client', 'claude')).content).toMatchObject([{ text: 'Hi' }])
  const models: string[] = []
  for await (const model of clientOf(server.url, 'sk-client').models.list()) models.push(model.id)
  expect(models).toEqual(['claude'])
})
