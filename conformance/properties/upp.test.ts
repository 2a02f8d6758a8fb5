/**
 * Properties of UPP 1.3.1: conversations, tools and models are generated; what a turn holds, what the model is sent
 * and which hooks run is predicted by the slow model below from §5.5, §7, §10.5 and §11, and compared with
 * `generate` and `stream`. Messages go through JSON and back, and spoilt ones are refused.
 *
 * Where the specification leaves a hole, the model reads it so: adjacent texts and blocks become one
 * user message, messages are taken as they are; the messages of a turn begin with its input; at `maxIterations`
 * the turn ends with calls that have no result. The JSON of messages is the package's own form,
 * and what is inside a block is not checked when it is read (§1.6: validation is the application's).
 *
 * With SKEIN_DEEP it tries twenty times as many cases.
 */
import {
  AssistantMessage,
  type InferenceInput,
  llm,
  type Message,
  messageFromJSON,
  messageToJSON,
  type Middleware,
  NoRetry,
  Thread,
  tool,
  ToolResultMessage,
  UPPError,
  UserMessage,
} from '@skein/ai'
import anthropic from '@skein/ai/anthropic'
import openai from '@skein/ai/openai'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedAt, type Json, type Path, runs } from './support.ts'

type ToolName = 'add' | 'throws' | 'denied' | 'unknown'
interface Cycle {
  readonly text: string
  readonly calls: readonly { readonly name: ToolName; readonly n: number }[]
  readonly usage: readonly [number, number, number, number]
}
type Input = { readonly text: string } | { readonly block: string } | { readonly message: string }
interface Plan {
  readonly history: readonly string[]
  readonly inputs: readonly Input[]
  readonly cycles: readonly Cycle[]
  readonly last: Cycle
  readonly maxIterations: number
  readonly names: readonly string[]
}

const word = fc.string({
  unit: fc.constantFrom('a', 'é', '漢', ' ', '"', '\\'),
  minLength: 1,
  maxLength: 6,
})
const tokens = fc.nat({ max: 900 })
const cycle = (callCount: fc.ArrayConstraints): fc.Arbitrary<Cycle> =>
  fc.record({
    text: word,
    calls: fc.array(
      fc.record({
        name: fc.constantFrom<ToolName[]>('add', 'add', 'throws', 'denied', 'unknown'),
        n: fc.nat({ max: 9 }),
      }),
      callCount,
    ),
    usage: fc.tuple(tokens, tokens, tokens, tokens),
  })
const plans: fc.Arbitrary<Plan> = fc.record({
  history: fc.array(word, { maxLength: 3 }),
  inputs: fc.array(
    fc.oneof(fc.record({ text: word }), fc.record({ block: word }), fc.record({ message: word })),
    { minLength: 1, maxLength: 3 },
  ),
  cycles: fc.array(cycle({ minLength: 1, maxLength: 3 }), { maxLength: 4 }),
  last: cycle({ maxLength: 0 }),
  maxIterations: fc.integer({ min: 0, max: 4 }),
  names: fc.uniqueArray(fc.constantFrom('m1', 'm2', 'm3'), { maxLength: 3 }),
})

interface Predicted {
  readonly messages: readonly Json[]
  readonly executions: readonly Json[]
  readonly usage: Json
  readonly cycles: number
  /** How many messages the model was sent, cycle by cycle. */
  readonly sent: readonly number[]
  readonly hooks: readonly string[]
}

const callId = (cycleIndex: number, index: number): string => `call-${cycleIndex}-${index}`

