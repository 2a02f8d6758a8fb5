import { describe, expect, test } from 'vitest'
import {
  agentTurn,
  answer,
  at,
  call,
  event,
  fullThread,
  request,
  response,
  text,
  thread,
  userTurn,
  withChange,
} from '../../test/samples.ts'
import { toPydanticAI } from '../convert/pydantic-ai/index.ts'
import {
  diffThreads,
  type MessagePart,
  type Thread,
  toModelMessages,
  toolCalls,
  validateThread,
} from '../index.ts'
import type { Profile } from './issue-code.ts'

function codes(document: unknown, profile: Profile = 'standard'): string[] {
  return validateThread(document, { profile }).issues.map(
    (issue) => `${issue.severity} ${issue.code} ${issue.pointer}`,
  )
}

/** The sample with one place changed has exactly this error, at this place. */
function expectError(pointer: string, value: unknown, code: string, where = pointer): void {
  const document = withChange(fullThread(), pointer, value)
  expect(codes(document)).toContain(`error ${code} ${where}`)
  expect(validateThread(document).valid).toBe(false)
}

function expectFine(pointer: string, value: unknown): void {
  expect(codes(withChange(fullThread(), pointer, value))).toEqual([])
}

/** A thread whose only part of interest is this one. */
function withPart(part: object): Thread {
  return thread([userTurn([part as MessagePart])])
}

function expectRequired(part: Record<string, unknown>, fields: readonly string[]): void {
  expect(codes(withPart(part)).filter((line) => line.startsWith('error'))).toEqual([])
  for (const field of fields) {
    const pointer = `/turns/0/parts/0/${field}`
    expect(codes(withChange(withPart(part), pointer, undefined))).toContain(
      `error missing_field ${pointer}`,
    )
  }
}

test('the full sample is valid in every profile', () => {
  for (const profile of ['strict', 'standard', 'lenient'] as const) {
    expect(codes(fullThread(), profile)).toEqual([])
  }
})

describe('root and registry', () => {
  test('TP-01 the root is an object of version 2.0.0; a newer 2.x is read with a warning', () => {
    for (const root of [null, [], 'thread', 7]) expect(codes(root)).toEqual(['error wrong_type '])
    expectError('/version', undefined, 'missing_field')
    expectError('/version', 2, 'wrong_type')
    expectError('/version', '1.0.0', 'unsupported_version')
    expectError('/version', '3.0.0', 'unsupported_version')
    expectError('/version', '2.0', 'unsupported_version')
    expect(codes(withChange(fullThread(), '/version', '2.1.0'))).toEqual([
      'warning newer_version /version',
    ])
    expect(codes(withChange(fullThread(), '/version', '2.1.0'), 'strict')).toEqual([
      'error newer_version /version',
    ])
  })

  test('TP-02 thread_id is a non-empty string, and a UUID where that is asked for', () => {
    expectError('/thread_id', undefined, 'missing_field')
    expectError('/thread_id', '', 'empty_id')
    expectError('/thread_id', 1, 'wrong_type')
    expectFine('/thread_id', 'any text')
    const named = withChange(fullThread(), '/thread_id', 'any text')
    const issues = validateThread(named, { ids: 'uuid' }).issues.map(({ pointer }) => pointer)
    expect(issues).toContain('/thread_id')
    expect(issues).toContain('/agents/ada/agent_id')
    expect(
      validateThread(fullThread(), { ids: 'uuid' }).issues.some(
        ({ pointer }) => pointer === '/thread_id',
      ),
    ).toBe(false)
  })

  test('TP-03 created_at and updated_at are timestamps, the second not before the first', () => {
    for (const field of ['created_at', 'updated_at']) {
      expectError(`/${field}`, undefined, 'missing_field')
      expectError(`/${field}`, 'yesterday', 'bad_timestamp')
      expectError(`/${field}`, 1_772_355_600, 'wrong_type')
    }
    expect(codes(withChange(fullThread(), '/updated_at', '2026-02-28T23:59:59Z'))).toEqual([
      'warning updated_before_created /updated_at',
    ])
  })

  test('TP-04 title is a string and metadata an object, both optional', () => {
    expectFine('/title', 'Pictures')
    expectFine('/metadata', { any: [1, null] })
    expectFine('/title', '')
    for (const wrong of [null, 5, 0, false, {}, []]) expectError('/title', wrong, 'wrong_type')
    for (const wrong of [null, 5, 0, false, '', []]) expectError('/metadata', wrong, 'wrong_type')
  })

  test('TP-05 agents is a required map, which may be empty', () => {
    expectError('/agents', undefined, 'missing_field')
    expectError('/agents', [], 'wrong_type')
    expectError('/agents/ada', 'Ada', 'wrong_type')
    expect(codes(thread([userTurn('hi')], { agents: {} }))).toEqual([])
  })

  test('TP-06 an agent has id, name and time; model, provider and config reference are optional text', () => {
    for (const field of ['agent_id', 'agent_name', 'created_at']) {
      expectError(`/agents/ada/${field}`, undefined, 'missing_field')
      expectError(`/agents/ada/${field}`, 3, 'wrong_type')
    }
    for (const field of ['model_name', 'provider_name', 'config_ref']) {
      expectFine(`/agents/ada/${field}`, 'text')
      expectFine(`/agents/ada/${field}`, '')
      for (const wrong of [{}, [], 0, 3, false, true])
        expectError(`/agents/ada/${field}`, wrong, 'wrong_type')
    }
  })

  test('TP-07 a registry key equals the agent_id of its entry', () => {
    for (const other of ['eve', 'Cyd', 'cyd ', ' cyd'])
      expectError('/agents/cyd/agent_id', other, 'agent_key_mismatch')
    const slash = thread([], {
      agents: { 'a/b~c': { agent_id: 'x', agent_name: 'X', created_at: at(0) } },
    })
    expect(codes(slash)).toEqual(['error agent_key_mismatch /agents/a~1b~0c/agent_id'])
    // Also if the id is the key of another entry.
    const { ada, bob, cyd } = thread([]).agents
    const mismatch = (key: string) => `error agent_key_mismatch /agents/${key}/agent_id`
    const mixed = (agents: object) => codes(thread([], { agents }))
    expect(mixed({ ada: bob, bob: ada, cyd })).toEqual([mismatch('ada'), mismatch('bob')])
    expect(mixed({ ada, bob: ada })).toEqual([mismatch('bob')])
    expect(mixed({ bob: ada, ada })).toEqual([mismatch('bob')])
  })

  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'TP-V3 %s is no agent unless the registry has it',
    (name) => {
      const told = { ...event('x', 1), source_agent: name, target_agents: ['ada', name] }
      const turns = [agentTurn(name, [told, response(name, 2)])]
      expect(codes(thread(turns))).toEqual([
        'error unknown_agent /turns/0/agent_id',
        'warning unknown_event_agent /turns/0/messages/0/source_agent',
        'warning unknown_event_agent /turns/0/messages/0/target_agents/1',
        'error unknown_agent /turns/0/messages/1/agent_id',
      ])
      const own = { agent_id: name, agent_name: name, created_at: at(0) }
      const agents = Object.fromEntries([...Object.entries(thread([]).agents), [name, own]])
      expect(codes(thread(turns, { agents }))).toEqual([])
    },
  )
})

