import { describe, expect, test, vi } from 'vitest'
import fc from 'fast-check'
import {
  type AgUiClient,
  type AgUiAgent,
  eventsResponse,
  hasAgUiClient,
  loadAgUiClient,
} from '../../../test/ag-ui-client.ts'
import { arbitraryThread } from '../../../test/arbitrary-thread.ts'
import { opening, response as sampleResponse } from '../../../test/sample-events.ts'
import {
  agentTurn,
  answer,
  call,
  request,
  response,
  text,
  thread as sampleThread,
  userTurn,
} from '../../../test/samples.ts'
import { threadFromEvents } from '../../events/event-to-thread.ts'
import type { ThreadEvent } from '../../events/event.ts'
import { toUIMessages, UIStreamEncoder } from '../ai-sdk/index.ts'
import {
  type AgUiEvent,
  type AgUiMessage,
  AgUiStreamEncoder,
  fromAgUiEvents,
  toAgUiEvents,
  toAgUiMessages,
} from './index.ts'

const client = hasAgUiClient ? await loadAgUiClient() : (undefined as unknown as AgUiClient)

/** Reads events with the real client, which verifies them; several runs may follow each other. */
async function read(events: readonly AgUiEvent[], before: AgUiMessage[] = []): Promise<AgUiAgent> {
  const agent = new client.HttpAgent({
    url: 'http://localhost/',
    initialMessages: before,
    fetch: () => Promise.resolve(eventsResponse(events)),
  })
  await agent.runAgent()
  return agent
}

function encode(events: readonly ThreadEvent[], messages: AgUiMessage[] = []): AgUiEvent[] {
  const chunks = new UIStreamEncoder()
  const run = new AgUiStreamEncoder({ threadId: 't', runId: 'r', messages })
  return [
    ...run.start(),
    ...events.flatMap((event) => chunks.push(event)).flatMap((chunk) => run.push(chunk)),
    ...chunks.end().flatMap((chunk) => run.push(chunk)),
  ]
}

const said = ({ content, toolCalls }: AgUiMessage) => ({ content, toolCalls })