function predict(plan: Plan): Predicted {
  const messages: Json[] = []
  let isOpen = false
  for (const input of plan.inputs) {
    const text = 'text' in input ? input.text : 'block' in input ? input.block : input.message
    if ('message' in input || !isOpen) messages.push({ type: 'user', text: [text] })
    else (messages.at(-1)!['text'] as string[]).push(text)
    isOpen = !('message' in input)
  }
  const inOrder = (hook: string): string[] => plan.names.map((name) => `${hook} ${name}`)
  const hooks = [...inOrder('onStart'), ...inOrder('onRequest')]
  const executions: Json[] = []
  const sent: number[] = []
  const sums = [0, 0, 0, 0]
  const rounds = [...plan.cycles, plan.last]
  let cycles = 0
  for (const [index, round] of rounds.entries()) {
    sent.push(plan.history.length + messages.length)
    cycles++
    for (const [place, count] of round.usage.entries()) sums[place]! += count
    messages.push({
      type: 'assistant',
      text: [round.text],
      calls: round.calls.map(({ name, n }, place) => ({
        toolCallId: callId(index, place),
        toolName: name,
        arguments: { n },
      })),
    })
    if (round.calls.length === 0 || index >= plan.maxIterations) break
    const results = round.calls.map(({ name, n }, place) => ({
      toolCallId: callId(index, place),
      isError: name !== 'add',
      ...(name === 'add' && { result: n + 1 }),
    }))
    messages.push({ type: 'tool_result', results })
    for (const [place, { name, n }] of round.calls.entries())
      executions.push({
        toolName: name,
        toolCallId: callId(index, place),
        arguments: { n },
        isError: name !== 'add',
      })
  }
  hooks.push(...inOrder('onResponse').toReversed(), ...inOrder('onEnd').toReversed())
  const [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens] = sums
  return {
    messages,
    executions,
    usage: { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens },
    cycles,
    sent,
    hooks,
  }
}

/** The same plan with the real core and a scripted model. */
function prepare(plan: Plan) {
  const hooks: string[] = []
  const ran: number[] = []
  const n = { type: 'object', properties: { n: { type: 'integer' } } } as const
  const make = (name: string, run: (args: { n: number }) => unknown, approval?: () => boolean) =>
    tool({
      name,
      description: name,
      parameters: n,
      run: run as never,
      ...(approval && { approval }),
    })
  const tools = [
    make('add', (args) => {
      ran.push(args.n)
      return args.n + 1
    }),
    make('throws', () => {
      throw new Error('It broke.')
    }),
    make(
      'denied',
      () => ran.push(-1),
      () => false,
    ),
  ]
  const middleware = plan.names.map((name): Middleware => {
    const note = (hook: string) => () => void hooks.push(`${hook} ${name}`)
    return {
      name,
      onStart: note('onStart'),
      onRequest: note('onRequest'),
      onResponse: note('onResponse'),
      onEnd: note('onEnd'),
    }
  })
  const script = [...plan.cycles, plan.last].map((round, index) => [
    says(round.text),
    ...round.calls.map(({ name, n }, place) => calls(name, { n }, { id: callId(index, place) })),
    stops(undefined, {
      usage: {
        inputTokens: round.usage[0],
        outputTokens: round.usage[1],
        cacheReadTokens: round.usage[2],
        cacheWriteTokens: round.usage[3],
      },
    }),
  ])
  const model = scripted(script)
  const instance = llm({
    model,
    tools,
    middleware,
    toolStrategy: { maxIterations: plan.maxIterations },
  })
  const history: Message[] = plan.history.map((text, index) =>
    index % 2 === 0 ? new UserMessage(text) : new AssistantMessage(text),
  )
  const inputs = plan.inputs.map((input): InferenceInput =>
    'text' in input
      ? input.text
      : 'block' in input
        ? { type: 'text', text: input.block }
        : new UserMessage(input.message),
  )
  return { instance, model, history, inputs, hooks, ran }
}

function seen(message: Message): Json {
  if (message instanceof ToolResultMessage)
    return {
      type: message.type,
      results: message.results.map(({ toolCallId, isError = false, result }) => ({
        toolCallId,
        isError,
        ...(!isError && { result }),
      })),
    }
  const text = (message as UserMessage | AssistantMessage).content.flatMap((block) =>
    block.type === 'text' ? [block.text] : [],
  )
  if (message.type === 'user') return { type: 'user', text }
  const made = (message.toolCalls ?? []).map(({ toolCallId, toolName, arguments: args }) => ({
    toolCallId,
    toolName,
    arguments: args,
  }))
  return { type: 'assistant', text, calls: made }
}