describe('turns and messages', () => {
  test('TP-08 turns is a list; a turn of unknown type is kept, and an error only in strict', () => {
    expectError('/turns', undefined, 'missing_field')
    expectError('/turns', {}, 'wrong_type')
    expectError('/turns/0', 'hi', 'wrong_type')
    expectError('/turns/0/turn_type', undefined, 'missing_field')
    const future = withChange(fullThread(), '/turns/0/turn_type', 'robot')
    expect(codes(future)).toEqual(['warning unknown_turn_type /turns/0/turn_type'])
    expect(codes(future, 'strict')).toEqual(['error unknown_turn_type /turns/0/turn_type'])
  })

  test('TP-09 a user turn has submitted_at and parts', () => {
    expectError('/turns/0/submitted_at', undefined, 'missing_field')
    expectError('/turns/0/submitted_at', 'now', 'bad_timestamp')
    expectError('/turns/0/parts', undefined, 'missing_field')
    expectError('/turns/0/parts', 'hi', 'wrong_type')
    expectError('/turns/0/parts/0', 'hi', 'wrong_type')
    expectFine('/turns/0/parts', [])
  })

  test('TP-10 an agent turn has agent, start, end and messages; total_usage is optional', () => {
    for (const field of ['agent_id', 'started_at', 'completed_at', 'messages']) {
      expectError(`/turns/1/${field}`, undefined, 'missing_field')
      expectError(`/turns/1/${field}`, 9, 'wrong_type')
    }
    expectFine('/turns/1/total_usage', { input_tokens: 3 })
    expectError('/turns/1/total_usage', 9, 'wrong_type')
    expectError(
      '/turns/1/total_usage',
      { input_tokens: '3' },
      'wrong_type',
      '/turns/1/total_usage/input_tokens',
    )
  })

  test('TP-12 a message has type, time, parts and agent', () => {
    for (const field of ['message_type', 'timestamp', 'parts', 'agent_id']) {
      expectError(`/turns/1/messages/1/${field}`, undefined, 'missing_field')
      expectError(`/turns/1/messages/1/${field}`, 9, 'wrong_type')
    }
    expectError('/turns/1/messages/1/message_type', 'reply', 'bad_value')
    expectError('/turns/1/messages/1', null, 'wrong_type')
  })

  test('TP-13 fields of responses on a request are a warning', () => {
    const fields = {
      model_name: 'm',
      provider_name: 'p',
      provider_response_id: 'r',
      usage: { input_tokens: 1 },
      finish_reason: 'stop',
    }
    for (const [field, value] of Object.entries(fields)) {
      expectFine(`/turns/1/messages/1/${field}`, value)
      const pointer = `/turns/1/messages/2/${field}`
      expect(codes(withChange(fullThread(), pointer, value))).toEqual([
        `warning response_field_on_request ${pointer}`,
      ])
      expectFine(pointer, null)
    }
    expectError('/turns/1/messages/1/model_name', 4, 'wrong_type')
  })

  test('TP-14 a system message has time, type and data; source and targets are optional', () => {
    for (const field of ['timestamp', 'event_type', 'event_data']) {
      expectError(`/turns/1/messages/0/${field}`, undefined, 'missing_field')
    }
    expectFine('/turns/1/messages/0/event_data', null)
    expectFine('/turns/1/messages/0/source_agent', 'ada')
    expectFine('/turns/1/messages/0/target_agents', ['ada', 'bob'])
    expectError('/turns/1/messages/0/source_agent', 1, 'wrong_type')
    expectError('/turns/1/messages/0/target_agents', 'bob', 'wrong_type')
    expectError(
      '/turns/1/messages/0/target_agents',
      [1],
      'wrong_type',
      '/turns/1/messages/0/target_agents/0',
    )
  })

  test('TP-15 any event type is legal', () => {
    for (const name of ['tool.grant', 'x', 'Ünï.code-9', 'data-app-score', '']) {
      expectFine('/turns/1/messages/0/event_type', name)
    }
  })

  test('a message of another agent than its turn is noted', () => {
    expect(codes(withChange(fullThread(), '/turns/2/messages/1/agent_id', 'cyd'))).toEqual([
      'info agent_differs /turns/2/messages/1/agent_id',
    ])
  })
})

