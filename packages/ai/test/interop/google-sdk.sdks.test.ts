/** The official `@google/genai` as a client of the vendor server. */
import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai'
import {
  calls,
  emits,
  fails,
  reasons,
  says,
  startVendorServer,
  stops,
  type RunningVendorServer,
} from '@skein/ai/testing'
import { expect, test } from 'vitest'

const clientOf = (server: RunningVendorServer): GoogleGenAI =>
  new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: server.url } })

const model = 'gemini-3-pro'
const tools = [
  {
    functionDeclarations: [
      {
        name: 'add',
        description: 'Adds.',
        parameters: {
          type: Type.OBJECT,
          properties: { a: { type: Type.NUMBER }, b: { type: Type.NUMBER } },
        },
      },
    ],
  },
]

test('an answer with usage, a system prompt and structured output', async () => {
  await using server = await startVendorServer([[reasons('Hm.'), says('{"city":"Ghent"}')]])
  const answer = await clientOf(server).models.generateContent({
    model,
    contents: 'A city',
    config: {
      systemInstruction: 'Be brief.',
      temperature: 0,
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  })
  expect(JSON.parse(answer.text ?? '')).toEqual({ city: 'Ghent' })
  expect(answer.candidates?.[0]?.finishReason).toBe('STOP')
  expect(answer.usageMetadata?.totalTokenCount).toBeGreaterThan(0)
  const [request] = server.model.requests
  expect(request).toMatchObject({
    system: 'Be brief.',
    params: { generationConfig: { temperature: 0 } },
  })
  expect(request?.structure).toMatchObject({ properties: { city: { type: 'string' } } })
})

test('a stream', async () => {
  await using server = await startVendorServer([says('one two three')])
  const texts: string[] = []
  const stream = await clientOf(server).models.generateContentStream({ model, contents: 'Hi' })
  for await (const chunk of stream) if (chunk.text) texts.push(chunk.text)
  expect(texts).toEqual(['one', ' two', ' three'])
})

test('a tool round with the content sent back, signatures included', async () => {
  await using server = await startVendorServer([
    [calls('add', { a: 1, b: 2 }), calls('add', { a: 3, b: 4 })],
    says('3 and 7.'),
  ])
  const { models } = clientOf(server)
  const config = {
    tools,
    toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
  }
  const ask = { role: 'user', parts: [{ text: '1+2, 3+4?' }] }
  const first = await models.generateContent({ model, contents: [ask], config })
  expect(first.functionCalls).toMatchObject([
    { name: 'add', args: { a: 1, b: 2 } },
    { name: 'add', args: { a: 3, b: 4 } },
  ])
  const content = first.candidates![0]!.content!
  expect(content.parts?.[0]?.thoughtSignature).toBeTruthy()
  const answers = {
    role: 'user',
    parts: first.functionCalls!.map((call) => ({
      functionResponse: { name: call.name!, id: call.id!, response: { output: 3 } },
    })),
  }
  const second = await models.generateContent({ model, contents: [ask, content, answers], config })
  expect(second.text).toBe('3 and 7.')
})

test('a chat keeps its own history', async () => {
  await using server = await startVendorServer([says('Hello.'), says('Again.')])
  const chat = clientOf(server).chats.create({ model })
  await chat.sendMessage({ message: 'Hi' })
  expect((await chat.sendMessage({ message: 'And?' })).text).toBe('Again.')
  expect(server.model.requests[1]?.messages).toHaveLength(3)
})

test('embeddings', async () => {
  await using server = await startVendorServer([])
  const answer = await clientOf(server).models.embedContent({
    model: 'gemini-embedding-001',
    contents: ['one', 'two'],
    config: { outputDimensionality: 5 },
  })
  expect(answer.embeddings?.map(({ values }) => values?.length)).toEqual([5, 5])
})

test('images come as parts', async () => {
  const data = new Uint8Array([137, 80, 78, 71])
  await using server = await startVendorServer([
    emits(
      { type: 'content_block_start', index: 0, delta: { block: 'image' } },
      { type: 'image_delta', index: 0, delta: { data, mimeType: 'image/png' } },
      { type: 'content_block_stop', index: 0, delta: {} },
    ),
  ])
  const answer = await clientOf(server).models.generateContent({
    model: 'gemini-3-pro-image',
    contents: 'A thread',
    config: { responseModalities: ['TEXT', 'IMAGE'] },
  })
  const { inlineData } = answer.candidates?.[0]?.content?.parts?.[0] ?? {}
  expect(inlineData).toMatchObject({ mimeType: 'image/png', data: 'iVBORw==' })
})

test('errors and limits', async () => {
  await using server = await startVendorServer([
    fails({ code: 'RATE_LIMITED', message: 'Slow down.', statusCode: 429 }),
    [says('cut'), stops('max_tokens')],
  ])
  const { models } = clientOf(server)
  const error = await models
    .generateContent({ model, contents: 'Hi' })
    .catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ status: 429 })
  expect(String(error)).toContain('RESOURCE_EXHAUSTED')
  const cut = await models.generateContent({ model, contents: 'Hi' })
  expect(cut.candidates?.[0]?.finishReason).toBe('MAX_TOKENS')
})