test('a turn holds what the tool loop of the specification produces, streamed or not', async () => {
  await fc.assert(
    fc.asyncProperty(plans, fc.boolean(), async (plan, isStreamed) => {
      const predicted = predict(plan)
      const { instance, model, history, inputs, hooks, ran } = prepare(plan)
      const before = history.length
      let streamed = ''
      const types: string[] = []
      const ask = async () => {
        if (!isStreamed) return instance.generate(history, ...inputs)
        const stream = instance.stream(history, ...inputs)
        for await (const event of stream) {
          types.push(event.type)
          if (event.type === 'text_delta') streamed += event.delta.text
        }
        return stream.turn
      }
      const turn = await ask()
      expect(turn.messages.map(seen)).toEqual(predicted.messages)
      expect(turn.response).toBe(turn.messages.at(-1))
      expect(turn.cycles).toBe(predicted.cycles)
      expect(turn.usage).toMatchObject(predicted.usage)
      expect(
        turn.toolExecutions.map(({ toolName, toolCallId, arguments: args, isError }) => ({
          toolName,
          toolCallId,
          arguments: args,
          isError,
        })),
      ).toEqual(predicted.executions)
      expect(model.requests.map(({ messages }) => messages.length)).toEqual(predicted.sent)
      expect(hooks).toEqual(predicted.hooks)
      expect(history).toHaveLength(before)
      expect(ran).toHaveLength(
        predicted.executions.filter(({ isError }) => isError === false).length,
      )
      if (isStreamed) {
        const texts = predicted.messages.filter(({ type }) => type === 'assistant')
        expect(streamed).toBe(texts.map(({ text }) => (text as string[])[0]).join(''))
        for (const type of ['message_start', 'message_stop'])
          expect(types.filter((one) => one === type)).toHaveLength(predicted.cycles)
        for (const type of ['tool_execution_start', 'tool_execution_end'])
          expect(types.filter((one) => one === type)).toHaveLength(predicted.executions.length)
      }
    }),
    runs(300),
  )
})

const bytes = fc.uint8Array({ maxLength: 5 })
const metadata = fc.dictionary(
  fc.constantFrom('acme', 'other'),
  fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue({ maxDepth: 1 }), {
    minKeys: 1,
    maxKeys: 2,
  }),
  { maxKeys: 2 },
)
const textBlock = word.map((text) => ({ type: 'text' as const, text }))
const imageBlock = fc
  .oneof(
    fc.constant({ type: 'url' as const, url: 'https://example.com/a.png' }),
    fc.constant({ type: 'base64' as const, data: 'AQID' }),
    bytes.map((data) => ({ type: 'bytes' as const, data })),
  )
  .map((source) => ({ type: 'image' as const, source, mimeType: 'image/png' }))
const media = (type: 'audio' | 'video') =>
  bytes.map((data) => ({ type, data, mimeType: `${type}/x` }))