describe('parts', () => {
  const samples: Record<string, Record<string, unknown>> = {
    text: { part_kind: 'text', content: 'a' },
    thinking: { part_kind: 'thinking', provider_name: 'p' },
    'tool-call': { part_kind: 'tool-call', tool_name: 't', tool_call_id: 'c', args: {} },
    'retry-prompt': { part_kind: 'retry-prompt', content: 'again' },
    file: {
      part_kind: 'file',
      content: { kind: 'binary', data: '', media_type: 'x/y', identifier: 'i' },
    },
    'user-prompt': { part_kind: 'user-prompt', content: 'a' },
  }

  test('TP-16 parts are told apart by part_kind; further fields and unknown kinds are kept', () => {
    for (const part of [
      ...Object.values(samples),
      answer('x') as unknown as Record<string, unknown>,
    ]) {
      const errors = codes(withPart({ ...part, future_field: [1] })).filter(
        (line) => !line.includes('return_without_call'),
      )
      expect(errors).toEqual([])
      expect(codes(withChange(withPart(part), '/turns/0/parts/0/part_kind', undefined))).toContain(
        'error missing_field /turns/0/parts/0/part_kind',
      )
    }
    const unknown = withPart({ part_kind: 'hologram', anything: 1 })
    expect(codes(unknown)).toEqual(['info unknown_part_kind /turns/0/parts/0/part_kind'])
    expect(validateThread(unknown).valid).toBe(true)
    expect(validateThread(unknown, { profile: 'strict' }).valid).toBe(false)
    expect(codes(withPart({ part_kind: 7 }))).toEqual([
      'error wrong_type /turns/0/parts/0/part_kind',
    ])
  })

  test('TP-17 text has content, and may have an id', () => {
    expectRequired(samples['text']!, ['content'])
    expect(codes(withPart({ part_kind: 'text', content: 5 }))).toEqual([
      'error wrong_type /turns/0/parts/0/content',
    ])
    expect(codes(withPart({ part_kind: 'text', content: '', id: 'i' }))).toEqual([])
    expect(codes(withPart({ part_kind: 'text', content: '', id: 5 }))).toEqual([
      'error wrong_type /turns/0/parts/0/id',
    ])
  })

  test('TP-18 thinking may lack its provider unless something depends on it', () => {
    for (const provider of [undefined, null]) {
      expect(
        codes(withPart({ part_kind: 'thinking', content: 'hm', provider_name: provider })),
      ).toEqual([])
      for (const field of ['signature', 'thinking_id', 'id']) {
        expect(
          codes(withPart({ part_kind: 'thinking', [field]: 's', provider_name: provider })),
        ).toEqual(['warning thinking_without_provider /turns/0/parts/0/provider_name'])
      }
    }
    for (const field of ['content', 'signature', 'provider_name', 'thinking_id']) {
      expect(codes(withPart({ part_kind: 'thinking', provider_name: 'p', [field]: 5 }))).toContain(
        `error wrong_type /turns/0/parts/0/${field}`,
      )
    }
  })

  test('TP-19 a call has name, id and arguments: text, object or null', () => {
    expectRequired(samples['tool-call']!, ['tool_name', 'tool_call_id', 'args'])
    for (const args of [null, '{"a": 1.0}', '', {}, { a: [1] }]) {
      expect(codes(withPart({ ...samples['tool-call'], args }))).toEqual([])
    }
    for (const args of [5, [1], true]) {
      expect(codes(withPart({ ...samples['tool-call'], args }))).toEqual([
        'warning unusual_args /turns/0/parts/0/args',
      ])
    }
    expect(codes(withPart({ ...samples['tool-call'], tool_call_id: '' }))).toEqual([
      'error empty_id /turns/0/parts/0/tool_call_id',
    ])
  })

  test('TP-20 a return has name, id, one of three states and content; metadata is free', () => {
    const returns = (part: object): Thread =>
      thread([userTurn([call('c')]), userTurn([part as MessagePart])])
    const good = answer('c')
    for (const status of ['success', 'error', 'validation_error']) {
      expect(codes(returns({ ...good, status, content: null, metadata: 4 }))).toEqual([])
    }
    expect(codes(returns({ ...good, status: 'denied' }))).toEqual([
      'error bad_value /turns/1/parts/0/status',
    ])
    for (const field of ['tool_name', 'tool_call_id', 'status', 'content']) {
      expect(codes(withChange(returns(good), `/turns/1/parts/0/${field}`, undefined))).toContain(
        `error missing_field /turns/1/parts/0/${field}`,
      )
    }
  })

  test('TP-21 a retry prompt is text or a list of problems; name and id are optional', () => {
    expectRequired(samples['retry-prompt']!, ['content'])
    const problem = { type: 'missing', loc: ['a', 0], msg: 'Field required' }
    expect(
      codes(
        withPart({
          ...samples['retry-prompt'],
          content: [problem, { ...problem, input: {}, ctx: {}, url: 'u' }],
        }),
      ),
    ).toEqual([])
    for (const field of ['type', 'loc', 'msg']) {
      expect(
        codes(withPart({ ...samples['retry-prompt'], content: [{ ...problem, [field]: 5 }] })),
      ).toEqual([`error wrong_type /turns/0/parts/0/content/0/${field}`])
    }
    expect(
      codes(withPart({ ...samples['retry-prompt'], tool_name: null, tool_call_id: null })),
    ).toEqual([])
    for (const field of ['tool_name', 'tool_call_id'])
      expect(codes(withPart({ ...samples['retry-prompt'], [field]: 5 }))).toEqual([
        `error wrong_type /turns/0/parts/0/${field}`,
      ])
    // Only a retry that names its tool answers a call; without a name its id is a generated one.
    const retried = (tool_name: string | null) =>
      codes(
        thread([
          userTurn([
            call('a'),
            { part_kind: 'retry-prompt', content: 'again', tool_name, tool_call_id: 'a' },
            answer('a'),
          ]),
        ]),
      )
    expect(retried(null)).toEqual([])
    expect(retried('look_up')).toEqual(['error duplicate_return /turns/0/parts/2/tool_call_id'])
  })

  test('TP-22 a file has binary content, or a URL where a UI knows no more', () => {
    expectRequired(samples['file']!, [
      'content',
      'content/data',
      'content/media_type',
      'content/identifier',
    ])
    expect(codes(withPart({ part_kind: 'file', content: 'x' }))).toEqual([
      'error wrong_type /turns/0/parts/0/content',
    ])
    expect(
      codes(
        withPart({ part_kind: 'file', content: { kind: 'image-url', url: 'u', identifier: 'i' } }),
      ),
    ).toEqual([])
  })

  test('TP-23 a user prompt is text or a list of text and content', () => {
    expectRequired(samples['user-prompt']!, ['content'])
    expect(codes(withPart({ part_kind: 'user-prompt', content: [] }))).toEqual([])
    expect(
      codes(withPart({ part_kind: 'user-prompt', content: ['a', { kind: 'cache-point' }, 'b'] })),
    ).toEqual([])
    expect(codes(withPart({ part_kind: 'user-prompt', content: {} }))).toEqual([
      'error wrong_type /turns/0/parts/0/content',
    ])
    expect(codes(withPart({ part_kind: 'user-prompt', content: ['a', 5] }))).toEqual([
      'error wrong_type /turns/0/parts/0/content/1',
    ])
    expect(codes(withPart({ part_kind: 'user-prompt', content: [{ kind: 'scent' }] }))).toEqual([
      'info unknown_content_kind /turns/0/parts/0/content/0/kind',
    ])
  })

  test('TP-24 URL content has url and identifier; the other fields are optional', () => {
    for (const kind of ['image-url', 'audio-url', 'video-url', 'document-url']) {
      const url = { kind, url: 'https://example.org/x', identifier: 'i' }
      const prompt = (content: object): Record<string, unknown> => ({
        part_kind: 'user-prompt',
        content: [content],
      })
      expectRequired(prompt(url), ['content/0/url', 'content/0/identifier'])
      for (const force_download of [true, false, 'allow-local']) {
        expect(
          codes(
            withPart(
              prompt({ ...url, force_download, vendor_metadata: { a: 1 }, media_type: 'x/y' }),
            ),
          ),
        ).toEqual([])
      }
      expect(codes(withPart(prompt({ ...url, force_download: 'yes' })))).toEqual([
        'error bad_value /turns/0/parts/0/content/0/force_download',
      ])
      expect(codes(withPart(prompt({ ...url, media_type: 1 })))).toEqual([
        'error wrong_type /turns/0/parts/0/content/0/media_type',
      ])
    }
  })

  test('TP-25 binary data is base64 in either alphabet', () => {
    const binary = (data: unknown): Thread =>
      withPart({
        part_kind: 'file',
        content: { kind: 'binary', data, media_type: 'x/y', identifier: 'i' },
      })
    for (const data of ['', 'aGk=', 'aGk', '-_-_', '+/+/', 'AAAA', 'AA==', 'AA'])
      expect(codes(binary(data))).toEqual([])
    for (const data of ['a', 'aGk==', 'a b=', 'AAA*', '=', 'AA=A', 'AAAA=']) {
      expect(codes(binary(data))).toEqual(['error bad_base64 /turns/0/parts/0/content/data'])
    }
    expect(codes(binary(5))).toEqual(['error wrong_type /turns/0/parts/0/content/data'])
    const content = { kind: 'binary', data: 'AAAA', media_type: 'x/y', identifier: 'i' }
    expectRequired({ part_kind: 'user-prompt', content: [content] }, [
      'content/0/data',
      'content/0/media_type',
      'content/0/identifier',
    ])
  })

  test('TP-26 usage counters are numbers and the finish reason is one of five', () => {
    for (const counter of ['input_tokens', 'output_tokens', 'thinking_tokens', 'total_tokens']) {
      expectFine('/turns/1/messages/1/usage', { [counter]: 0 })
      expectError(
        '/turns/1/messages/1/usage',
        { [counter]: '0' },
        'wrong_type',
        `/turns/1/messages/1/usage/${counter}`,
      )
    }
    expectFine('/turns/1/messages/1/usage', { details: { x: 1 }, cost: '0.1', new_counter: 3 })
    for (const reason of ['stop', 'length', 'content_filter', 'tool_call', 'error', null]) {
      expectFine('/turns/1/messages/1/finish_reason', reason)
    }
    expectError('/turns/1/messages/1/finish_reason', 'tool-calls', 'bad_value')
    expectError('/turns/1/messages/1/finish_reason', 1, 'wrong_type')
  })

  test('TP-27 a system prompt among the parts is reported', () => {
    const inline = withPart({ part_kind: 'system-prompt', content: 'You are kind.' })
    expect(codes(inline)).toEqual(['warning inline_system_prompt /turns/0/parts/0'])
    expect(validateThread(inline, { profile: 'strict' }).valid).toBe(false)
  })
})

