import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { manualClock } from '@skein/base'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { serve } from '../../src/index.ts'
import { KEYS, paid, startChatKit, type ChatKit, type Who } from './chat/chat-kit.ts'

let kit: ChatKit
beforeAll(async () => {
  kit = await startChatKit({ http: { prefix: '/api' } })
})
afterAll(() => kit.stop())
beforeEach(() => void paid.splice(0))

const local = (input: unknown, init?: RequestInit): Promise<Response> =>
  kit.http.fetch(new Request(input as string, init))

const openai = (who: Who = 'ada', apiKey: string = KEYS[who].key): OpenAI =>
  new OpenAI({ apiKey, baseURL: 'http://localhost/api/v1', fetch: local, maxRetries: 0 })

const anthropic = (who: Who = 'ada', apiKey: string = KEYS[who].key): Anthropic =>
  new Anthropic({ apiKey, baseURL: 'http://localhost/api', fetch: local, maxRetries: 0 })

const model = 'desk'
const ask = (content: string) => [{ role: 'user' as const, content }]
const weather = {
  name: 'weather',
  description: 'Looks out of the window.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}
const said = (text: string): string => `You said ${text} and that is all there is to say.`

describe('Chat Completions, by the official client', () => {
  test('generate, with the history that was sent', async () => {
    const answer = await openai().chat.completions.create({ model, messages: ask('hello') })
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: said('hello') },
    })
    expect(answer.usage!.completion_tokens).toBeGreaterThan(0)
    const next = await openai().chat.completions.create({
      model,
      messages: [
        { role: 'system', content: 'Be kind.' },
        ...ask('hello'),
        { role: 'assistant', content: said('hello') },
        ...ask('again'),
      ],
    })
    expect(next.choices[0]!.message.content).toBe(said('again'))
    const [thread] = await kit.runtime.threads.list({ tag: 'ephemeral', limit: 1 })
    const texts = (await kit.runtime.threads.messages(thread!.id, { includeSilent: true })).map(
      ({ message }) => message.text,
    )
    expect(texts).toEqual([
      'Instructions of the client:\n\nBe kind.',
      'hello',
      said('hello'),
      'again',
      said('again'),
    ])
  })

  test('stream, word by word, with usage', async () => {
    const stream = await openai().chat.completions.create({
      model,
      messages: ask('hello'),
      stream: true,
      stream_options: { include_usage: true },
    })
    const words: string[] = []
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      const word = chunk.choices[0]?.delta.content
      if (word) words.push(word)
      usage = chunk.usage ?? usage
    }
    expect(words.length).toBeGreaterThan(5)
    expect(words.join('')).toBe(said('hello'))
    expect(usage!.total_tokens).toBeGreaterThan(0)
  })

  test('tools of the agent stay hidden', async () => {
    const answer = await openai().chat.completions.create({ model, messages: ask('note') })
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: 'Let me write that down. That is done. Anything else?' },
    })
    expect(answer.choices[0]!.message.tool_calls).toBeUndefined()
  })

  test.each([false, true])(
    'a tool of the client is called and answered (stream: %s)',
    async (isStream) => {
      const tools = [{ type: 'function' as const, function: weather }]
      const runner = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
        if (!isStream)
          return (await openai().chat.completions.create({ model, messages, tools })).choices[0]!
        const stream = openai().chat.completions.stream({ model, messages, tools })
        return (await stream.finalChatCompletion()).choices[0]!
      }
      const first = await runner(ask('weather in Graz'))
      expect(first.finish_reason).toBe('tool_calls')
      const [call] = first.message.tool_calls!
      expect(call).toMatchObject({ function: { name: 'weather', arguments: '{"city":"Graz"}' } })
      const second = await runner([
        ...ask('weather in Graz'),
        first.message,
        { role: 'tool', tool_call_id: call!.id, content: 'Snow' },
      ])
      expect(second.message.content).toBe('It is: Snow')
      // Sent again, e.g. by a client that did not hear the answer: another run, from what was sent.
      const again = await runner([
        ...ask('weather in Graz'),
        first.message,
        { role: 'tool', tool_call_id: call!.id, content: 'Rain' },
      ])
      expect(again.message.content).toBe(said('Rain'))
    },
  )

  test('a needed approval ends the answer with an error that leads to it', async () => {
    const error = await openai()
      .chat.completions.create({ model, messages: ask('refund') })
      .catch((thrown: unknown) => thrown as InstanceType<typeof OpenAI.APIError>)
    expect(error).toMatchObject({ status: 409, code: 'APPROVAL_REQUIRED' })
    const { approvals } = (
      error as unknown as { error: { approvals: { url: string; thread_id: string }[] } }
    ).error
    const { url, thread_id: threadId } = approvals[0]!
    const approved = await kit.fetch('ada', url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'approve' }),
    })
    expect(approved.status).toBe(204)
    expect((await kit.runtime.threads.settled(threadId)).text).toBe('That is done. Anything else?')
    expect(paid).toEqual([5])
  })

  test('errors: a wrong key, no such model, an empty conversation', async () => {
    const create = (client: OpenAI, messages = ask('x'), name = model) =>
      client.chat.completions.create({ model: name, messages })
    await expect(create(openai('ada', 'key-of-nobody-0123456789'))).rejects.toBeInstanceOf(
      OpenAI.AuthenticationError,
    )
    await expect(create(openai(), ask('x'), 'none')).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(create(openai(), [])).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    await expect(create(openai(), ask('fail'))).rejects.toMatchObject({
      status: 500,
      message: expect.stringContaining('The model is ill.'),
    })
  })

  test('a tool with the name of one of the agent is refused', async () => {
    const tools = [{ type: 'function' as const, function: { ...weather, name: 'refund' } }]
    await expect(
      openai().chat.completions.create({ model, messages: ask('x'), tools }),
    ).rejects.toMatchObject({ status: 400 })
  })
})