describe.runIf(hasAgUiClient)('the real @ag-ui/client 1.0.0', () => {
  test('reads every stored thread, without a warning', async () => {
    const warned = vi.spyOn(console, 'warn')
    await fc.assert(
      fc.asyncProperty(arbitraryThread, async (thread) => {
        const { value } = toAgUiEvents(thread)
        if (value.length === 0) return
        const { messages } = await read(value)
        const asked = thread.turns.filter(({ turn_type }) => turn_type === 'user')
        expect(messages.filter(({ role }) => role === 'user')).toHaveLength(asked.length)
      }),
      { seed: 14, numRuns: 40 },
    )
    expect(warned).not.toHaveBeenCalled()
    warned.mockRestore()
  })

  test('shows parallel calls of a stored thread as one message with its text', async () => {
    const thread = sampleThread([
      userTurn('go'),
      agentTurn('ada', [
        response('ada', 1, text('I look.'), call('a'), call('b'), call('c')),
        request('ada', 2, answer('a'), answer('b'), answer('c')),
        response('ada', 3, call('d')),
        request('ada', 4, answer('d')),
        response('ada', 5, text('Done.')),
      ]),
    ])
    const { messages } = await read(toAgUiEvents(thread).value)
    const roles = ['user', 'assistant', 'tool', 'tool', 'tool', 'assistant', 'tool', 'assistant']
    expect(messages.map(({ role }) => role)).toEqual(roles)
    expect(messages[1]).toMatchObject({ content: 'I look.', toolCalls: [{}, {}, {}] })
  })

  test('reads the live stream, and ends with the messages of the stored thread', async () => {
    const warned = vi.spyOn(console, 'warn')
    const events = [...opening, ...sampleResponse]
    const stored = toAgUiMessages(toUIMessages(threadFromEvents(events).value)).messages
    const before = stored.filter(({ role }) => role === 'user').slice(0, 1)
    const { messages } = await read(encode(events, [...before]), [...before])
    const own = ({ role }: AgUiMessage) => role === 'assistant' || role === 'reasoning'
    expect(messages.filter(own).map(({ id }) => id)).toEqual(stored.filter(own).map(({ id }) => id))
    expect(messages.filter(own).map(said)).toEqual(stored.filter(own).map(said))
    expect(warned).not.toHaveBeenCalled()
    warned.mockRestore()
  })

  test('reads a live run and the stored thread of it as the same messages', async () => {
    const events = [...opening, ...sampleResponse]
    const thread = threadFromEvents(events).value
    const live = await read(encode(events))
    const stored = await read(toAgUiEvents(thread).value)
    const own = (agent: AgUiAgent) =>
      agent.messages
        .filter(({ role }) => role !== 'user')
        .map(({ id, role, content, toolCalls, toolCallId }) => ({
          id,
          role,
          content,
          toolCallId,
          toolCalls: toolCalls?.map(({ id: call, function: { name, arguments: args } }) => ({
            call,
            name,
            args: JSON.parse(args) as unknown,
          })),
        }))
    expect(own(stored)).toEqual(own(live))
    expect(own(stored).length).toBeGreaterThan(2)
  })

  test('shows both results of a call id that a response uses again', async () => {
    const thread = sampleThread([
      userTurn('go'),
      agentTurn('ada', [
        response('ada', 1, call('a')),
        request('ada', 2, answer('a')),
        response('ada', 3, call('a')),
        request('ada', 4, answer('a')),
        response('ada', 5, text('Done.')),
      ]),
    ])
    const events = toAgUiEvents(thread).value
    const { messages } = await read(events)
    const results = messages.filter(({ role }) => role === 'tool')
    expect(new Set(results.map(({ id }) => id)).size).toBe(2)
    const parts = fromAgUiEvents(events).value.turns.flatMap((turn) =>
      turn.turn_type === 'agent' ? turn.messages.map(({ message_type }) => message_type) : [],
    )
    expect(parts).toEqual(['response', 'request', 'response', 'request', 'response'])
  })

  test('forgets what a failed attempt streamed', async () => {
    const at = '2026-05-01T13:00:00Z'
    const step = { at, turnId: 'f1' }
    const attempt = (words: string): ThreadEvent[] => [
      { ...step, type: 'reasoning_delta', blockId: 'r', text: `${words} thought.` },
      { ...step, type: 'text_delta', blockId: 'b', text: `${words} text.` },
    ]
    const history: AgUiMessage[] = [
      { id: 'u0', role: 'user', content: 'hi' },
      { id: 'a0', role: 'assistant', content: 'hello' },
      { id: 'u1', role: 'user', content: 'go' },
    ]
    const events = encode(
      [
        { ...step, type: 'turn_start', agentId: 'guide/a' },
        { ...step, type: 'step_start', stepId: 's' },
        ...attempt('First'),
        { ...step, type: 'tool_call_delta', toolCallId: 'k', toolName: 'x', argumentsText: '{"' },
        { ...step, type: 'step_reset', stepId: 's' },
        ...attempt('Second'),
        { ...step, type: 'turn_end', outcome: 'completed' },
      ],
      history,
    )
    const { messages } = await read(events, history)
    expect(messages.slice(0, 3)).toEqual(history)
    expect(messages.slice(3).map(({ role, content }) => [role, content])).toEqual([
      ['reasoning', 'Second thought.'],
      ['assistant', 'Second text.'],
    ])
  })

  test('shows the arguments that run, not those that were streamed', async () => {
    const at = '2026-05-01T13:00:00Z'
    const events = encode([
      { type: 'turn_start', at, turnId: 'f1', agentId: 'guide/a' },
      { type: 'step_start', at, turnId: 'f1', stepId: 's' },
      {
        type: 'tool_call_delta',
        at,
        turnId: 'f1',
        toolCallId: 'k',
        toolName: 'pay',
        argumentsText: '{"amount":1}',
      },
      {
        type: 'message_added',
        at,
        turnId: 'f1',
        message: {
          id: 'm',
          type: 'assistant',
          content: [],
          toolCalls: [{ toolCallId: 'k', toolName: 'pay', arguments: { amount: 9 } }],
          timestamp: at,
        },
      },
    ])
    const { messages } = await read(events)
    expect(messages.at(-1)?.toolCalls?.[0]?.function.arguments).toBe('{"amount":9}')
  })
})