describe('rules', () => {
  test('TP-V1 timestamps: what is ISO 8601 and what is not', () => {
    const good = [
      '2026-03-01T09:00:00Z',
      '2026-03-01T09:00Z',
      '2026-03-01T09:00:00.1Z',
      '2026-03-01T09:00:00,123456Z',
      '2026-03-01T09:00:00.123456789+02:00',
      '2026-03-01T09:00:00-0330',
      '2026-03-01T09:00:00+05',
      '2016-12-31T23:59:60Z',
      '2024-02-29T00:00:00Z',
      '2000-02-29T00:00:00Z',
    ]
    const bad = [
      '',
      '2026-03-01',
      '2026-03-01 09:00:00Z',
      '2026-13-01T09:00:00Z',
      '2026-00-01T09:00:00Z',
      '2026-02-29T09:00:00Z',
      '1900-02-29T09:00:00Z',
      '2026-04-31T09:00:00Z',
      '2026-03-00T09:00:00Z',
      '2026-03-01T24:00:00Z',
      '2026-03-01T09:60:00Z',
      '2026-03-01T09:00:61Z',
      '2026-03-01T09:00:00.Z',
      '2026-03-01T09:00:00z',
      '2026-03-01T09:00:00+24:00',
      '2026-03-01T09:00:00+02:60',
      '2026-03-01T09:00:00-0275',
      '2026-03-01T09:00:00+2',
      '2026-03-01T09:00:00ZZ',
      '26-03-01T09:00:00Z',
      ' 2026-03-01T09:00:00Z',
      '01/03/2026 09:00',
    ]
    for (const time of good)
      expect([
        time,
        codes(thread([], { created_at: '0001-01-01T00:00:00Z', updated_at: time })),
      ]).toEqual([time, []])
    for (const time of bad) {
      expect([time, codes(thread([], { updated_at: time }))]).toEqual([
        time,
        ['error bad_timestamp /updated_at'],
      ])
    }
    expect(codes(thread([], { updated_at: '2026-03-01T09:00:00' }))).toEqual([
      'warning zoneless_timestamp /updated_at',
    ])
  })

  test('TP-V2 each return belongs to the nearest earlier open call with its id', () => {
    const run = (...messages: readonly MessagePart[][]): string[] =>
      codes(
        thread([
          agentTurn(
            'ada',
            messages.map((parts, index) => response('ada', index, ...parts)),
          ),
        ]),
      )
    expect(run([call('a')], [answer('a')])).toEqual([])
    expect(run([call('a')])).toEqual([])
    expect(run([answer('a')])).toEqual([
      'error return_without_call /turns/0/messages/0/parts/0/tool_call_id',
    ])
    expect(run([answer('a')], [call('a')])).toEqual([
      'error return_without_call /turns/0/messages/0/parts/0/tool_call_id',
    ])
    expect(run([call('a')], [answer('a')], [answer('a')])).toEqual([
      'error duplicate_return /turns/0/messages/2/parts/0/tool_call_id',
    ])
    expect(run([call('a')], [answer('a')], [call('a')], [answer('a')])).toEqual([])
    expect(run([call('a'), call('a')], [answer('a'), answer('a')])).toEqual([])
    expect(run([call('a', 'x')], [answer('a', 'y')])).toEqual([
      'warning tool_name_mismatch /turns/0/messages/1/parts/0/tool_name',
    ])
    const retry: MessagePart = {
      part_kind: 'retry-prompt',
      content: 'again',
      tool_name: 'look_up',
      tool_call_id: 'a',
    }
    expect(run([call('a')], [retry], [answer('a')])).toEqual([
      'error duplicate_return /turns/0/messages/2/parts/0/tool_call_id',
    ])
  })

  test('TP-V2 calls may be answered in a later turn; one passed over by an answered user turn is a warning', () => {
    const open = agentTurn('ada', [response('ada', 1, call('a'))])
    expect(
      codes(thread([userTurn('hi'), open, agentTurn('ada', [request('ada', 2, answer('a'))])])),
    ).toEqual([])
    expect(codes(thread([userTurn('hi'), open, userTurn([answer('a')], 2)]))).toEqual([])
    expect(codes(thread([open, userTurn('still there?', 2)]))).toEqual([])
    expect(
      codes(
        thread([open, userTurn('go on', 2), agentTurn('ada', [response('ada', 3, text('ok'))])]),
      ),
    ).toEqual(['warning call_left_open /turns/0/messages/0/parts/0/tool_call_id'])
  })

  test('TP-V3 agents are in the registry; those that events name, as a warning', () => {
    expectError('/turns/1/agent_id', 'eve', 'unknown_agent')
    expectError('/turns/1/messages/1/agent_id', 'eve', 'unknown_agent')
    expect(codes(withChange(fullThread(), '/turns/1/agent_id', 'eve'), 'lenient')).toContain(
      'warning unknown_agent /turns/1/agent_id',
    )
    expect(codes(withChange(fullThread(), '/turns/1/messages/0/source_agent', 'eve'))).toEqual([
      'warning unknown_event_agent /turns/1/messages/0/source_agent',
    ])
    expect(
      codes(withChange(fullThread(), '/turns/1/messages/0/target_agents', ['bob', 'eve'])),
    ).toEqual(['warning unknown_event_agent /turns/1/messages/0/target_agents/1'])
  })

  test('TP-V4 turns do not overlap; one may start in the instant in which another ended', () => {
    const second = (start: string): Thread =>
      thread([
        agentTurn('ada', [response('ada', 1, text('a')), response('ada', 5, text('b'))]),
        { ...agentTurn('bob', [response('bob', 9, text('c'))]), started_at: start },
      ])
    expect(codes(second(at(5)))).toEqual([])
    expect(codes(second(at(4)))).toEqual(['warning turns_overlap /turns/1/started_at'])
    expect(codes(second(at(4)), 'strict')).toEqual(['error turns_overlap /turns/1/started_at'])
    expect(codes(second('2026-03-01T11:00:05+02:00'))).toEqual([])
    expect(codes(second('2026-03-01T11:00:04.999999+02:00'))).toEqual([
      'warning turns_overlap /turns/1/started_at',
    ])
    expect(
      codes(thread([agentTurn('ada', [response('ada', 5, text('a'))]), userTurn('hi', 4)])),
    ).toEqual(['warning turns_overlap /turns/1/submitted_at'])
    const backwards = { ...agentTurn('ada', [response('ada', 5, text('a'))]), completed_at: at(4) }
    expect(codes(thread([backwards]))).toEqual([
      'warning turn_ends_before_start /turns/0/completed_at',
    ])
  })

  test('TP-V5 messages are in order of their instants, to the microsecond', () => {
    const pair = (first: string, second: string): Thread =>
      thread([
        {
          ...agentTurn('ada', [
            { ...response('ada', 0, text('a')), timestamp: first },
            { ...event('note', 0), timestamp: second },
          ]),
          started_at: at(0),
          completed_at: at(50),
        },
      ])
    const late = ['warning messages_out_of_order /turns/0/messages/1/timestamp']
    expect(codes(pair(at(1), at(1)))).toEqual([])
    expect(codes(pair(at(2), at(1)))).toEqual(late)
    expect(codes(pair(at(2), at(1)), 'strict')).toEqual([late[0]!.replace('warning', 'error')])
    expect(codes(pair('2026-03-01T09:00:00.000002Z', '2026-03-01T09:00:00.000001Z'))).toEqual(late)
    expect(codes(pair('2026-03-01T09:00:00.000001Z', '2026-03-01T09:00:00.000002Z'))).toEqual([])
    expect(codes(pair('2026-03-01T10:00:00+01:00', '2026-03-01T09:00:00Z'))).toEqual([])
    expect(codes(pair('2026-03-01T09:00:01Z', '2026-03-01T10:00:00+01:00'))).toEqual(late)
    expect(
      codes(pair('2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z')).filter((line) =>
        line.includes('out_of_order'),
      ),
    ).toEqual([])
  })

  test('TP-49 order is position: no sequence numbers are wanted, and none are read', () => {
    expect(codes(fullThread())).toEqual([])
    const document = fullThread()
    const numbered = {
      ...document,
      turns: document.turns.map((turn, index) => ({
        ...turn,
        sequence: -index,
        ...(turn.turn_type === 'agent' && {
          messages: turn.messages.map((message, place) => ({ ...message, sequence: -place })),
        }),
      })),
    } as Thread
    expect(codes(numbered)).toEqual([])
    const seen = (one: Thread): unknown =>
      toModelMessages(one, 'ada').map(({ kind, parts, timestamp }) => ({ kind, parts, timestamp }))
    expect(seen(numbered)).toEqual(seen(document))
    expect(toPydanticAI(numbered).value.map(({ parts }) => parts)).toEqual(
      toPydanticAI(document).value.map(({ parts }) => parts),
    )
    expect(toolCalls(numbered).map(({ pointer }) => pointer)).toEqual(
      toolCalls(document).map(({ pointer }) => pointer),
    )
    expect(diffThreads(numbered, numbered)).toEqual(diffThreads(document, document))
  })
})

