import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AssistantMessage,
  type LLMRequest,
  type Message,
  messageToJSON,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { calls, checkTranscript, says, scripted } from '@skein/ai/testing'
import { anthropicMessages, chatDialect, openaiChat } from '@skein/ai/wires'
import { isPlainObject, type JsonValue, manualClock } from '@skein/base'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  defineHook,
  definePrompt,
  defineTool,
  type HookDefinition,
  type RuntimeEvent,
} from '../index.ts'
import type { HookName } from '../definitions/hooks.ts'
import { manualTimers } from '../testing/simulation.ts'
import { repairedMessages } from '../model/repaired-messages.ts'
import type { StoredMessage } from '../contract/thread-state.ts'

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  risk: 'read_only',
  args: z.looseObject({}),
  execute: () => ({ seen: 1 }),
})
const broken = defineTool({
  name: 'broken',
  description: 'Breaks.',
  risk: 'read_only',
  args: z.looseObject({}),
  execute: () => {
    throw new Error('out of order')
  },
})
/** Writes to the conversation, so that the hooks of stored and changed messages run. */
const write = defineTool({
  name: 'write',
  description: 'Writes.',
  risk: 'write_low_risk',
  args: z.looseObject({}),
  execute: (state) => {
    const [first] = state.getMessages()
    state.injectMessage({ content: 'an aside' })
    if (first) state.updateMessage(first.id, 'changed')
  },
})

const wireTarget = { provider: 'test', modelId: 'm' }

/** What strict vendors would say of a request. */
function issuesOf(request: LLMRequest): string[] {
  if (request.messages.length === 0) return ['nothing was asked']
  const options = { ...wireTarget, dialect: { maxTokens: 99 } }
  const anthropic = anthropicMessages.encodeRequest(request, options, 'stream')
  const openai = openaiChat.encodeRequest(
    request,
    { ...wireTarget, dialect: chatDialect },
    'stream',
  )
  const read = (text: string) => JSON.parse(text) as JsonValue
  return [
    ...checkTranscript('anthropic-messages', read(anthropic.body)),
    ...checkTranscript('openai-chat', read(openai.body)),
  ].map(({ rule, message }) => `${rule}: ${message}`)
}

interface Played {
  readonly requests: readonly LLMRequest[]
  readonly events: readonly RuntimeEvent[]
  readonly errors: readonly { readonly code?: string; readonly message: string }[]
  readonly end: Extract<RuntimeEvent, { type: 'session_end' }> | undefined
}

/** Two messages to an agent that calls tools, with these hooks. */
async function play(hooks: readonly HookDefinition[]): Promise<Played> {
  let asked = 0
  const model = scripted(() =>
    asked++ % 2 === 1
      ? says('Well.')
      : [says('Let me see. '), calls('look', {}), calls('broken', {}), calls('write', {})],
  )
  const tools = [look, broken, write]
  const prompt = definePrompt({ name: 'p', prompt: 'You.', model, tools, hooks })
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const timers = manualTimers(clock)
  const errors: { code?: string; message: string }[] = []
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt, maxSteps: 4 } })],
    clock,
    timers,
    onError: (error) => errors.push(error as Error),
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a', message: 'one' })
  await timers.advance(0)
  await runtime.threads.send(id, 'two')
  await timers.advance(0)
  const events = (await runtime.store.events(id)).map(({ event }) => event)
  await runtime.stop({ graceMs: 0 })
  const end = events.findLast((event) => event.type === 'session_end')
  return { requests: model.requests, events, errors, end }
}

const hookOf = (
  hook: HookName,
  answer: (given: never) => unknown,
  id = 'the-hook',
): HookDefinition =>
  defineHook({
    id,
    hook,
    execute: ((...all: unknown[]) => answer(all.at(-1) as never)) as never,
  }) as HookDefinition

const at = { id: 'x', timestamp: new Date(0) }
const twice = [1, 2].map(() => ({ toolCallId: 'c', toolName: 'look', arguments: {} }))