describe('reading loses nothing silently', () => {
  const run = (...events: readonly object[]): AgUiEvent[] =>
    [
      { type: 'RUN_STARTED', threadId: 'chat-7', runId: 'r1' },
      ...events,
      { type: 'RUN_FINISHED', threadId: 'chat-7', runId: 'r1' },
    ] as AgUiEvent[]

  test('the input of a run is what the person said; the thread has its id and the usage', () => {
    const [first, ...rest] = run(
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 'a', delta: 'Hello' },
      { type: 'TEXT_MESSAGE_CHUNK', delta: '!' },
    )
    const source = { type: 'url', value: 'https://example.org/a.png' }
    const messages = [
      { id: 'u1', role: 'user', content: 'Hi' },
      {
        id: 'u2',
        role: 'user',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image', source },
        ],
      },
    ]
    const { value, lost } = fromAgUiEvents([
      { ...first, input: { threadId: 'chat-7', runId: 'r1', messages } },
      ...rest.slice(0, -1),
      {
        ...rest.at(-1),
        usage: [{ inputTokens: 3, outputTokens: 1 }, { inputTokens: 4 }],
      },
    ] as AgUiEvent[])
    expect(lost).toEqual([])
    expect(value).toMatchObject({
      thread_id: 'chat-7',
      turns: [
        { turn_type: 'user', turn_id: 'u1', parts: [{ content: 'Hi' }] },
        { parts: [{ content: ['See', { kind: 'image-url', url: source.value }] }] },
        {
          turn_type: 'agent',
          total_usage: { input_tokens: 7, output_tokens: 1 },
          messages: [{ parts: [{ content: 'Hello!' }] }],
        },
      ],
    })
    const named = fromAgUiEvents(run(), { thread: { thread_id: 'mine' } })
    expect(named.value.thread_id).toBe('mine')
  })

  test('reasoning in chunks is thinking', () => {
    const { value, lost } = fromAgUiEvents(
      run(
        { type: 'REASONING_MESSAGE_CHUNK', messageId: 'r', delta: 'I ' },
        { type: 'REASONING_MESSAGE_CHUNK', delta: 'think.' },
      ),
    )
    expect(lost).toEqual([])
    expect(value.turns).toMatchObject([
      { messages: [{ parts: [{ part_kind: 'thinking', content: 'I think.' }] }] },
    ])
  })

  test('every field and event without a place is reported, or kept as an event', () => {
    const events = run(
      { type: 'TEXT_MESSAGE_START', messageId: 'a', metadata: { trace: 1 }, rawEvent: {} },
      { type: 'TEXT_MESSAGE_END', messageId: 'a', subagentRunId: 's' },
      { type: 'TOOL_CALL_CHUNK', delta: 'x' },
      { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'z', role: 'assistant', content: 'never' }] },
      { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } },
    )
    const input = { threadId: 'chat-7', runId: 'r1', messages: [], state: { a: 1 }, context: [{}] }
    events[0] = { ...events[0], input, parentRunId: 'p' } as AgUiEvent
    events[6] = { ...events[6], result: 42 } as AgUiEvent
    const { value, lost } = fromAgUiEvents(events)
    expect(lost.map(({ pointer }) => pointer)).toEqual([
      '/0/parentRunId',
      '/0/input/state',
      '/0/input/context',
      '/1/metadata',
      '/1/rawEvent',
      '/2/subagentRunId',
      '/3',
      '/4/messages/0',
      '/6/result',
    ])
    expect(JSON.stringify(value)).toContain('ag-ui.STATE_SNAPSHOT')
  })

  test('TP-27 system and developer messages are configuration, streamed or in the input', () => {
    const secret = 'You are Fred.'
    for (const role of ['system', 'developer']) {
      const [first, ...rest] = run(
        { type: 'TEXT_MESSAGE_START', messageId: 'c', role },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'c', delta: secret },
        { type: 'TEXT_MESSAGE_END', messageId: 'c' },
      )
      const messages = [{ id: 's', role, content: secret }]
      const input = { threadId: 'chat-7', runId: 'r1', messages }
      const { value, lost } = fromAgUiEvents([{ ...first, input }, ...rest] as AgUiEvent[])
      expect(JSON.stringify(value)).not.toContain(secret)
      expect(lost.map(({ pointer }) => pointer)).toEqual(['/0/input/messages/0', '/3'])
    }
  })

  test('TP-48 the agent that a message names speaks in a turn of its own', () => {
    const { value } = fromAgUiEvents(
      run(
        { type: 'TEXT_MESSAGE_START', messageId: 'a', name: 'ada' },
        { type: 'TEXT_MESSAGE_END', messageId: 'a' },
        { type: 'STEP_STARTED', stepName: 'x' },
        { type: 'TEXT_MESSAGE_CHUNK', messageId: 'b', name: 'bob', delta: 'Hi' },
      ),
      { thread: { agents: { bob: { agent_id: 'bob', agent_name: 'Own', created_at: 'x' } } } },
    )
    expect(value.turns).toMatchObject([
      { agent_id: 'ada', messages: [{ agent_id: 'ada' }] },
      { agent_id: 'bob', messages: [{ agent_id: 'bob' }] },
    ])
    // An entry that the caller has given is kept; the others are added.
    expect(value.agents).toMatchObject({ ada: { agent_name: 'ada' }, bob: { agent_name: 'Own' } })
  })

  test('TP-36 a thread is as old as its last turn', () => {
    const timestamp = Date.UTC(2026, 0, 1)
    const [first, last] = run() as [AgUiEvent, AgUiEvent]
    const { value } = fromAgUiEvents([
      { ...first, timestamp },
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'Hi', timestamp: timestamp + 1000 },
      { ...last, timestamp: timestamp + 5000 },
    ] as AgUiEvent[])
    expect(value).toMatchObject({
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:05.000Z',
    })
  })

  test('TP-32 an interrupt that only says that a call is open is that open call', () => {
    const events = run({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'pay' })
    const interrupts = [{ id: 'c', reason: 'tool_call', toolCallId: 'c' }]
    events[2] = { ...events[2], outcome: { type: 'interrupt', interrupts } } as AgUiEvent
    expect(fromAgUiEvents(events).value.turns).toMatchObject([
      { messages: [{ message_type: 'response', parts: [{ tool_call_id: 'c' }] }] },
    ])
  })

  test('an interrupt that says more than its open call is kept', () => {
    const interrupt = { id: 'p1', reason: 'tool_call', toolCallId: 'c', message: 'Pay 5?' }
    const events = run({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'pay' })
    const outcome = { type: 'interrupt', interrupts: [interrupt] }
    events[2] = { ...events[2], outcome } as AgUiEvent
    expect(JSON.stringify(fromAgUiEvents(events).value)).toContain('Pay 5?')
  })
})
