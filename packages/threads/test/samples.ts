/** Small threads for tests, written for them. */
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
  UserTurn,
} from '../src/document/thread.ts'
import type { MessagePart } from '../src/document/part.ts'

export const START = '2026-03-01T09:00:00Z'

/** A time `seconds` after the start of the samples. */
export function at(seconds: number): string {
  return new Date(Date.UTC(2026, 2, 1, 9, 0, seconds)).toISOString()
}

export function thread(turns: readonly Turn[], extra: object = {}): Thread {
  return {
    version: '2.0.0',
    thread_id: '7f6e2a80-0d5c-4b0e-9a3b-1f0d6f2f9c11',
    created_at: START,
    updated_at: at(3600),
    agents: { ada: agent('ada', 'Ada'), bob: agent('bob', 'Bob'), cyd: agent('cyd', 'Cyd') },
    turns,
    ...extra,
  }
}

function agent(agent_id: string, agent_name: string): Thread['agents'][string] {
  return { agent_id, agent_name, created_at: START }
}

export function userTurn(content: string | readonly MessagePart[], seconds = 0): UserTurn {
  const parts: readonly MessagePart[] =
    typeof content === 'string' ? [{ part_kind: 'user-prompt', content }] : content
  return { turn_type: 'user', submitted_at: at(seconds), parts }
}

export function agentTurn(
  agentId: string,
  messages: readonly (ThreadMessage | SystemMessage)[],
): AgentTurn {
  return {
    turn_type: 'agent',
    agent_id: agentId,
    started_at: messages[0]?.timestamp ?? START,
    completed_at: messages.at(-1)?.timestamp ?? START,
    messages,
  }
}

export function response(
  agentId: string,
  seconds: number,
  ...parts: readonly MessagePart[]
): ThreadMessage {
  return { message_type: 'response', timestamp: at(seconds), agent_id: agentId, parts }
}

export function request(
  agentId: string,
  seconds: number,
  ...parts: readonly MessagePart[]
): ThreadMessage {
  return { message_type: 'request', timestamp: at(seconds), agent_id: agentId, parts }
}

export function event(type: string, seconds: number, data: unknown = {}): SystemMessage {
  return { message_type: 'system', timestamp: at(seconds), event_type: type, event_data: data }
}

export function text(content: string): MessagePart {
  return { part_kind: 'text', content }
}

export function call(id: string, name = 'look_up', args: unknown = { q: id }): MessagePart {
  return { part_kind: 'tool-call', tool_name: name, tool_call_id: id, args }
}

export function answer(id: string, name = 'look_up', content: unknown = 'found'): MessagePart {
  return { part_kind: 'tool-return', tool_name: name, tool_call_id: id, status: 'success', content }
}

/** One of each: every part kind of the specification, several agents, an event, usage. */
export function fullThread(): Thread {
  return thread([
    userTurn([
      {
        part_kind: 'user-prompt',
        content: [
          'Compare these.',
          {
            kind: 'image-url',
            url: 'https://example.org/a.png',
            identifier: 'a1',
            media_type: 'image/png',
          },
          { kind: 'binary', data: 'aGk_', media_type: 'image/png', identifier: 'b1' },
        ],
      },
    ]),
    agentTurn('ada', [
      event('prompt.enriched', 1, { original: 'Compare these.' }),
      {
        ...response(
          'ada',
          2,
          {
            part_kind: 'thinking',
            content: 'Two pictures.',
            provider_name: 'anthropic',
            signature: 'c2ln',
          },
          text('I will look.'),
          call('c1'),
          call('c2', 'measure', '{"w": 1.0}'),
        ),
        model_name: 'model-a',
        usage: { input_tokens: 10, output_tokens: 5 },
        finish_reason: 'tool_call',
      },
      request('ada', 3, answer('c1'), {
        part_kind: 'retry-prompt',
        content: [{ type: 'missing', loc: ['w', 0], msg: 'Field required' }],
        tool_name: 'measure',
        tool_call_id: 'c2',
      }),
      response('ada', 4, text('They differ.'), {
        part_kind: 'file',
        content: { kind: 'binary', data: 'AAAA', media_type: 'image/png', identifier: 'f1' },
      }),
      event('agent.handoff', 5, { from: 'ada', to: 'bob' }),
    ]),
    agentTurn('bob', [
      request('bob', 6, { part_kind: 'user-prompt', content: 'Summarise.' }),
      response('bob', 7, text('Done.')),
    ]),
  ])
}

/** Small threads that hold one object of each kind, with all fields that are known, and no errors. */
export function oneOfEachKind(): Thread[] {
  const provider = { id: 'i', provider_name: 'p' }
  const ids = { tool_name: 't', tool_call_id: 'c' }
  const bytes = { kind: 'binary', data: 'AAAA', media_type: 'image/png', identifier: 'i' }
  const url = { url: 'u', identifier: 'i', media_type: 'x/y', force_download: true }
  const contents = [
    bytes,
    ...['image', 'audio', 'video', 'document'].map((kind) => ({ kind: `${kind}-url`, ...url })),
    { kind: 'text-content', content: 'x' },
    { kind: 'uploaded-file', file_id: 'f', provider_name: 'p' },
    { kind: 'cache-point' },
  ]
  const parts = [
    { part_kind: 'text', content: 'x', ...provider },
    { part_kind: 'thinking', content: 'x', signature: 's', thinking_id: 't', ...provider },
    { part_kind: 'tool-call', ...ids, args: {} },
    { part_kind: 'tool-return', ...ids, status: 'success', content: 1, metadata: {} },
    { part_kind: 'retry-prompt', content: [{ type: 't', loc: ['a'], msg: 'm' }], ...ids },
    { part_kind: 'file', content: bytes, id: 'i' },
    ...contents.map((content) => ({ part_kind: 'user-prompt', content: ['x', content] })),
    { part_kind: 'builtin-tool-call', ...ids, args: {} },
    { part_kind: 'builtin-tool-return', ...ids, content: 1 },
    { part_kind: 'speech', speaker: 'user', transcript: 'x' },
    { part_kind: 'compaction', content: 'x' },
    { part_kind: 'tool-availability-delta', tools_added: [] },
  ] as unknown as MessagePart[]
  const model = { model_name: 'm', provider_name: 'p' }
  const usage = { input_tokens: 1, output_tokens: 1, thinking_tokens: 1, total_tokens: 3 }
  const said = { ...response('ada', 1), ...model, provider_response_id: 'r', usage } as const
  const happened = { ...event('x', 1), source_agent: 'ada', target_agents: ['ada'] }
  const turn = agentTurn('ada', [{ ...said, finish_reason: 'stop' }, happened])
  const known = { title: 'T', metadata: {}, agents: { ada: { ...agent('ada', 'Ada'), ...model } } }
  const documents = [
    thread([{ ...turn, total_usage: usage }], known),
    thread([], { agents: { ada: { ...agent('ada', 'Ada'), config_ref: 'c' } } }),
    ...parts.map((part) => thread([userTurn([part])], { agents: {} })),
  ]
  // No object stands at two places, so that a test can change one place.
  return JSON.parse(JSON.stringify(documents)) as Thread[]
}

/** Deep copy of plain data with one place changed; an undefined value removes the place. */
export function withChange(document: unknown, pointer: string, value: unknown): unknown {
  const copy = structuredClone(document)
  const keys = pointer.split('/').slice(1)
  let holder = copy as Record<string, unknown>
  for (const key of keys.slice(0, -1)) holder = holder[key] as Record<string, unknown>
  const last = keys.at(-1)!
  if (value === undefined) delete holder[last]
  else holder[last] = value
  return copy
}