const wrong: readonly (readonly [HookName, string, (given: never) => unknown])[] = [
  ['after_system_message', 'a number', () => 42],
  ['after_system_message', 'an object', () => ({})],
  ['filter_messages', 'null', () => null],
  ['filter_messages', 'a text', () => 'all'],
  ['filter_messages', 'a list of texts', () => ['all']],
  ['filter_messages', 'a message without id', () => [{ message: new UserMessage('x', at) }]],
  ['filter_messages', 'no message', (given: StoredMessage[]) => [{ ...given[0], message: 7 }]],
  ['prefilter_llm_history', 'a number', () => 42],
  ['prefilter_llm_history', 'null', () => null],
  ['prefilter_llm_history', 'null within', (given: Message[]) => [...given, null]],
  ['prefilter_llm_history', 'another type', () => [{ type: 'system', content: [] }]],
  [
    'prefilter_llm_history',
    'a call without id',
    () => [new AssistantMessage('x', [{ toolName: 'look' } as never], at)],
  ],
  [
    'prefilter_llm_history',
    'a result that is not JSON',
    () => [new ToolResultMessage([{ toolCallId: 'c', toolName: 'look', result: 1n as never }], at)],
  ],
  ['before_create_message', 'a text', () => 'x'],
  ['before_create_message', 'no message', () => ({})],
  [
    'before_create_message',
    'another type',
    ({ message }: StoredMessage) => ({
      message: message.type === 'user' ? new AssistantMessage('x') : new UserMessage('x'),
    }),
  ],
  [
    'before_create_message',
    'two calls with one id',
    ({ message }: StoredMessage) =>
      message.type === 'user' ? undefined : { message: new AssistantMessage('x', twice, at) },
  ],
  ['before_update_message', 'a text', () => 'x'],
  ['before_update_message', 'another type', () => new AssistantMessage('x', undefined, at)],
  ['before_store_tool_result', 'null', () => null],
  ['before_store_tool_result', 'a text', () => 'fine'],
  ['before_store_tool_result', 'no isError', () => ({ result: 'fine' })],
  ['after_tool_call_success', 'a text', () => 'fine'],
  ['after_tool_call_success', 'a cycle', cyclic],
  ['after_tool_call_success', 'a function', () => ({ result: () => 1, isError: false })],
  ['after_tool_call_failure', 'a list', () => []],
]

function cyclic(): unknown {
  const result: Record<string, unknown> = {}
  result['self'] = result
  return { result, isError: false }
}

describe('an answer of the wrong shape', () => {
  test.each(wrong)('of %s (%s) is passed over, and named', async (hook, _, answer) => {
    const changing = defineHook({
      id: 'the-hook',
      hook,
      execute: ((...all: unknown[]) => {
        const [state] = all as [{ setValue(key: string, value: unknown): void }]
        const given = answer(all.at(-1) as never)
        if (given !== undefined) state.setValue('touched', true)
        return given
      }) as never,
    }) as HookDefinition
    const [without, played] = [await play([]), await play([changing])]
    const raised = played.events.filter((event) => event.type === 'error_raised')
    expect(raised.length).toBeGreaterThan(0)
    for (const event of raised) expect(event).toMatchObject({ code: 'HOOK_ANSWER' })
    expect(raised[0]?.message).toContain('"the-hook"')
    expect(raised[0]?.message).toContain(hook)
    expect(played.errors.length).toBe(raised.length)
    for (const error of played.errors) expect(error).toMatchObject({ code: 'HOOK_ANSWER' })
    // Nothing else is different: not what models were sent, not how it ended, nor what the hook changed.
    const sent = ({ requests }: Played) =>
      requests.map(({ system, messages }) => [system, messages.map(wordsOf)])
    expect(sent(played)).toEqual(sent(without))
    expect(played.end).toMatchObject({ outcome: 'completed' })
    expect(played.events.some(({ type }) => type === 'value_set')).toBe(false)
  })
})

/** What a message says, without ids and times. */
function wordsOf(message: Message): unknown {
  if (message.type === 'tool_result') return message.results.map(({ result }) => result)
  const called = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  return [message.type, message.text, called.map(({ toolName }) => toolName)]
}

describe('a request after the hooks', () => {
  test('that has lost the line with the calls loses their results too', async () => {
    const drop = (given: Message[]) => given.filter(({ type }) => type !== 'assistant')
    const { requests, errors, end } = await play([hookOf('prefilter_llm_history', drop)])
    expect(requests.flatMap(issuesOf)).toEqual([])
    for (const { messages } of requests)
      expect(messages.some(({ type }) => type === 'tool_result')).toBe(false)
    expect({ errors, outcome: end?.outcome }).toEqual({ errors: [], outcome: 'completed' })
  })

  test('that has lost the results keeps the words, without the calls', async () => {
    const drop = (given: Message[]) => given.filter(({ type }) => type !== 'tool_result')
    const { requests, errors } = await play([hookOf('prefilter_llm_history', drop)])
    expect(requests.flatMap(issuesOf)).toEqual([])
    expect(errors).toEqual([])
    expect(requests.at(-1)?.messages.map(({ text }) => text)).toContain('Let me see. ')
  })

  test.each(['prefilter_llm_history', 'filter_messages'] as const)(
    'that is empty is refused before it is sent, and the hook is named (%s)',
    async (hook) => {
      const { requests, end, events, errors } = await play([hookOf(hook, () => [])])
      expect(requests).toEqual([])
      expect(end).toMatchObject({ outcome: 'failed', reason: 'hook_answer' })
      expect(end?.message).toContain('"the-hook"')
      expect(errors[0]).toMatchObject({ code: 'HOOK_ANSWER' })
      expect(events.some(({ type }) => type === 'model_requested')).toBe(false)
    },
  )

  test('a list that a hook changes in place is not what is sent', async () => {
    const empty = (given: Message[]) => void (given.length = 0)
    const hooks = [hookOf('prefilter_llm_history', empty), hookOf('filter_messages', empty, 'b')]
    const [without, played] = [await play([]), await play(hooks)]
    expect(played.requests.length).toBe(without.requests.length)
    expect(played.end).toMatchObject({ outcome: 'completed' })
  })
})