// The same SDK with Interactions, stateless: the client keeps the steps.

const functionTool = {
  type: 'function' as const,
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

test('Interactions: an answer with usage, a system prompt and structured output', async () => {
  await using server = await startVendorServer([[reasons('Hm.'), says('{"city":"Ghent"}')]])
  const answer = await clientOf(server).interactions.create({
    model,
    input: 'A city',
    store: false,
    system_instruction: 'Be brief.',
    generation_config: { temperature: 0, thinking_summaries: 'auto' },
    response_format: {
      type: 'text',
      mime_type: 'application/json',
      schema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  })
  expect(JSON.parse(answer.output_text ?? '')).toEqual({ city: 'Ghent' })
  expect(answer.status).toBe('completed')
  expect(answer.steps?.map(({ type }) => type)).toEqual(['thought', 'model_output'])
  expect(answer.usage?.total_tokens).toBeGreaterThan(0)
  const [request] = server.model.requests
  expect(request).toMatchObject({
    system: 'Be brief.',
    params: { store: false, generation_config: { temperature: 0 } },
  })
  expect(request?.structure).toMatchObject({ properties: { city: { type: 'string' } } })
})

test('Interactions: a stream, event by event', async () => {
  await using server = await startVendorServer([
    [reasons('Hm.'), says('one two three'), calls('add', { a: 1, b: 2 })],
  ])
  const stream = await clientOf(server).interactions.create({ model, input: 'Hi', stream: true })
  const types: string[] = []
  let text = ''
  let args = ''
  for await (const event of stream) {
    types.push(event.event_type)
    if (event.event_type !== 'step.delta') continue
    if (event.delta.type === 'text') text += event.delta.text
    if (event.delta.type === 'arguments_delta') args += event.delta.arguments ?? ''
  }
  expect(text).toBe('one two three')
  expect(JSON.parse(args)).toEqual({ a: 1, b: 2 })
  expect(types[0]).toBe('interaction.created')
  expect(types.at(-1)).toBe('interaction.completed')
  expect(types.filter((type) => type === 'step.start')).toHaveLength(3)
  expect(types.filter((type) => type === 'step.stop')).toHaveLength(3)
})

test('Interactions: a tool round with the steps sent back, signatures included', async () => {
  await using server = await startVendorServer([
    [reasons('Two sums.'), calls('add', { a: 1, b: 2 }), calls('add', { a: 3, b: 4 })],
    says('3 and 7.'),
  ])
  const { interactions } = clientOf(server)
  const ask = { type: 'user_input' as const, content: [{ type: 'text' as const, text: '1+2?' }] }
  const options = { model, store: false, tools: [functionTool] }
  const first = await interactions.create({ ...options, input: [ask] })
  expect(first.status).toBe('requires_action')
  const steps = first.steps ?? []
  expect(steps[0]).toMatchObject({ type: 'thought', signature: expect.any(String) })
  const results = steps.flatMap((step) =>
    step.type === 'function_call'
      ? [{ type: 'function_result' as const, call_id: step.id, name: step.name, result: '3' }]
      : [],
  )
  expect(results).toHaveLength(2)
  const second = await interactions.create({ ...options, input: [ask, ...steps, ...results] })
  expect(second.output_text).toBe('3 and 7.')
})

test('Interactions: errors before and inside of a stream', async () => {
  await using server = await startVendorServer([
    fails({ code: 'INVALID_REQUEST', message: 'Bad field.' }),
    [says('one'), fails({ code: 'PROVIDER_ERROR', message: 'Overloaded.' })],
  ])
  const { interactions } = clientOf(server)
  await expect(interactions.create({ model, input: 'Hi' })).rejects.toThrow(/Bad field/)
  const stream = await interactions.create({ model, input: 'Hi', stream: true })
  const events = []
  for await (const event of stream) events.push(event)
  expect(events.at(-1)).toMatchObject({ event_type: 'error', error: { message: 'Overloaded.' } })
})