const documentBlock = word.map((text) => ({
  type: 'document' as const,
  source: { type: 'text' as const, data: text },
  mimeType: 'text/plain',
}))
const messages: fc.Arbitrary<Message> = fc.oneof(
  fc
    .tuple(
      fc.array(
        fc.oneof(
          textBlock,
          imageBlock,
          media('audio'),
          media('video'),
          documentBlock,
          bytes.map((data) => ({ type: 'binary' as const, data, mimeType: 'x/y' })),
        ),
        { minLength: 1, maxLength: 4 },
      ),
      metadata,
    )
    .map(([content, data]) => new UserMessage(content as never, { metadata: data as never })),
  fc
    .tuple(
      fc.array(
        fc.oneof(
          textBlock,
          word.map((text) => ({ type: 'reasoning' as const, text })),
          imageBlock,
          media('audio'),
          media('video'),
        ),
        { minLength: 1, maxLength: 4 },
      ),
      fc.array(
        fc.record({
          toolCallId: fc.uuid(),
          toolName: fc.constant('add'),
          arguments: fc.dictionary(word, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
        }),
        { maxLength: 2 },
      ),
      metadata,
    )
    .map(
      ([content, toolCalls, data]) =>
        new AssistantMessage(content as never, toolCalls as never, { metadata: data as never }),
    ),
  fc
    .array(
      fc.record(
        { toolCallId: fc.uuid(), result: fc.jsonValue({ maxDepth: 2 }), isError: fc.boolean() },
        { requiredKeys: ['toolCallId', 'result'] },
      ),
      { minLength: 1, maxLength: 2 },
    )
    .map((results) => new ToolResultMessage(results)),
)

test('messages and threads survive JSON, with metadata that no one knows; accessors read the blocks', () => {
  fc.assert(
    fc.property(fc.array(messages, { maxLength: 3 }), (list) => {
      const thread = new Thread()
      thread.push(...list)
      const back = Thread.fromJSON(JSON.parse(JSON.stringify(thread)))
      expect(back.id).toBe(thread.id)
      expect(back.messages).toEqual(thread.messages)
      for (const [index, message] of list.entries()) {
        const read = messageFromJSON(JSON.parse(JSON.stringify(messageToJSON(message))))
        expect(read).toEqual(message)
        expect(read).toBeInstanceOf(message.constructor)
        expect(back.messages[index]!.id).toBe(message.id)
        if (message instanceof ToolResultMessage) continue
        const blocks = (message as UserMessage).content
        const of = (type: string): unknown[] => blocks.filter((block) => block.type === type)
        expect(read.text).toBe(
          of('text')
            .map((block) => (block as { text: string }).text)
            .join(''),
        )
        expect([read.images, read.documents, read.audio, read.video]).toEqual(
          ['image', 'document', 'audio', 'video'].map(of),
        )
        if (message instanceof AssistantMessage)
          expect(message.hasToolCalls).toBe((message.toolCalls ?? []).length > 0)
      }
    }),
    runs(200),
  )
})

/** The members that §6 and §7 require, by place, and what is not allowed there. */
function requiredOf(json: Json): { path: Path; key: string }[] {
  const top = ['type', json['type'] === 'tool_result' ? 'results' : 'content'].map((key) => ({
    path: [] as Path,
    key,
  }))
  const blocks = ((json['content'] ?? []) as Json[]).map((_, index) => ({
    path: ['content', index],
    key: 'type',
  }))
  const made = ((json['toolCalls'] ?? []) as Json[]).flatMap((_, index) =>
    ['toolCallId', 'toolName', 'arguments'].map((key) => ({ path: ['toolCalls', index], key })),
  )
  const results = ((json['results'] ?? []) as Json[]).map((_, index) => ({
    path: ['results', index],
    key: 'toolCallId',
  }))
  return [...top, ...blocks, ...made, ...results]
}

test('a spoilt message is refused with INVALID_REQUEST', () => {
  const refused = new Set<string>()
  fc.assert(
    fc.property(
      messages,
      fc.nat(),
      fc.constantFrom('drop', 'retype', 'binary'),
      (message, pick, how) => {
        const json = JSON.parse(JSON.stringify(messageToJSON(message))) as Json
        const places = requiredOf(json)
        const { path, key } = places[pick % places.length]!
        if (how === 'binary' && json['type'] !== 'assistant') return
        // A message of calls alone may come without content.
        if (how === 'drop' && key === 'content') return
        const spoilt =
          how === 'binary'
            ? changedAt(json, [], (place) =>
                (place['content'] as Json[]).push({
                  type: 'binary',
                  data: 'AQID',
                  mimeType: 'x/y',
                }),
              )
            : changedAt(json, path, (place) => {
                if (how === 'drop') delete place[key]
                else place[key] = 7
              })
        const label = how === 'binary' ? 'binary of an assistant' : `${how} ${key}`
        refused.add(label)
        let error: unknown
        try {
          messageFromJSON(spoilt)
        } catch (thrown) {
          error = thrown
        }
        expect(error, `${label} ${JSON.stringify(spoilt)}`).toBeInstanceOf(UPPError)
        expect((error as UPPError).code).toBe('INVALID_REQUEST')
      },
    ),
    runs(600),
  )
  expect(refused.size).toBeGreaterThan(10)
})

test('every HTTP status becomes the error code of the table in §4.4', async () => {
  const vendors = { anthropic: anthropic('claude-x'), openai: openai('gpt-x') }
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom<(keyof typeof vendors)[]>('anthropic', 'openai'),
      fc.oneof(fc.constantFrom(400, 401, 403, 404, 429), fc.integer({ min: 500, max: 599 })),
      fc.constantFrom('', '{}', '<html>busy</html>', '{"error":{"message":"No."}}'),
      async (name, status, body) => {
        const config = {
          apiKey: 'sk-secret-key',
          retryStrategy: new NoRetry(),
          fetch: async () => new Response(body, { status }),
        }
        const error: unknown = await llm({
          model: vendors[name],
          config,
          params: { max_tokens: 9 } as never,
        })
          .generate('Hello')
          .catch((thrown: unknown) => thrown)
        const table: Record<number, string> = {
          400: 'INVALID_REQUEST',
          401: 'AUTHENTICATION_FAILED',
          403: 'AUTHENTICATION_FAILED',
          404: 'MODEL_NOT_FOUND',
          429: 'RATE_LIMITED',
        }
        expect(error).toBeInstanceOf(UPPError)
        expect(error).toMatchObject({
          code: table[status] ?? 'PROVIDER_ERROR',
          provider: name,
          modality: 'llm',
          statusCode: status,
        })
        expect(String(error)).not.toContain('sk-secret-key')
      },
    ),
    runs(150),
  )
})
