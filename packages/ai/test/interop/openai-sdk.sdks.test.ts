/** The official `openai` package as a client of the vendor server and of the gateway. */
import { gateway } from '@skein/ai/gateway'
import {
  calls,
  cuts,
  fails,
  reasons,
  says,
  scripted,
  startVendorServer,
  stops,
  type ScriptStep,
} from '@skein/ai/testing'
import OpenAI, { APIError, AuthenticationError, NotFoundError, RateLimitError } from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { serveFetch } from '../gateway/serve-fetch.ts'

interface Served {
  readonly client: OpenAI
  [Symbol.asyncDispose](): Promise<void>
}

const clientOf = (url: string, apiKey = 'sk-test'): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })

const servers: Readonly<Record<string, (steps: readonly ScriptStep[]) => Promise<Served>>> = {
  async 'vendor server'(steps) {
    const server = await startVendorServer(steps)
    return { client: clientOf(server.url), [Symbol.asyncDispose]: () => server.close() }
  },
  async gateway(steps) {
    const server = await serveFetch(gateway({ models: { 'gpt-5': scripted(steps) } }))
    return {
      client: clientOf(server.url),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
}

const addTool = {
  name: 'add',
  description: 'Adds.',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
}
const model = 'gpt-5'

describe.each(Object.entries(servers))('%s', (_, serve) => {
  test('chat: an answer with usage, a system prompt and a history', async () => {
    await using served = await serve([says('Hello, world!')])
    const answer = await served.client.chat.completions.create({
      model,
      max_completion_tokens: 50,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'user', content: [{ type: 'text', text: 'Again' }] },
      ],
    })
    expect(answer.object).toBe('chat.completion')
    expect(answer.choices[0]?.message).toMatchObject({
      role: 'assistant',
      content: 'Hello, world!',
    })
    expect(answer.choices[0]?.finish_reason).toBe('stop')
    expect(answer.usage?.total_tokens).toBe(
      answer.usage!.prompt_tokens + answer.usage!.completion_tokens,
    )
  })

  test('chat: a stream, read by the SDK’s own accumulator', async () => {
    await using served = await serve([says('one two three')])
    const stream = served.client.chat.completions.stream({
      model,
      messages: [{ role: 'user', content: 'Hi' }],
      stream_options: { include_usage: true },
    })
    const deltas: string[] = []
    stream.on('content', (delta) => deltas.push(delta))
    const final = await stream.finalChatCompletion()
    expect(deltas).toEqual(['one', ' two', ' three'])
    expect(final.choices[0]?.message.content).toBe('one two three')
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(0)
  })

  test('chat: the SDK runs its own tools against us', async () => {
    await using served = await serve([
      [says('I add.'), calls('add', { a: 1, b: 2 }), calls('add', { a: 3, b: 4 })],
      says('3 and 7.'),
    ])
    const runner = served.client.chat.completions.runTools({
      model,
      stream: true,
      messages: [{ role: 'user', content: '1+2, 3+4?' }],
      tools: [
        {
          type: 'function',
          function: {
            ...addTool,
            parse: JSON.parse as (text: string) => { a: number; b: number },
            function: ({ a, b }: { a: number; b: number }) => String(a + b),
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe('3 and 7.')
    const results = runner.messages.flatMap((message) =>
      message.role === 'tool' ? [message.content] : [],
    )
    expect(results).toEqual(['3', '7'])
  })

  test('chat: structured output is parsed by the SDK', async () => {
    await using served = await serve([says('{"city":"Ghent","n":3}')])
    const answer = await served.client.chat.completions.parse({
      model,
      messages: [{ role: 'user', content: 'A city' }],
      response_format: zodResponseFormat(z.object({ city: z.string(), n: z.number() }), 'city'),
    })
    expect(answer.choices[0]?.message.parsed).toEqual({ city: 'Ghent', n: 3 })
  })

  test('responses: an answer with reasoning, and its text', async () => {
    await using served = await serve([[reasons('Hm.'), says('Hello!')]])
    const answer = await served.client.responses.create({
      model,
      input: 'Hi',
      instructions: 'Be brief.',
    })
    expect(answer.output_text).toBe('Hello!')
    expect(answer.status).toBe('completed')
    expect(answer.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
  })

  test('responses: a stream, read by the SDK’s own accumulator', async () => {
    await using served = await serve([
      [reasons('Hm.'), says('one two'), calls('add', { a: 1, b: 2 })],
    ])
    const stream = served.client.responses.stream({
      model,
      input: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', strict: true, ...addTool }],
    })
    const types: string[] = []
    const numbers: number[] = []
    for await (const event of stream) {
      types.push(event.type)
      numbers.push(event.sequence_number)
    }
    const final = await stream.finalResponse()
    expect(types[0]).toBe('response.created')
    expect(types.at(-1)).toBe('response.completed')
    expect(numbers).toEqual(numbers.map((_one, index) => index))
    expect(final.output_text).toBe('one two')
    expect(final.output.at(-1)).toMatchObject({ type: 'function_call', name: 'add' })
  })

  test('responses: a tool round with the items sent back', async () => {
    await using served = await serve([
      [reasons('I add.'), calls('add', { a: 1, b: 2 })],
      says('Three.'),
    ])
    const ask = (input: OpenAI.Responses.ResponseInput): Promise<OpenAI.Responses.Response> =>
      served.client.responses.create({
        model,
        input,
        tools: [{ type: 'function', strict: true, ...addTool }],
      })
    const first = await ask([{ role: 'user', content: '1+2?' }])
    const call = first.output.find((item) => item.type === 'function_call')!
    expect(JSON.parse(call.arguments)).toEqual({ a: 1, b: 2 })
    const second = await ask([
      { role: 'user', content: '1+2?' },
      ...(first.output as OpenAI.Responses.ResponseInput),
      { type: 'function_call_output', call_id: call.call_id, output: '3' },
    ])
    expect(second.output_text).toBe('Three.')
  })

  test('responses: structured output is parsed by the SDK', async () => {
    await using served = await serve([says('{"city":"Ghent"}')])
    const answer = await served.client.responses.parse({
      model,
      input: 'A city',
      text: { format: zodTextFormat(z.object({ city: z.string() }), 'city') },
    })
    expect(answer.output_parsed).toEqual({ city: 'Ghent' })
  })

  test('an answer that hits its limit says so in both APIs', async () => {
    await using served = await serve([
      [says('cut'), stops('max_tokens')],
      [says('cut'), stops('max_tokens')],
    ])
    const chat = await served.client.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    expect(chat.choices[0]?.finish_reason).toBe('length')
    const response = await served.client.responses.create({ model, input: 'Hi' })
    expect(response.status).toBe('incomplete')
    expect(response.incomplete_details).toEqual({ reason: 'max_output_tokens' })
  })

  test('errors are the SDK’s own', async () => {
    await using served = await serve([
      fails({ code: 'RATE_LIMITED', message: 'Slow down.', retryAfterMs: 2000 }),
      [says('part'), fails({ code: 'PROVIDER_ERROR', message: 'Broken.' })],
      [says('part'), fails({ code: 'PROVIDER_ERROR', message: 'Broken.' })],
    ])
    const error = await served.client.chat.completions
      .create({ model, messages: [{ role: 'user', content: 'Hi' }] })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RateLimitError)
    expect((error as RateLimitError).message).toContain('Slow down.')
    expect((error as RateLimitError).headers?.get('retry-after')).toBe('2')
    const broken = async (): Promise<void> => {
      const stream = await served.client.chat.completions.create({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Hi' }],
      })
      for await (const chunk of stream) void chunk
    }
    await expect(broken()).rejects.toThrow(APIError)
    const brokenResponse = async (): Promise<void> => {
      const stream = await served.client.responses.create({ model, stream: true, input: 'Hi' })
      for await (const event of stream) if (event.type === 'error') throw new Error(event.message)
    }
    await expect(brokenResponse()).rejects.toThrow('Broken.')
  })

  test('models are listed', async () => {
    await using served = await serve([])
    const models: string[] = []
    for await (const one of served.client.models.list()) models.push(one.id)
    expect(models).toHaveLength(1)
  })
})

describe('vendor server only', () => {
  test('embeddings, as floats and as the base64 that the SDK asks for by itself', async () => {
    await using server = await startVendorServer([])
    const client = clientOf(server.url)
    const input = ['one', 'two']
    const model = 'text-embedding-3-small'
    const packed = await client.embeddings.create({ model, input, dimensions: 12 })
    const plain = await client.embeddings.create({
      model,
      input,
      dimensions: 12,
      encoding_format: 'float',
    })
    expect(packed.data.map(({ embedding }) => embedding)).toEqual(
      plain.data.map(({ embedding }) => embedding),
    )
    expect(packed.data[0]?.embedding).toHaveLength(12)
    expect(server.requests[0]?.body['encoding_format']).toBe('base64')
  })

  test('images: made, streamed with previews, edited', async () => {
    await using server = await startVendorServer([])
    const { images } = clientOf(server.url)
    const made = await images.generate({ model: 'gpt-image-1', prompt: 'A thread', n: 2 })
    expect(made.data).toHaveLength(2)
    const types: string[] = []
    const stream = await images.generate({
      model: 'gpt-image-1',
      prompt: 'A thread',
      stream: true,
      partial_images: 2,
    })
    for await (const event of stream) types.push(event.type)
    expect(types).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    const file = new File([Buffer.from(made.data![0]!.b64_json!, 'base64')], 'a.png', {
      type: 'image/png',
    })
    const edited = await images.edit({ model: 'gpt-image-1', image: file, prompt: 'Red' })
    expect(edited.data?.[0]?.b64_json).toBe(made.data?.[0]?.b64_json)
  })

  test('faults: the SDK retries after 429 and gives up on a cut stream', async () => {
    await using server = await startVendorServer([says('Hello'), [says('a b'), cuts()]], {
      faults: [{ kind: 'error', code: 'RATE_LIMITED', headers: { 'retry-after-ms': '5' } }],
    })
    const client = new OpenAI({ apiKey: 'k', baseURL: `${server.url}/v1`, maxRetries: 1 })
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    const answer = await client.chat.completions.create({ model, messages })
    expect(answer.choices[0]?.message.content).toBe('Hello')
    expect(server.requests).toHaveLength(2)
    await expect(
      client.chat.completions.stream({ model, messages }).finalChatCompletion(),
    ).rejects.toThrow()
  })
})

describe('gateway only', () => {
  test('unknown keys and models are told in OpenAI’s words', async () => {
    const handler = gateway({
      models: { 'gpt-5': scripted([says('Hi')]) },
      keys: [{ key: 'sk-client', name: 'client' }],
    })
    await using server = await serveFetch(handler)
    const ask = (key: string, name: string): Promise<unknown> =>
      clientOf(server.url, key).responses.create({ model: name, input: 'Hi' })
    await expect(ask('sk-other', 'gpt-5')).rejects.toThrow(AuthenticationError)
    await expect(ask('sk-client', 'gpt-6')).rejects.toThrow(NotFoundError)
    expect(await ask('sk-client', 'gpt-5')).toMatchObject({ output_text: 'Hi' })
  })
})
