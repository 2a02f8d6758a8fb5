/** A conversation as events, with everything a thread can do; written for tests. */
import type { JsonObject } from '@skein/base'
import type { ThreadEvent } from '../src/events/event.ts'

let second = 0
const at = (): string => new Date(Date.UTC(2026, 4, 1, 12, 0, second++)).toISOString()

type Timeless<E> = E extends ThreadEvent ? Omit<E, 'at'> : never

function events(...list: Timeless<ThreadEvent>[]): ThreadEvent[] {
  return list.map((event) => ({ ...event, at: at() }) as ThreadEvent)
}

const user = (id: string, text: string) =>
  ({
    id,
    type: 'user',
    content: [{ type: 'text', text }],
    timestamp: '2026-05-01T12:00:00Z',
  }) as const

const says = (
  id: string,
  text: string,
  calls: { toolCallId: string; toolName: string; arguments: JsonObject }[] = [],
) =>
  ({
    id,
    type: 'assistant',
    content: [
      { type: 'reasoning', text: `Thinking about ${text}` },
      { type: 'text', text },
    ],
    toolCalls: calls,
    timestamp: '2026-05-01T12:00:00Z',
  }) as const

/** Before the assistant speaks. */
export const opening: readonly ThreadEvent[] = events(
  { type: 'thread_created', threadId: 'thread-1', title: 'Weather', metadata: { team: 'north' } },
  {
    type: 'agent_registered',
    agent: { agent_id: 'guide/a', agent_name: 'Guide', created_at: '2026-05-01T12:00:00Z' },
  },
  {
    type: 'agent_registered',
    agent: { agent_id: 'clerk/a', agent_name: 'Clerk', created_at: '2026-05-01T12:00:00Z' },
  },
  { type: 'status_changed', status: 'running' },
  {
    type: 'message_added',
    turnId: 'u1',
    userId: 'kim',
    message: user('m1', 'Weather in Oslo, then tidy up.'),
  },
)

const calls = [
  { toolCallId: 'c1', toolName: 'weather', arguments: { city: 'Oslo' } },
  { toolCallId: 'c2', toolName: 'weather', arguments: { city: 'Nowhere' } },
  { toolCallId: 'c3', toolName: 'remove', arguments: { path: '/tmp/a' } },
]

/** One response: streamed words, parallel calls with different endings, facts, a handoff, a second agent. */
export const response: readonly ThreadEvent[] = events(
  { type: 'turn_start', turnId: 't1', agentId: 'guide/a' },
  { type: 'step_start', turnId: 't1', stepId: 's0' },
  { type: 'text_delta', turnId: 't1', blockId: 'x', text: 'a false start' },
  { type: 'step_reset', turnId: 't1', stepId: 's1', reason: 'overloaded' },
  { type: 'reasoning_delta', turnId: 't1', blockId: 'r', text: 'Thinking about ' },
  { type: 'reasoning_delta', turnId: 't1', blockId: 'r', text: 'Let me look.' },
  { type: 'text_delta', turnId: 't1', blockId: 'b', text: 'Let me ' },
  { type: 'custom_event', turnId: 't1', name: 'app.progress', data: 1, isTransient: true },
  { type: 'text_delta', turnId: 't1', blockId: 'b', text: 'look.' },
  {
    type: 'tool_call_delta',
    turnId: 't1',
    toolCallId: 'c1',
    toolName: 'weather',
    argumentsText: '{"city":',
  },
  {
    type: 'tool_call_delta',
    turnId: 't1',
    toolCallId: 'c1',
    toolName: 'weather',
    argumentsText: '"Oslo"}',
  },
  {
    type: 'message_added',
    turnId: 't1',
    message: says('m2', 'Let me look.', calls),
    modelName: 'small-1',
    providerName: 'acme',
    finishReason: 'tool_call',
    usage: { input_tokens: 10, output_tokens: 5, cost: '0.01' },
  },
  { type: 'gate_decided', turnId: 't1', gate: 'policy', decision: 'allow', toolCallId: 'c1' },
  {
    type: 'tool_execution_start',
    turnId: 't1',
    toolCallId: 'c1',
    toolName: 'weather',
    arguments: { city: 'Oslo' },
  },
  { type: 'tool_execution_progress', turnId: 't1', toolCallId: 'c1', output: 'half' },
  { type: 'evidence_added', turnId: 't1', evidenceId: 'e1', kind: 'tool_output', toolCallId: 'c1' },
  {
    type: 'file_written',
    turnId: 't1',
    path: '/report.md',
    mediaType: 'text/markdown',
    sizeBytes: 12,
  },
  {
    type: 'tool_execution_end',
    turnId: 't1',
    toolCallId: 'c1',
    toolName: 'weather',
    outcome: 'success',
    result: { t: 8 },
  },
  {
    type: 'tool_execution_end',
    turnId: 't1',
    toolCallId: 'c2',
    toolName: 'weather',
    outcome: 'retry',
    result: 'No such city.',
  },
  {
    type: 'interrupt_opened',
    turnId: 't1',
    interrupt: { id: 'i1', toolCallId: 'c3', kind: 'approval', request: { reason: 'It deletes.' } },
  },
  {
    type: 'interrupt_answered',
    interruptId: 'i1',
    answer: { type: 'deny', reason: 'Keep it.' },
    answeredBy: 'kim',
  },
  {
    type: 'tool_execution_end',
    turnId: 't1',
    toolCallId: 'c3',
    toolName: 'remove',
    outcome: 'denied',
    result: 'Keep it.',
  },
  {
    type: 'message_added',
    turnId: 't1',
    message: {
      id: 'm3',
      type: 'tool_result',
      results: [
        { toolCallId: 'c1', result: { t: 8 } },
        { toolCallId: 'c2', result: 'No such city.', isError: true },
        { toolCallId: 'c3', result: 'Keep it.', isError: true },
      ],
      timestamp: '2026-05-01T12:00:00Z',
    },
  },
  {
    type: 'source_added',
    turnId: 't1',
    sourceId: 'w',
    url: 'https://weather.example/',
    title: 'Weather',
  },
  {
    type: 'subagent_created',
    turnId: 't1',
    reference: 'child-1',
    name: 'checker',
    isBlocking: false,
  },
  { type: 'subagent_updated', reference: 'child-1', status: 'running', statusText: 'terminated' },
  { type: 'subagent_ended', reference: 'child-1', outcome: 'completed', result: 'fine' },
  { type: 'custom_event', turnId: 't1', name: 'app.note', id: 'n1', data: { text: 'first' } },
  { type: 'custom_event', turnId: 't1', name: 'app.note', id: 'n1', data: { text: 'second' } },
  {
    type: 'agent_handoff',
    turnId: 't1',
    fromAgentId: 'guide/a',
    toAgentId: 'clerk/a',
    reason: 'writing',
  },
  { type: 'turn_end', turnId: 't1', outcome: 'completed' },
  { type: 'turn_start', turnId: 't2', agentId: 'clerk/a' },
  { type: 'message_added', turnId: 't2', message: user('m4', 'In one sentence, please.') },
  { type: 'error_raised', turnId: 't2', code: 'SLOW', message: 'The first try took too long.' },
  {
    type: 'message_added',
    turnId: 't2',
    message: says('m5', 'It is 8 °C in Oslo.'),
    finishReason: 'stop',
    usage: { input_tokens: 20, output_tokens: 7, cost: '0.02' },
  },
  { type: 'turn_end', turnId: 't2', outcome: 'completed' },
  { type: 'status_changed', status: 'idle', text: 'done' },
)