test('further issues than maxIssues are counted, not listed', () => {
  const many = thread(
    Array.from({ length: 50 }, () => userTurn([{ part_kind: 'text' } as MessagePart])),
  )
  const { issues, total, valid } = validateThread(many, { maxIssues: 10 })
  expect([issues.length, total, valid]).toEqual([10, 50, false])
})

test('messages of issues never quote the document', () => {
  const secret = 'sk-canary-123'
  const document = thread([userTurn('hi')], {
    title: 5,
    version: secret,
    updated_at: secret,
    thread_id: '',
  })
  expect(JSON.stringify(validateThread(document))).not.toContain(secret)
})

describe('TP-16 the issues of one part, exactly', () => {
  const at0 = '/turns/0/parts/0'
  const issuesOf = (part: unknown, profile: Profile = 'standard') =>
    validateThread(thread([userTurn([part as MessagePart])]), { profile }).issues.map(
      ({ code, pointer }) => `${code} ${pointer.replace(at0, '')}`,
    )
  const url = { kind: 'image-url', url: 'https://x.test', identifier: 'i' }
  const bytes = { kind: 'binary', data: 'AAAA', media_type: 'image/png', identifier: 'i' }
  const inList = (item: unknown) => ({ part_kind: 'user-prompt', content: ['text', item] })
  const speech = { part_kind: 'speech', speaker: 'user' }

  test.each<[unknown, string[]]>([
    [5, ['wrong_type ']],
    [{ part_kind: 5 }, ['wrong_type /part_kind']],
    [{}, ['missing_field /part_kind']],
    [{ part_kind: 'text', content: 5, id: 5 }, ['wrong_type /content', 'wrong_type /id']],
    [{ part_kind: 'text', content: 'x', id: null }, []],
    [
      { part_kind: 'thinking', content: 5, signature: 5, thinking_id: 5, provider_name: 5 },
      [
        'wrong_type /content',
        'wrong_type /signature',
        'wrong_type /thinking_id',
        'wrong_type /provider_name',
      ],
    ],
    [{ part_kind: 'file', id: 5, content: bytes }, ['wrong_type /id']],
    [{ part_kind: 'file' }, ['missing_field /content']],
    [{ part_kind: 'file', content: 'x' }, ['wrong_type /content']],
    [
      { part_kind: 'file', content: { ...bytes, media_type: 5 } },
      ['wrong_type /content/media_type'],
    ],
    [inList(5), ['wrong_type /content/1']],
    [inList(null), ['wrong_type /content/1']],
    [inList({}), ['missing_field /content/1/kind']],
    [
      inList({ ...url, url: 5, identifier: undefined, media_type: 5 }),
      [
        'wrong_type /content/1/url',
        'missing_field /content/1/identifier',
        'wrong_type /content/1/media_type',
      ],
    ],
    [inList({ ...url, force_download: true }), []],
    [inList({ ...url, force_download: 'allow-local' }), []],
    [inList({ ...url, force_download: 'yes' }), ['bad_value /content/1/force_download']],
    [inList({ ...url, force_download: null }), ['wrong_type /content/1/force_download']],
    [inList({ kind: 'text-content' }), ['missing_field /content/1/content']],
    [
      inList({ kind: 'uploaded-file' }),
      ['missing_field /content/1/file_id', 'missing_field /content/1/provider_name'],
    ],
    [inList({ kind: 'cache-point' }), []],
    [
      { part_kind: 'builtin-tool-call' },
      ['missing_field /tool_name', 'missing_field /tool_call_id'],
    ],
    [
      { part_kind: 'builtin-tool-return', tool_name: 5, tool_call_id: '' },
      ['wrong_type /tool_name', 'empty_id /tool_call_id'],
    ],
    [speech, []],
    [{ ...speech, speaker: 'assistant', transcript: 'x' }, []],
    [{ ...speech, speaker: 'robot' }, ['bad_value /speaker']],
    [
      { ...speech, speaker: undefined, transcript: 5 },
      ['missing_field /speaker', 'wrong_type /transcript'],
    ],
    [{ part_kind: 'compaction', content: 5 }, ['wrong_type /content']],
    [{ part_kind: 'tool-availability-delta' }, []],
    [
      {
        part_kind: 'retry-prompt',
        content: [5, { type: 5, msg: 'm', loc: [] }, { type: 't', msg: 5 }],
      },
      [
        'wrong_type /content/0',
        'wrong_type /content/1/type',
        'wrong_type /content/2/msg',
        'missing_field /content/2/loc',
      ],
    ],
    [
      { part_kind: 'retry-prompt', content: 'x', tool_name: 5, tool_call_id: 5 },
      ['wrong_type /tool_name', 'wrong_type /tool_call_id'],
    ],
  ])('TP-16 %o', (part, expected) => {
    expect(issuesOf(part)).toEqual(expected)
  })

  test('TP-25 padding stands only where it is needed', () => {
    const isFine = (data: unknown) => issuesOf({ part_kind: 'file', content: { ...bytes, data } })
    for (const data of ['', 'AA', 'AA==', 'AAA', 'AAA=', 'AAAA', '-_+/', 'AAAAAA=='])
      expect(isFine(data), data).toEqual([])
    for (const data of [
      'A',
      'A===',
      'AAAAA',
      'AA=',
      'AAAA=',
      'AAAA==',
      'AAA==',
      '=',
      '==',
      'AA=A',
      'A A',
      'ä',
    ])
      expect(isFine(data), data).toEqual(['bad_base64 /content/data'])
  })

  test('TP-16 a message says where and what, without the value', () => {
    const { issues } = validateThread(
      thread([userTurn([{ part_kind: 'text', content: 5 } as never])]),
    )
    expect(issues).toEqual([
      {
        code: 'wrong_type',
        severity: 'error',
        pointer: `${at0}/content`,
        message: `${at0}/content: wrong type, expected a string`,
      },
    ])
    expect(validateThread(5).issues[0]?.message).toBe(
      'the document: wrong type, expected an object',
    )
    const unknown = validateThread(thread([userTurn([{ part_kind: 'novel:kind' } as never])]))
    expect(unknown.issues[0]?.message).toBe(`${at0}/part_kind: unknown part kind`)
  })

  test('TP-02 ids of threads, agents and messages may be asked to be UUIDs; those of calls never', () => {
    const own = thread([
      agentTurn('ada', [response('ada', 1, call('c-1')), request('ada', 2, answer('c-1'))]),
    ])
    const asked = validateThread(own, { ids: 'uuid' }).issues
    expect(asked.map(({ code, pointer }) => `${code} ${pointer}`)).toEqual(
      ['ada', 'bob', 'cyd']
        .map((id) => `id_not_uuid /agents/${id}/agent_id`)
        .concat(['id_not_uuid /turns/0/agent_id']),
    )
    const nobody = '0190aaaa-0000-7000-8000-000000000001'
    const foreign = thread([agentTurn(nobody, [response('eve', 1, call('c-1'))])], { agents: {} })
    expect(
      validateThread(foreign, { ids: 'uuid' }).issues.flatMap(({ code, pointer }) =>
        code === 'id_not_uuid' ? [pointer] : [],
      ),
    ).toEqual(['/turns/0/messages/0/agent_id'])
    expect(validateThread(own, { ids: 'any' }).issues).toEqual([])
  })

  test('TP-V1 issues are counted on when their list is full, and validity does not depend on it', () => {
    const broken = thread([
      userTurn([5, 6, 7].map((content) => ({ part_kind: 'text', content })) as never),
    ])
    const { issues, total, valid, wellFormed } = validateThread(broken, { maxIssues: 2 })
    expect([issues.length, total, valid, wellFormed]).toEqual([2, 3, false, false])
    const none = validateThread(broken, { maxIssues: 0 })
    expect([none.issues.length, none.total, none.valid]).toEqual([0, 3, false])
    const many = thread([
      userTurn(Array.from({ length: 1001 }, () => ({ part_kind: 'text', content: 5 })) as never),
    ])
    expect(validateThread(many)).toMatchObject({ total: 1001, issues: { length: 1000 } })
  })
})