const value = fc.oneof(
  fc.constantFrom(undefined, null, 0, '', 'x', true, [], {}, () => 1, Symbol.iterator, 1n, NaN),
  fc.string(),
  fc.object(),
)

type Change = (given: unknown) => unknown

/** Ways in which a hook may change a list: also into something that is none. */
const changedList: fc.Arbitrary<Change> = fc.oneof(
  value.map((one) => () => one),
  fc.infiniteStream(fc.nat(9)).map((picks) => (given: unknown) => {
    if (!Array.isArray(given)) return given
    const all = given as unknown[]
    const pick = (): number => picks.next().value as number
    switch (pick()) {
      case 0:
        return all.toReversed()
      case 1:
        return all.filter(() => pick() > 4)
      case 2:
        return [...all, ...all]
      case 3:
        return all.toSorted(() => pick() - 5)
      case 4:
        return all.slice(-1)
      case 5:
        return all.slice(0, -1)
      case 6:
        return all.map((one) => madeUp(one, pick))
      case 7:
        return [...all, madeUp(all[0], pick)]
      case 8:
        return [madeUp(all.at(-1), pick), ...all]
      default:
        return undefined
    }
  }),
)

/** A message in place of another one: the same in another form, or a strange one. */
function madeUp(one: unknown, pick: () => number): unknown {
  if (isPlainObject(one) && 'message' in one)
    return { ...one, message: madeUp(one['message'], pick) }
  const call = { toolCallId: `c${pick()}`, toolName: 'look', arguments: {} }
  switch (pick()) {
    case 0:
      return new UserMessage('')
    case 1:
      return new AssistantMessage('', [call, call])
    case 2:
      return new AssistantMessage('I call.', [call])
    case 3:
      return new ToolResultMessage([{ ...call, result: 'r' }])
    case 4:
      return new ToolResultMessage([])
    case 5:
      return new AssistantMessage('')
    case 6:
      return one instanceof UserMessage ? messageToJSON(one) : one
    case 7:
      return null
    default:
      return one
  }
}

const lists: readonly HookName[] = ['filter_messages', 'prefilter_llm_history']
const others: readonly HookName[] = [
  'after_thread_created',
  'after_system_message',
  'before_create_message',
  'after_create_message',
  'before_update_message',
  'after_update_message',
  'before_store_tool_result',
  'after_tool_call_success',
  'after_tool_call_failure',
  'tool_call_started',
  'tool_call_done',
]

const anyHook: fc.Arbitrary<HookDefinition> = fc.oneof(
  fc.tuple(fc.constantFrom(...lists), changedList).map(([hook, change]) => hookOf(hook, change)),
  fc
    .tuple(fc.constantFrom(...others), value, fc.infiniteStream(fc.nat(9)))
    .map(([hook, answer, picks]) =>
      hookOf(hook, (given: unknown) => {
        const pick = (): number => picks.next().value as number
        if (pick() > 4) return answer
        if (hook === 'before_create_message' || hook === 'before_update_message')
          return madeUp(given, pick)
        return { result: answer, isError: pick() > 4 }
      }),
    ),
)

test('whatever hooks answer, no vendor sees an invalid request and no drain fails', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyHook, { minLength: 1, maxLength: 4 }), async (hooks) => {
      const named = hooks.map((hook, index) => defineHook({ ...hook, id: `hook-${index}` }))
      const { requests, events, errors, end } = await play(named)
      expect(requests.flatMap(issuesOf)).toEqual([])
      expect(errors.filter(({ code }) => code !== 'HOOK_ANSWER')).toEqual([])
      const codes = events.flatMap((event) => (event.type === 'error_raised' ? [event.code] : []))
      expect(codes.filter((code) => code !== 'HOOK_ANSWER' && code !== 'HOOK_FAILED')).toEqual([])
      expect(end).toBeDefined()
    }),
    { numRuns: 100 },
  )
})

test('a request that is right is not touched; what is repaired stays as it is', () => {
  const message = fc.oneof(
    fc.constantFrom('hi', '', ' ').map((text) => new UserMessage(text)),
    fc
      .tuple(fc.constantFrom('', 'So.'), fc.uniqueArray(fc.constantFrom('1', '2', '3')))
      .map(([text, ids]) => {
        const called = ids.map((id) => ({ toolCallId: id, toolName: 'look', arguments: {} }))
        return new AssistantMessage(text, called.length > 0 ? called : undefined)
      }),
    fc.array(fc.constantFrom('1', '2', '3', '4')).map((ids) => {
      const results = ids.map((id) => ({ toolCallId: id, toolName: 'look', result: id }))
      return new ToolResultMessage(results)
    }),
  )
  fc.assert(
    fc.property(fc.array(message), (messages) => {
      const once = repairedMessages(messages)
      expect(repairedMessages(once)).toBe(once)
      if (once.length > 0)
        expect(issuesOf({ messages: once, tools: [], params: {}, config: {} } as never)).toEqual([])
    }),
    { numRuns: 500 },
  )
})