test('the call of another tenant is not answered', async () => {
  const tools = [{ type: 'function' as const, function: weather }]
  const messages = ask('weather in Graz')
  const first = await openai('ada').chat.completions.create({ model, messages, tools })
  const { message } = first.choices[0]!
  const [call] = message.tool_calls!
  const result = { role: 'tool' as const, tool_call_id: call!.id, content: 'Fire' }
  const sent = { model, messages: [...messages, message, result], tools }
  const other = await openai('eve').chat.completions.create(sent)
  expect(other.choices[0]!.message.content).toBe(said('Fire')) // a run of its own
  const own = await openai('ada').chat.completions.create({
    ...sent,
    messages: [...messages, message, { ...result, content: 'Snow' }],
  })
  expect(own.choices[0]!.message.content).toBe('It is: Snow')
})

describe('Responses, by the official client', () => {
  test('previous_response_id and conversation go on with one thread', async () => {
    const first = await openai().responses.create({ model, input: 'hello' })
    expect(first.output_text).toBe(said('hello'))
    const second = await openai().responses.create({
      model,
      input: 'again',
      previous_response_id: first.id,
    })
    expect(second.output_text).toBe(said('again'))
    const conversation = second.conversation!.id
    expect(conversation).toBe(first.conversation!.id)
    const third = await openai().responses.create({ model, input: 'and again', conversation })
    const thread = (third.conversation as { id: string }).id
    expect(thread).toBe(conversation)
    const threads = await kit.runtime.threads.list({ tag: 'responses' })
    expect(await kit.runtime.threads.messages(threads[0]!.id)).toHaveLength(6)
  })

  test('going on from an earlier response is done in a copy', async () => {
    const first = await openai().responses.create({ model, input: 'one' })
    const second = await openai().responses.create({
      model,
      input: 'two',
      previous_response_id: first.id,
    })
    const other = await openai().responses.create({
      model,
      input: 'three',
      previous_response_id: first.id,
    })
    expect(other.conversation!.id).not.toBe(second.conversation!.id)
    expect(other.output_text).toBe(said('three'))
  })

  test('stream and client tools', async () => {
    const tools = [{ type: 'function' as const, strict: false, ...weather }]
    const stream = openai().responses.stream({ model, input: 'weather in Graz', tools })
    const first = await stream.finalResponse()
    const [call] = first.output.filter((item) => item.type === 'function_call')
    expect(call).toMatchObject({ name: 'weather', arguments: '{"city":"Graz"}' })
    const second = await openai().responses.create({
      model,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call!.call_id, output: 'Snow' }],
      tools,
    })
    expect(second.output_text).toBe('It is: Snow')
    const output = [{ type: 'function_call_output' as const, call_id: call!.call_id, output: 'x' }]
    await expect(
      openai().responses.create({ model, previous_response_id: second.id, input: output }),
    ).rejects.toMatchObject({ status: 409 })
    const words: string[] = []
    for await (const event of await openai().responses.create({ model, input: 'hi', stream: true }))
      if (event.type === 'response.output_text.delta') words.push(event.delta)
    expect(words.length).toBeGreaterThan(5)
    expect(words.join('')).toBe(said('hi'))
  })

  test('a conversation of another tenant, or of another user, is as one that never was', async () => {
    const first = await openai().responses.create({ model, input: 'hello' })
    for (const who of ['eve', 'bob'] as const) {
      const none = { model, input: 'x', previous_response_id: 'resp_none' }
      const expected = await openai(who)
        .responses.create(none)
        .catch((error: Error) => error)
      expect(expected).toBeInstanceOf(OpenAI.NotFoundError)
      for (const name of [
        { previous_response_id: first.id },
        { conversation: first.conversation!.id },
        { conversation: (await kit.runtime.threads.list({ tag: 'responses' }))[0]!.id },
      ])
        await expect(openai(who).responses.create({ model, input: 'x', ...name })).rejects.toThrow(
          (expected as Error).message,
        )
    }
  })

  test('without store nothing can be gone on with', async () => {
    const answer = await openai().responses.create({ model, input: 'hello', store: false })
    expect(answer.conversation).toBeUndefined()
    expect(answer.output_text).toBe(said('hello'))
  })
})