describe('TP-V3 the issues of turns and messages, exactly', () => {
  const issuesIn = (document: unknown, profile: Profile = 'standard') =>
    validateThread(document, { profile }).issues.map(({ code, pointer }) => `${code} ${pointer}`)
  /** The issues of one message, in a turn that is fine. */
  const inTurn = (message: object) =>
    issuesIn(
      thread([{ ...agentTurn('ada', [message as never]), started_at: at(1), completed_at: at(1) }]),
    ).map((line) => line.replace('/turns/0/messages/0', ''))
  const inMessage = (change: object, type: 'request' | 'response' = 'response') =>
    inTurn({ ...response('ada', 1, text('x')), message_type: type, ...change })

  test.each<[object, string[]]>([
    [{ agent_id: 'bob' }, ['agent_differs /agent_id']],
    [{ agent_id: 'eve' }, ['unknown_agent /agent_id', 'agent_differs /agent_id']],
    [{ agent_id: 'toString' }, ['unknown_agent /agent_id', 'agent_differs /agent_id']],
    [{ agent_id: undefined }, ['missing_field /agent_id']],
    [
      { agent_id: '' },
      ['empty_id /agent_id', 'unknown_agent /agent_id', 'agent_differs /agent_id'],
    ],
    [{ timestamp: 5 }, ['wrong_type /timestamp']],
    [{ timestamp: 'soon' }, ['bad_timestamp /timestamp']],
    [{ timestamp: '2026-03-01T09:00:01' }, ['zoneless_timestamp /timestamp']],
    [{ timestamp: '2026-03-01T09:00:01+02' }, []],
    [{ parts: undefined }, ['missing_field /parts']],
    [{ parts: {} }, ['wrong_type /parts']],
    [{ message_type: 5 }, ['wrong_type /message_type']],
    [{ message_type: undefined }, ['missing_field /message_type']],
    [{ message_type: 'note' }, ['bad_value /message_type']],
    [
      { model_name: 5, provider_name: 5, provider_response_id: 5 },
      ['wrong_type /model_name', 'wrong_type /provider_name', 'wrong_type /provider_response_id'],
    ],
    [{ usage: 5 }, ['wrong_type /usage']],
    [{ usage: null, finish_reason: null }, []],
    [
      { usage: { input_tokens: '1', output_tokens: null, novel: 'x' } },
      ['wrong_type /usage/input_tokens', 'wrong_type /usage/output_tokens'],
    ],
    [{ finish_reason: 'done' }, ['bad_value /finish_reason']],
    [{ finish_reason: 5 }, ['wrong_type /finish_reason']],
  ])('TP-12 %o', (change, expected) => {
    expect(inMessage(change)).toEqual(expected)
  })

  test('TP-26 each of the five reasons is known; on a request every field of responses is named', () => {
    for (const finish_reason of ['stop', 'length', 'content_filter', 'tool_call', 'error'])
      expect(inMessage({ finish_reason })).toEqual([])
    const fields = {
      model_name: 'm',
      provider_name: 'p',
      provider_response_id: 'r',
      usage: {},
      finish_reason: 'stop',
    }
    expect(inMessage(fields, 'request').toSorted()).toEqual(
      Object.keys(fields)
        .map((name) => `response_field_on_request /${name}`)
        .toSorted(),
    )
    expect(
      inMessage(Object.fromEntries(Object.keys(fields).map((name) => [name, null])), 'request'),
    ).toEqual([])
  })

  test('TP-V3 an agent that nobody registered is named at every place', () => {
    const said = [response('eve', 1, text('x')), response('eve', 2, text('y'))]
    expect(
      issuesIn(thread([agentTurn('eve', said), agentTurn('eve', []), agentTurn('ada', said)])),
    ).toEqual([
      'unknown_agent /turns/0/agent_id',
      'unknown_agent /turns/0/messages/0/agent_id',
      'unknown_agent /turns/0/messages/1/agent_id',
      'unknown_agent /turns/1/agent_id',
      'turns_overlap /turns/1/started_at',
      'turns_overlap /turns/2/started_at',
      'unknown_agent /turns/2/messages/0/agent_id',
      'agent_differs /turns/2/messages/0/agent_id',
      'unknown_agent /turns/2/messages/1/agent_id',
      'agent_differs /turns/2/messages/1/agent_id',
    ])
  })

  test('TP-V5 a message without a readable time does not hide that later ones are out of order', () => {
    const times = [at(5), 'soon', at(4), at(5), undefined, at(3)]
    const said = times.map((timestamp) => ({ ...response('ada', 1, text('x')), timestamp }))
    const turn = { ...agentTurn('ada', said as never), started_at: at(1), completed_at: at(9) }
    expect(issuesIn(thread([turn])).map((line) => line.replace('/turns/0/messages', ''))).toEqual([
      'bad_timestamp /1/timestamp',
      'messages_out_of_order /2/timestamp',
      'missing_field /4/timestamp',
      'messages_out_of_order /5/timestamp',
    ])
  })

  test('TP-14 a system message: each field, and agents that nobody knows', () => {
    const inEvent = (change: object) => inTurn({ ...event('x', 1), ...change })
    expect(inEvent({ source_agent: 'bob', target_agents: ['ada', 'cyd'] })).toEqual([])
    expect(inEvent({ source_agent: null, target_agents: null })).toEqual([])
    expect(inEvent({ event_data: null })).toEqual([])
    expect(inEvent({ timestamp: 5, event_type: 5, event_data: undefined })).toEqual([
      'wrong_type /timestamp',
      'wrong_type /event_type',
      'missing_field /event_data',
    ])
    expect(inEvent({ source_agent: 'eve', target_agents: ['ada', 'eve', 5] })).toEqual([
      'unknown_event_agent /source_agent',
      'unknown_event_agent /target_agents/1',
      'wrong_type /target_agents/2',
    ])
    expect(inEvent({ source_agent: 5, target_agents: 'ada' })).toEqual([
      'wrong_type /source_agent',
      'wrong_type /target_agents',
    ])
  })

  test('TP-06 an entry of the registry: each field', () => {
    const withAgent = (agent: unknown) =>
      issuesIn(thread([], { agents: { 'a/b': agent } })).map((line) =>
        line.replace('/agents/a~1b', ''),
      )
    const good = { agent_id: 'a/b', agent_name: 'A', created_at: at(0) }
    expect(withAgent(good)).toEqual([])
    expect(withAgent({ ...good, model_name: null, provider_name: 'p', config_ref: 'c' })).toEqual(
      [],
    )
    expect(withAgent(5)).toEqual(['wrong_type '])
    expect(withAgent({ ...good, agent_id: 'b' })).toEqual(['agent_key_mismatch /agent_id'])
    expect(withAgent({ ...good, agent_id: 5 })).toEqual(['wrong_type /agent_id'])
    expect(withAgent({})).toEqual([
      'missing_field /agent_id',
      'missing_field /agent_name',
      'missing_field /created_at',
    ])
    expect(withAgent({ ...good, model_name: 5, provider_name: 5, config_ref: 5 })).toEqual([
      'wrong_type /model_name',
      'wrong_type /provider_name',
      'wrong_type /config_ref',
    ])
  })

  test('TP-V4 turns may touch but not overlap any earlier one; messages may share an instant', () => {
    const turn = (start: number, end: number, ...times: number[]) => ({
      ...agentTurn(
        'ada',
        times.map((time) => response('ada', time, text('x'))),
      ),
      started_at: at(start),
      completed_at: at(end),
    })
    const inTurns = (...turns: never[]) => issuesIn(thread(turns))
    expect(inTurns(turn(1, 5) as never, turn(5, 6) as never, userTurn('x', 6) as never)).toEqual([])
    expect(inTurns(turn(1, 9) as never, turn(9, 9) as never, turn(8, 10) as never)).toEqual([
      'turns_overlap /turns/2/started_at',
    ])
    // A short turn inside a long one does not hide the long one from the next.
    expect(
      inTurns(turn(1, 9) as never, turn(2, 3) as never, turn(4, 10) as never).filter((line) =>
        line.startsWith('turns_overlap'),
      ),
    ).toEqual(['turns_overlap /turns/1/started_at', 'turns_overlap /turns/2/started_at'])
    expect(inTurns(turn(5, 4) as never)).toEqual(['turn_ends_before_start /turns/0/completed_at'])
    expect(inTurns(turn(1, 9, 2, 2, 3) as never)).toEqual([])
    expect(inTurns(turn(1, 9, 3, 2, 2, 3) as never)).toEqual([
      'messages_out_of_order /turns/0/messages/1/timestamp',
      'messages_out_of_order /turns/0/messages/2/timestamp',
    ])
    expect(issuesIn(thread([userTurn('x', 3), userTurn('y', 2)]))).toEqual([
      'turns_overlap /turns/1/submitted_at',
    ])
  })

  test('TP-33 a call is left open once the agent has answered a later user turn', () => {
    const asked = agentTurn('ada', [response('ada', 1, call('a'))])
    const answers = (seconds: number) => agentTurn('ada', [response('ada', seconds, text('x'))])
    const left = ['call_left_open /turns/0/messages/0/parts/0/tool_call_id']
    expect(issuesIn(thread([asked]))).toEqual([])
    expect(issuesIn(thread([asked, answers(2)]))).toEqual([])
    expect(issuesIn(thread([asked, userTurn('y', 2)]))).toEqual([])
    expect(issuesIn(thread([asked, userTurn('y', 2), answers(3)]))).toEqual(left)
    const returned = agentTurn('ada', [
      request('ada', 3, answer('a')),
      response('ada', 4, text('x')),
    ])
    expect(issuesIn(thread([asked, userTurn('y', 2), returned]))).toEqual([])
    const onlyRequest = agentTurn('ada', [
      request('ada', 3, { part_kind: 'user-prompt', content: 'z' }),
    ])
    expect(issuesIn(thread([asked, userTurn('y', 2), onlyRequest]))).toEqual([])
  })
})