describe('Messages, by the official client', () => {
  const max_tokens = 1000

  test('generate and stream', async () => {
    const answer = await anthropic().messages.create({ model, max_tokens, messages: ask('hello') })
    expect(answer).toMatchObject({
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: said('hello') }],
    })
    expect(answer.usage.output_tokens).toBeGreaterThan(0)
    const words: string[] = []
    const stream = anthropic().messages.stream({ model, max_tokens, messages: ask('hello') })
    stream.on('text', (word) => words.push(word))
    await stream.finalMessage()
    expect(words.length).toBeGreaterThan(5)
    expect(words.join('')).toBe(said('hello'))
  })

  test('a tool of the client is called and answered', async () => {
    const { name, description, parameters } = weather
    const tools = [{ name, description, input_schema: { ...parameters, type: 'object' as const } }]
    const messages = ask('weather in Graz')
    const first = await anthropic().messages.create({ model, max_tokens, messages, tools })
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')!
    expect(call).toMatchObject({ name: 'weather', input: { city: 'Graz' } })
    const second = await anthropic().messages.create({
      model,
      max_tokens,
      tools,
      messages: [
        ...messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Snow' }],
        },
      ],
    })
    expect(second.content).toMatchObject([{ type: 'text', text: 'It is: Snow' }])
  })

  test('errors: a wrong key, no such model, an approval in a stream', async () => {
    const create = (client: Anthropic, content: string, name = model) =>
      client.messages.create({ model: name, max_tokens, messages: ask(content) })
    await expect(create(anthropic('ada', 'key-of-nobody-0123456789'), 'x')).rejects.toBeInstanceOf(
      Anthropic.AuthenticationError,
    )
    await expect(create(anthropic(), 'x', 'none')).rejects.toBeInstanceOf(Anthropic.NotFoundError)
    const stream = anthropic().messages.stream({ model, max_tokens, messages: ask('refund') })
    await expect(stream.finalMessage()).rejects.toThrow(/A person has to decide first/)
    expect(paid).toEqual([])
  })
})

test('the models are the agents, for both clients', async () => {
  const { data } = await openai().models.list()
  expect(data.map(({ id }) => id).sort()).toEqual(['desk', 'worker'])
  expect((await openai().models.retrieve('desk')).id).toBe('desk')
  expect((await anthropic().models.list()).data.map(({ id }) => id)).toContain('desk')
  await expect(openai().models.retrieve('none')).rejects.toBeInstanceOf(OpenAI.NotFoundError)
})

test('a client that leaves ends the run that was made for it', async () => {
  const abort = new AbortController()
  const stream = await openai().chat.completions.create(
    { model, messages: ask('hang'), stream: true },
    { signal: abort.signal },
  )
  const reader = stream[Symbol.asyncIterator]()
  await reader.next()
  const [thread] = await kit.runtime.threads.list({ tag: 'ephemeral', limit: 1 })
  abort.abort()
  await reader.next().catch(() => undefined)
  expect((await kit.runtime.threads.settled(thread!.id)).outcome).toBe('stopped')
})

test('over a real connection: words come one by one, and closing it ends the run', async () => {
  const serving = await serve(kit.runtime, { port: 0, auth: { keys: Object.values(KEYS) } })
  const client = new OpenAI({ apiKey: KEYS.ada.key, baseURL: `${serving.url}/v1`, maxRetries: 0 })
  const whole = client.chat.completions.stream({ model, messages: ask('hello') })
  expect(await whole.finalContent()).toBe(said('hello'))
  const hanging = await client.chat.completions.create({
    model,
    messages: ask('hang'),
    stream: true,
  })
  for await (const chunk of hanging) if (chunk.choices[0]?.delta.content) break
  const [thread] = await kit.runtime.threads.list({ tag: 'ephemeral', limit: 1 })
  hanging.controller.abort()
  expect((await kit.runtime.threads.settled(thread!.id)).outcome).toBe('stopped')
  await serving.close({ graceMs: 0 })
})

test('threads of one answer are removed after a day of quiet, and nothing else is', async () => {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const other = await startChatKit({ runtime: { clock }, http: { clock } })
  const create = (): Promise<unknown> =>
    new OpenAI({
      apiKey: KEYS.ada.key,
      baseURL: 'http://localhost/v1',
      fetch: (input, init) => other.http.fetch(new Request(input as string, init)),
    }).chat.completions.create({ model, messages: ask('hello') })
  const { id } = await other.runtime.threads.create({ agent: 'desk', tenant: 'acme', owner: 'ada' })
  await create()
  clock.advance(23 * 3_600_000)
  await create()
  expect(await other.runtime.threads.list({ tag: 'ephemeral' })).toHaveLength(2)
  clock.advance(2 * 3_600_000)
  await create()
  expect(await other.runtime.threads.list({ tag: 'ephemeral' })).toHaveLength(2)
  expect((await other.runtime.threads.get(id)).id).toBe(id)
  await other.stop()
})
