import { deepFreeze } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  dump,
  everyKind,
  oldDump,
  pausedRun,
  pydanticPart,
  pydanticRequest,
  pydanticResponse,
} from '../../../test/pydantic-samples.ts'
import { expectRunsToJoin, fixed, thereAndBack } from '../../../test/pydantic-trips.ts'
import {
  agentTurn,
  answer,
  call,
  event,
  fullThread,
  oneOfEachKind,
  response,
  text,
  thread,
  userTurn,
} from '../../../test/samples.ts'
import { parseThread, pendingToolCalls, stringifyThread, validateThread } from '../../index.ts'
import type { AgentTurn, MessagePart, ThreadMessage, Turn } from '../../index.ts'
import {
  PydanticExportError,
  createConfigStore,
  loadConfigs,
  fromPydanticAI,
  toPydanticAI,
  toPydanticAIText,
} from './index.ts'

function ownSamples(): readonly string[] {
  return [everyKind(), pausedRun(), oldDump(), '[]']
}

describe('byte for byte', () => {
  test('TP-53 own histories with every kind of part and content come back unchanged', () => {
    for (const source of ownSamples()) {
      expect(thereAndBack(source)).toBe(source)
      expect(thereAndBack(source, { policy: 'strict' })).toBe(source)
    }
  })

  test('TP-53 histories imported run by run give the same text as the whole', () => {
    for (const source of ownSamples()) expectRunsToJoin(source)
  })

  test(
    'TP-53 unknown fields, other orders of keys and unknown kinds come back under raw',
    { timeout: 300_000 },
    () => {
      const names = fc.constantFrom(
        'zeta',
        'agent_id',
        'message_type',
        'turn_type',
        'status',
        'thinking_id',
        'pydantic_ai',
        'content_ref',
        'system_prompts',
        'submitted_at',
        'name',
        'id',
        '__proto__',
        '7',
        'part_ref',
        'instructions_ref',
        'user_id',
      )
      const change = fc.record({
        pick: fc.nat(),
        name: names,
        value: fc.oneof(
          fc.jsonValue().filter((json) => !JSON.stringify(json).includes('#')),
          fc.constantFrom('#1.0', '#-0'),
        ),
        shuffle: fc.boolean(),
        kind: fc.boolean(),
      })
      fc.assert(
        fc.property(
          fc.constantFrom(everyKind(), pausedRun()),
          fc.array(change, { minLength: 1, maxLength: 5 }),
          (source, changes) => {
            const document = JSON.parse(source) as unknown
            for (const item of changes) disturb(document, item)
            const changed = dump(document)
            const back = thereAndBack(changed, { policy: 'raw' })
            // Only the place where they part: whole histories make unreadable reports.
            expect(difference(back, changed)).toBeUndefined()
          },
        ),
        { seed: 53, numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 500 },
      )
    },
  )

  test('TP-53 keys that look like numbers stay where they were, also beside fields of threads', () => {
    for (const source of [
      '[{"parts":[{"content":"a","part_kind":"text"}],"zz":1,"7":2,"kind":"response"}]',
      '[{"kind":"response","parts":[],"zz":1,"7":2.0,"finish_reason":"odd"}]',
      '[{"parts":[],"agent_id":"x","7":2,"kind":"response"}]',
      '[{"parts":[{"content":"a","part_kind":"user-prompt"}],"turn_id":"x","7":2,"kind":"request"}]',
    ]) {
      const { value, configs } = fromPydanticAI(source, fixed)
      const stored = parseThread(stringifyThread(value))
      for (const thread of [value, stored])
        expect(toPydanticAIText(thread, { configs, policy: 'raw' }).value).toBe(source)
    }
  })

  test('TP-47 provider fields stay where they were, under their names', () => {
    const { value } = fromPydanticAI(everyKind(), fixed)
    const messages = value.turns.flatMap((turn) =>
      turn.turn_type === 'agent' ? turn.messages : [],
    )
    const first = messages[0] as ThreadMessage
    expect(first).toMatchObject({
      provider_url: 'https://api.acme.example',
      provider_details: { finish_reason: 'end' },
      provider_response_id: 'resp_1',
    })
    expect(first.parts[0]).toMatchObject({
      signature: 'c2ln',
      thinking_id: 'rs_1',
      provider_name: 'acme',
    })
    expect(first.usage).toMatchObject({ cost: '0.0000225', output_reasoning_tokens: 1 })
  })

  test('argument text and base64 are kept as found', () => {
    const { value } = fromPydanticAI(everyKind(), fixed)
    const stored = stringifyThread(value)
    expect(stored).toContain(String.raw`"{\"q\": 1.0,  \"ü\": \"\\u00e9\"}"`)
    expect(stored).toContain('"_-79"')
  })

  test('a parsed list will do as input; number text is then as JavaScript has it', () => {
    const messages = JSON.parse(pausedRun()) as unknown[]
    const { value, configs } = fromPydanticAI(messages, fixed)
    expect(toPydanticAI(value, { configs }).value).toEqual(messages)
  })
})

function difference(actual: string, expected: string): string | undefined {
  if (actual === expected) return undefined
  let at = 0
  while (actual[at] === expected[at]) at++
  return `${actual.slice(Math.max(0, at - 80), at + 40)} ≠ ${expected.slice(Math.max(0, at - 80), at + 40)}`
}

interface Disturbance {
  readonly pick: number
  readonly name: string
  readonly value: unknown
  readonly shuffle: boolean
  readonly kind: boolean
}

/** Adds a field to one object of the history, may reverse its keys, and may make a part of unknown kind of it. */
function disturb(document: unknown, { pick, name, value, shuffle, kind }: Disturbance): void {
  const objects: Record<string, unknown>[] = []
  const collect = (item: unknown): void => {
    if (typeof item !== 'object' || item === null) return
    if (!Array.isArray(item)) objects.push(item as Record<string, unknown>)
    Object.values(item).forEach(collect)
  }
  collect(document)
  const target = objects[pick % objects.length]!
  const isMessage = 'parts' in target && 'kind' in target
  if (!(isMessage && ['parts', 'kind', 'timestamp'].includes(name))) {
    Object.defineProperty(target, name, {
      value: structuredClone(value),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  if (kind && 'part_kind' in target) target['part_kind'] = 'hologram'
  if (!shuffle) return
  const entries = Object.entries(target).toReversed()
  for (const [key] of entries) delete target[key]
  for (const [key, item] of entries)
    Object.defineProperty(target, key, {
      value: item,
      enumerable: true,
      writable: true,
      configurable: true,
    })
}

describe('turns', () => {
  test('TP-11 one run is one agent turn; a resume after a pause is another run', () => {
    const { value } = fromPydanticAI(pausedRun(), fixed)
    expect(value.turns.map(({ turn_type }) => turn_type)).toEqual(['user', 'agent', 'agent'])
    const runs = value.turns.slice(1) as AgentTurn[]
    expect(
      runs.map(({ messages }) => messages.map((message) => 'run_id' in message && message.run_id)),
    ).toEqual([
      ['run-1', 'run-1'],
      ['run-2', 'run-2', 'run-2', 'run-2'],
    ])
  })

  // What a deferred run gives when its calls were answered: it begins with returns, not with a prompt.
  test.each([
    { first: 'run-1', second: 'run-1', sizes: [3] },
    { first: 'run-1', second: 'run-2', sizes: [1, 2] },
    { first: 'run-1', second: null, sizes: [1, 2] },
    { first: null, second: 'run-2', sizes: [1, 2] },
    { first: null, second: null, sizes: [1, 2] },
  ])('TP-11 a thread goes on: run $first, then run $second', ({ first, second, sizes }) => {
    const before = fromPydanticAI(
      dump([
        pydanticRequest([pydanticPart.prompt('clean up')], { run_id: first }),
        pydanticResponse([pydanticPart.call('a', {})], { run_id: first }),
      ]),
      fixed,
    ).value
    const { value } = fromPydanticAI(
      dump([
        pydanticRequest([pydanticPart.answer('a', 'gone')], { run_id: second }),
        pydanticResponse([pydanticPart.text('Done.')], { run_id: second }),
      ]),
      { ...fixed, thread: before },
    )
    const runs = value.turns.filter((turn): turn is AgentTurn => turn.turn_type === 'agent')
    expect(runs.map(({ messages }) => messages.length)).toEqual(sizes)
  })

  test('TP-30 the request that starts a run is the user turn and is not repeated in the agent turn', () => {
    const { value } = fromPydanticAI(pausedRun(), fixed)
    expect(value.turns[0]).toMatchObject({
      turn_type: 'user',
      parts: [{ part_kind: 'user-prompt', content: 'clean up' }],
    })
    expect(stringifyThread(value).split('clean up')).toHaveLength(2)
    const again = fromPydanticAI(
      dump([
        pydanticRequest([pydanticPart.prompt('more')], { run_id: 'run-3' }),
        pydanticResponse([pydanticPart.text('ok')], { run_id: 'run-3' }),
      ]),
      { ...fixed, thread: value },
    ).value
    expect(again.turns.slice(0, 3)).toEqual(value.turns)
    expect(again.turns).toHaveLength(5)
  })

  test('TP-30 a prompt of an orchestrator stays in the agent turn', () => {
    const { value, configs } = fromPydanticAI(pausedRun(), { ...fixed, prompts: 'agent' })
    expect(value.turns.map(({ turn_type }) => turn_type)).toEqual(['agent', 'agent'])
    expect(toPydanticAIText(value, { configs }).value).toBe(pausedRun())
  })

  test('TP-31 every part is stored once', () => {
    for (const source of ownSamples()) {
      const { value } = fromPydanticAI(source, fixed)
      const parts = value.turns.flatMap((turn) =>
        turn.turn_type === 'user'
          ? turn.parts
          : turn.messages.flatMap((message) => ('parts' in message ? message.parts : [])),
      )
      expect(new Set(parts).size).toBe(parts.length)
      const count = (JSON.parse(source) as { parts: { part_kind: string }[] }[])
        .flatMap((message) => message.parts)
        .filter(({ part_kind }) => part_kind !== 'system-prompt').length
      expect(parts.length).toBe(count)
    }
  })

  test('TP-35 a paused run ends with open calls; the next begins with their returns', () => {
    const messages = JSON.parse(pausedRun()) as unknown[]
    const paused = fromPydanticAI(messages.slice(0, 3), fixed)
    expect(pendingToolCalls(paused.value).map(({ tool_call_id }) => tool_call_id)).toEqual([
      'a',
      'b',
    ])
    const resumed = fromPydanticAI(messages.slice(3, 5), {
      ...fixed,
      thread: paused.value,
      configs: paused.configs,
    })
    expect(pendingToolCalls(resumed.value)).toEqual([])
    const next = resumed.value.turns[2] as AgentTurn
    expect(next.messages[0]).toMatchObject({
      message_type: 'request',
      parts: [
        { tool_call_id: 'a', status: 'success' },
        { tool_call_id: 'b', status: 'error', outcome: 'denied' },
      ],
    })
    expect(validateThread(resumed.value).issues).toEqual([])
  })

  test('TP-36 a turn starts with its first message and ends with its last', () => {
    const { value } = fromPydanticAI(pausedRun(), fixed)
    for (const turn of value.turns) {
      if (turn.turn_type !== 'agent') continue
      expect(turn.started_at).toBe(turn.messages[0]?.timestamp)
      expect(turn.completed_at).toBe(turn.messages.at(-1)?.timestamp)
    }
    expect(value.created_at).toBe((value.turns[0] as { submitted_at: string }).submitted_at)
    expect(value.updated_at).toBe((value.turns.at(-1) as AgentTurn).completed_at)
  })

  test('TP-37 total_usage adds up the responses, and is absent when none reported', () => {
    const { value } = fromPydanticAI(pausedRun(), fixed)
    const [first, second] = value.turns.slice(1) as AgentTurn[]
    expect(first?.total_usage).toMatchObject({
      input_tokens: 12,
      output_tokens: 3,
      cost: '0.0000225',
    })
    expect(second?.total_usage).toMatchObject({
      input_tokens: 24,
      output_tokens: 6,
      cost: '0.0000450',
      details: { reasoning_tokens: 2 },
    })
    const silent = fromPydanticAI(
      dump([
        pydanticResponse([], {
          usage: { input_tokens: 0, output_tokens: 0, details: {}, cost: null },
        }),
      ]),
      fixed,
    )
    expect(silent.value.turns[0]).not.toHaveProperty('total_usage')
  })

  test('times: the message, its first dated part, a neighbour, the clock; null comes back as null', () => {
    const untimed = dump([
      { ...pydanticRequest([pydanticPart.prompt('a')]), timestamp: null },
      pydanticRequest([pydanticPart.delta()], { timestamp: null }),
      pydanticResponse([pydanticPart.text('b')]),
    ])
    const { value } = fromPydanticAI(untimed, fixed)
    const source = JSON.parse(untimed) as { parts: { timestamp: string }[] }[]
    expect(value.turns[0]).toMatchObject({
      submitted_at: source[0]!.parts[0]!.timestamp,
      pydantic_ai: { timestamp: null },
    })
    expect(value.turns[1]).toMatchObject({
      messages: [{ timestamp: source[0]!.parts[0]!.timestamp }, {}],
    })
    expect(thereAndBack(untimed)).toBe(untimed)
    const timeless = fromPydanticAI(dump([pydanticRequest([], { timestamp: null })]), fixed)
    expect(timeless.value.created_at).toBe('2026-01-01T00:00:00.000Z')
  })

  test('TP-06 a new thread has the ids, names and times that it was given', () => {
    const first = pydanticRequest([pydanticPart.prompt('hi')])
    const last = pydanticResponse([pydanticPart.text('ho')], {
      model_name: 'm',
      provider_name: 'p',
    })
    const { turns, ...root } = fromPydanticAI([first, last], { ...fixed, agentName: 'Ada' }).value
    expect(turns).toHaveLength(2)
    expect(root).toEqual({
      version: '2.0.0',
      thread_id: 't',
      created_at: first['timestamp'],
      updated_at: last['timestamp'],
      agents: {
        ada: {
          agent_id: 'ada',
          agent_name: 'Ada',
          model_name: 'm',
          provider_name: 'p',
          created_at: first['timestamp'],
        },
      },
    })
  })

  test('TP-40 a thread that goes on is another object: its own turns and times stay as they were', () => {
    const run = (id: string) => ({ run_id: id })
    const asked = pydanticRequest([pydanticPart.prompt('go')], run('r1'))
    const called = pydanticResponse([pydanticPart.call('a', {})], run('r1'))
    const returned = pydanticRequest([pydanticPart.answer('a', 'gone')], run('r1'))
    const before = deepFreeze(fromPydanticAI([asked, called], fixed).value)
    const { value } = fromPydanticAI([returned], { ...fixed, thread: before })
    expect(value.turns).toMatchObject([
      {},
      {
        started_at: called['timestamp'],
        completed_at: returned['timestamp'],
        messages: [{ message_type: 'response' }, { message_type: 'request' }],
      },
    ])
    expect(value.updated_at).toBe(returned['timestamp'])
    // Nothing new moves no time.
    expect(fromPydanticAI([], { ...fixed, thread: before }).value).toEqual(before)
    // The same run id of another agent is another run.
    const other = fromPydanticAI([returned], { ...fixed, agentId: 'bob', thread: before }).value
    expect(other.turns.map((turn) => 'agent_id' in turn && turn.agent_id)).toEqual([
      false,
      'ada',
      'bob',
    ])
    // An event at the end of a run does not end it.
    const [user, agent] = before.turns as [Turn, AgentTurn]
    const noted = { ...agent, messages: [...agent.messages, event('x', 1)] }
    const resumed = fromPydanticAI([returned], {
      ...fixed,
      thread: { ...before, turns: [user, noted] },
    }).value
    expect(resumed.turns).toHaveLength(2)
    // Further input of the same run is part of it, also right after the prompt that began it.
    const steered = fromPydanticAI(
      [pydanticRequest([pydanticPart.prompt('now')], run('r1')), called],
      {
        ...fixed,
        thread: fromPydanticAI([asked], fixed).value,
      },
    ).value
    expect(steered.turns.map(({ turn_type }) => turn_type)).toEqual(['user', 'agent'])
  })

  test.each([
    [true, [pydanticPart.prompt('a')]],
    [true, [pydanticPart.system('s'), pydanticPart.prompt('a')]],
    [true, [pydanticPart.answer('x', 1), pydanticPart.answer('y', 1), pydanticPart.prompt('a')]],
    [true, [pydanticPart.speech('user')]],
    [false, [pydanticPart.speech('assistant')]],
    [false, [pydanticPart.answer('x', 1)]],
    [false, [pydanticPart.retry('again', null, 'x')]],
    [false, []],
  ])(
    'TP-30 a request is the turn of a person (%s) if a prompt or speech of the user is in it',
    (isUser, parts) => {
      const { value } = fromPydanticAI([pydanticRequest(parts)], fixed)
      expect(value.turns.map(({ turn_type }) => turn_type)).toEqual([isUser ? 'user' : 'agent'])
    },
  )

  test('TP-36 a message without a time has that of the message before it', () => {
    const untimed = (...parts: never[]) => pydanticResponse(parts, { timestamp: null })
    const [first, second] = [pydanticResponse([]), pydanticResponse([])]
    const { value } = fromPydanticAI([untimed(), first, untimed(), second, untimed()], fixed)
    const [one, two] = [first['timestamp'], second['timestamp']]
    const { messages, ...turn } = value.turns[0] as AgentTurn
    expect(messages.map(({ timestamp }) => timestamp)).toEqual([one, one, one, two, two])
    expect(turn).toMatchObject({ started_at: one, completed_at: two })
  })

  test('imported threads are valid', () => {
    for (const source of [everyKind(), pausedRun()]) {
      const { value } = fromPydanticAI(source, fixed)
      const errors = validateThread(value).issues.filter(({ severity }) => severity === 'error')
      expect(errors.filter(({ code }) => code !== 'return_without_call')).toEqual([])
    }
  })

  test('what is no history is a typed error; a message of unknown kind is kept as an event', () => {
    expect(() => fromPydanticAI('{"messages":[]}')).toThrow(
      expect.objectContaining({ code: 'INVALID_PYDANTIC_HISTORY' }),
    )
    const odd = dump([
      { kind: 'summary', text: 'so far', n: '#1.0' },
      7,
      { kind: 'request', parts: null },
    ])
    expect(thereAndBack(odd, { policy: 'raw' })).toBe(odd)
    const { value } = fromPydanticAI(odd, fixed)
    const skipped = toPydanticAI(value)
    expect(skipped.value).toEqual([])
    expect(skipped.lost.map(({ reason }) => reason)).toEqual(
      Array(3).fill('unknown kind of message'),
    )
  })
})

describe('system prompts and instructions', () => {
  test('TP-27 no system prompt and no instruction is stored in the thread', () => {
    const { value, configs } = fromPydanticAI(everyKind(), fixed)
    const stored = stringifyThread(value)
    for (const secret of ['You are kind.', 'And brief.', 'Answer in Dutch.'])
      expect(stored).not.toContain(secret)
    expect(validateThread(value).issues.some(({ code }) => code === 'inline_system_prompt')).toBe(
      false,
    )
    expect(value.turns[0]).toMatchObject({ system_prompts: [{ at: 0 }, { at: 1 }] })
    expect(toPydanticAIText(value, { configs }).value).toBe(everyKind())
  })

  test('the same text is stored once, under its hash', () => {
    const configs = createConfigStore()
    fromPydanticAI(everyKind(), { ...fixed, configs })
    fromPydanticAI(everyKind(), { ...fixed, configs })
    expect(Object.values(configs.entries()).toSorted()).toEqual([
      'And brief.',
      'Answer in Dutch.',
      'You are kind.',
    ])
    for (const ref of Object.keys(configs.entries())) expect(ref).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test('a store that answers later is loaded first', async () => {
    const { value, configs } = fromPydanticAI(everyKind(), fixed)
    const asked: string[] = []
    const loaded = await loadConfigs(value, async (ref) => {
      asked.push(ref)
      return configs.get(ref)
    })
    expect(asked).toHaveLength(3)
    expect(toPydanticAIText(value, { configs: loaded }).value).toBe(everyKind())
  })

  test('TP-28 every prompt and instruction of every message is loaded, in whatever form it was', async () => {
    const told = (instructions: string) => ({ instructions, run_id: 'r' })
    const odd = { ...pydanticPart.system('x'), content: ['a', 'list'] }
    const source = dump([
      pydanticRequest([odd, pydanticPart.prompt('go')], told('one')),
      pydanticResponse([pydanticPart.call('a', {})], { run_id: 'r' }),
      pydanticRequest([pydanticPart.answer('a', 1)], told('two')),
      pydanticResponse([pydanticPart.call('b', {})], { run_id: 'r' }),
      pydanticRequest([pydanticPart.answer('b', 1), pydanticPart.system('later')], told('three')),
    ])
    const { value, configs } = fromPydanticAI(source, fixed)
    const loaded = await loadConfigs(value, async (ref) => configs.get(ref))
    expect(loaded.entries()).toEqual((configs as ReturnType<typeof createConfigStore>).entries())
    expect(Object.keys(loaded.entries())).toHaveLength(5)
    expect(toPydanticAI(value, { configs: loaded }).lost).toEqual([])
    expect(toPydanticAIText(value, { configs: loaded }).value).toBe(source)
  })

  test('TP-38 system prompts are exported where they stood among the other parts', () => {
    const { prompt, system, answer: answered } = pydanticPart
    const parts = [
      system('first'),
      prompt('a'),
      system('second'),
      system('third'),
      prompt('b'),
      system('last'),
    ]
    const source = dump([
      pydanticRequest(parts, { run_id: 'r' }),
      pydanticResponse([pydanticPart.call('a', {}), pydanticPart.call('b', {})], { run_id: 'r' }),
      pydanticRequest([answered('a', 1), system('between'), answered('b', 2)], { run_id: 'r' }),
    ])
    const { value, configs } = fromPydanticAI(source, fixed)
    const said = toPydanticAI(value, { configs }).value.map((message) =>
      message.parts.map(({ content }) => content),
    )
    expect(said[0]).toEqual(['first', 'a', 'second', 'third', 'b', 'last'])
    expect(said[2]).toEqual([1, 'between', 2])
    expect(toPydanticAIText(value, { configs }).value).toBe(source)
  })

  test('without the store the prompts are reported as lost, and the rest comes back', () => {
    const { value } = fromPydanticAI(everyKind(), fixed)
    const { value: messages, lost } = toPydanticAI(value)
    expect(lost.map(({ pointer }) => pointer)).toEqual([
      '/turns/0/system_prompts/0',
      '/turns/0/system_prompts/1',
      '/turns/0/instructions_ref',
      '/turns/1/messages/1/instructions_ref',
    ])
    expect(messages[0]?.parts).toHaveLength(1)
    expect(messages[0]?.['instructions']).toBeNull()
  })

  test('inline keeps them in the thread, where asked for', () => {
    const { value } = fromPydanticAI(everyKind(), { ...fixed, system: 'inline' })
    expect(stringifyThread(value)).toContain('You are kind.')
    expect(toPydanticAIText(value).value).toBe(everyKind())
  })
})

describe('threads that were not born in Pydantic AI', () => {
  test('TP-28 the host can put a system prompt first, as its own request', () => {
    const { value } = toPydanticAI(thread([userTurn('hi')]), { systemPrompt: 'You are Ada.' })
    expect(value[0]).toEqual({
      kind: 'request',
      parts: [{ part_kind: 'system-prompt', content: 'You are Ada.' }],
    })
    expect(value).toHaveLength(2)
  })

  test('TP-29 a user turn becomes a request with its parts and its time, in Pydantic AI field order', () => {
    const { value } = toPydanticAI(thread([userTurn('hi')]))
    expect(JSON.stringify(value[0])).toBe(
      '{"parts":[{"content":"hi","timestamp":"2026-03-01T09:00:00.000Z","part_kind":"user-prompt"}],"timestamp":"2026-03-01T09:00:00.000Z","instructions":null,"kind":"request","run_id":null,"conversation_id":null,"metadata":null,"state":"complete"}',
    )
  })

  test('the full sample gets the fields of Pydantic AI, and comes back through it', () => {
    const { value, lost } = toPydanticAIText(fullThread())
    expect(lost.map(({ reason }) => reason)).toEqual([
      'system events have no place in Pydantic AI',
      'system events have no place in Pydantic AI',
    ])
    expect(thereAndBack(value)).toBe(value)
    const messages = JSON.parse(value) as { parts: Record<string, unknown>[] }[]
    expect(messages.map(({ parts }) => parts.map((part) => part['part_kind']))).toEqual([
      ['user-prompt'],
      ['thinking', 'text', 'tool-call', 'tool-call'],
      ['tool-return', 'retry-prompt'],
      ['text', 'file'],
      ['user-prompt'],
      ['text'],
    ])
    expect(messages[2]!.parts[0]).toMatchObject({
      outcome: 'success',
      timestamp: expect.any(String) as string,
    })
    expect(messages[2]!.parts[0]).not.toHaveProperty('status')
  })

  test('states of returns: error and validation_error are failed, and a finer outcome wins', () => {
    const outcomes = (part: object): unknown =>
      toPydanticAI(thread([userTurn([call('a')]), userTurn([part as MessagePart])])).value[1]
        ?.parts[0]?.['outcome']
    expect(outcomes(answer('a'))).toBe('success')
    expect(outcomes({ ...answer('a'), status: 'error' })).toBe('failed')
    expect(outcomes({ ...answer('a'), status: 'validation_error' })).toBe('failed')
    expect(outcomes({ ...answer('a'), status: 'error', outcome: 'denied' })).toBe('denied')
  })

  test('the derived counters of the specification are not written, and said to be lost', () => {
    const counted = {
      ...response('ada', 1, text('a')),
      usage: { input_tokens: 1, output_tokens: 2, thinking_tokens: 3, total_tokens: 6 },
    }
    const { value, lost } = toPydanticAI(thread([agentTurn('ada', [counted])]))
    expect(value[0]?.['usage']).toEqual({
      input_tokens: 1,
      cache_write_tokens: 0,
      cache_read_tokens: 0,
      output_tokens: 2,
      input_audio_tokens: 0,
      cache_audio_read_tokens: 0,
      output_audio_tokens: 0,
      details: {},
      cost: null,
    })
    expect(lost.map(({ pointer }) => pointer)).toEqual([
      '/turns/0/messages/0/usage/thinking_tokens',
      '/turns/0/messages/0/usage/total_tokens',
    ])
  })

  test('TP-38 order is kept and events are skipped', () => {
    const document = thread([
      userTurn('1'),
      agentTurn('ada', [
        event('x', 1),
        response('ada', 2, text('2')),
        event('y', 3),
        response('ada', 4, text('3')),
      ]),
      userTurn('4', 9),
    ])
    const { value } = toPydanticAI(document)
    expect(value.map(({ kind, parts }) => `${kind} ${String(parts[0]?.['content'])}`)).toEqual([
      'request 1',
      'response 2',
      'response 3',
      'request 4',
    ])
  })

  test('TP-52 fields that nobody knows, and times of parts, are exported with every kind of part', () => {
    const own = { x_extra: [1], timestamp: '2026-01-01T00:00:00Z' }
    const export_ = (part: object, kind: 'request' | 'response') =>
      toPydanticAI(
        thread([
          agentTurn('ada', [{ ...response('ada', 1, part as MessagePart), message_type: kind }]),
        ]),
        { policy: 'strict' },
      ).value[0]?.parts[0]
    const kinds = { request: 0, response: 0 }
    for (const document of oneOfEachKind()) {
      const [turn] = document.turns
      if (turn?.turn_type !== 'user') continue
      const [part] = turn.parts
      const isRequest = /prompt|tool-return|delta|speech/.test(part!.part_kind)
      const kind = isRequest && !part!.part_kind.startsWith('builtin') ? 'request' : 'response'
      kinds[kind]++
      expect(export_({ ...part, ...own }, kind), part!.part_kind).toMatchObject(own)
    }
    expect(kinds.request).toBeGreaterThan(5)
    expect(kinds.response).toBeGreaterThan(5)
  })

  test('TP-18 thinking with both ids keeps both', () => {
    const thinking = { part_kind: 'thinking', content: '', provider_name: 'p' } as const
    const export_ = (part: object) =>
      toPydanticAI(thread([agentTurn('ada', [response('ada', 1, part as MessagePart)])])).value[0]
        ?.parts[0]
    expect(export_({ ...thinking, id: 'a', thinking_id: 'b' })).toMatchObject({
      id: 'a',
      thinking_id: 'b',
    })
    expect(export_({ ...thinking, thinking_id: 'b' })).toMatchObject({ id: 'b' })
    expect(export_({ ...thinking, thinking_id: 'b' })).not.toHaveProperty('thinking_id')
  })

  test('TP-08 a turn of an unknown type and a file that is only a URL are named as lost', () => {
    const robot = { turn_type: 'robot', messages: [] } as never
    const url = { kind: 'image-url', url: 'u', identifier: 'i' } as const
    const { value, lost } = toPydanticAI(
      thread([robot, agentTurn('ada', [response('ada', 1, { part_kind: 'file', content: url })])]),
    )
    expect(lost).toEqual([
      { pointer: '/turns/0', reason: 'Pydantic AI knows no such turn' },
      { pointer: '/turns/1/messages/0/parts/0', reason: 'files must be binary' },
    ])
    expect(value).toMatchObject([{ kind: 'response', parts: [] }])
  })
})

describe('what Pydantic AI would refuse', () => {
  const hologram = { part_kind: 'hologram', data: 1 } as unknown as MessagePart
  const document = thread([
    userTurn([{ part_kind: 'user-prompt', content: ['a', { kind: 'scent' } as never] }, hologram]),
    agentTurn('ada', [
      {
        ...response('ada', 1, call('a', 'look_up', [1]), text('b'), {
          part_kind: 'user-prompt',
          content: 'wrong side',
        }),
        finish_reason: 'tired' as never,
      },
    ]),
  ])
  const places = [
    '/turns/0/parts/0/content/1',
    '/turns/0/parts/1',
    '/turns/1/messages/0/parts/0',
    '/turns/1/messages/0/parts/2',
    '/turns/1/messages/0/finish_reason',
  ]

  test('skip leaves it out and says what and where', () => {
    const { value, lost } = toPydanticAI(document)
    expect(lost.map(({ pointer }) => pointer)).toEqual(places)
    expect(value.map(({ parts }) => parts.map(({ part_kind }) => part_kind))).toEqual([
      ['user-prompt'],
      ['text'],
    ])
    expect(value[0]?.parts[0]?.['content']).toEqual(['a'])
    expect(value[1]?.['finish_reason']).toBeNull()
  })

  test('strict throws with all of it', () => {
    let error: unknown
    try {
      toPydanticAI(document, { policy: 'strict' })
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(PydanticExportError)
    expect(error).toMatchObject({
      code: 'PYDANTIC_REFUSES',
      refused: places.map((pointer) => ({ pointer })),
    })
  })

  test('raw writes it all', () => {
    const { value, lost } = toPydanticAI(document, { policy: 'raw' })
    expect(lost).toEqual([])
    expect(value[0]?.parts[1]).toMatchObject({ part_kind: 'hologram', data: 1 })
    expect(value[1]?.['finish_reason']).toBe('tired')
  })

  test('an older reader can be described by the kinds it knows', () => {
    const { value, configs } = fromPydanticAI(everyKind(), fixed)
    const { value: messages, lost } = toPydanticAI(value, {
      configs,
      partKinds: [
        'system-prompt',
        'user-prompt',
        'text',
        'tool-call',
        'tool-return',
        'retry-prompt',
        'thinking',
      ],
    })
    expect(messages.flatMap(({ parts }) => parts.map(({ part_kind }) => part_kind))).not.toContain(
      'speech',
    )
    expect(lost).toHaveLength(7)
    const newer = toPydanticAI(thread([userTurn([hologram])]), { partKinds: ['hologram'] })
    expect(newer.lost).toEqual([])
  })

  test('the thread survives every policy unchanged', () => {
    const before = stringifyThread(document)
    for (const policy of ['skip', 'raw'] as const) toPydanticAI(document, { policy })
    expect(stringifyThread(document)).toBe(before)
  })
})

test('an imported thread survives being stored as text', () => {
  const { value } = fromPydanticAI(pausedRun(), fixed)
  const stored = stringifyThread(value)
  expect(stringifyThread(parseThread(stored, { profile: 'lenient' }))).toBe(stored)
})

describe('what later versions may write', () => {
  /** Changes, removes or adds one value anywhere in a history. */
  const mutated = fc
    .record({
      source: fc.constantFrom(everyKind(), pausedRun(), oldDump()),
      place: fc.nat(),
      value: fc.oneof(
        fc
          .jsonValue({ maxDepth: 1 })
          .filter((value) => !JSON.stringify(value).includes('__proto__')),
        fc.constantFrom('a new word', '', null, 0, [], {}, { part_kind: 'pydantic_ai.part' }),
      ),
      how: fc.constantFrom('change', 'change', 'change', 'remove', 'add'),
    })
    .map(({ source, place, value, how }) => {
      const history = JSON.parse(source) as unknown
      const places: { holder: Record<string, unknown>; key: string }[] = []
      const walk = (holder: unknown): void => {
        if (typeof holder !== 'object' || holder === null) return
        for (const key of Object.keys(holder)) {
          places.push({ holder: holder as Record<string, unknown>, key })
          walk((holder as Record<string, unknown>)[key])
        }
      }
      walk(history)
      const { holder, key } = places[place % places.length]!
      if (how === 'add' && !Array.isArray(holder)) holder[`${key}_later`] = value
      else if (how === 'remove' && !Array.isArray(holder)) delete holder[key]
      else holder[key] = value
      return JSON.stringify(history)
    })

  test('an import never makes a thread that the reader refuses, and gives back every byte', () => {
    fc.assert(
      fc.property(mutated, (source) => {
        const { value, configs } = fromPydanticAI(source, fixed)
        const stored = parseThread(stringifyThread(value))
        expect(toPydanticAIText(stored, { configs, policy: 'raw' }).value).toBe(source)
      }),
      { seed: 53, numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 1500 },
    )
  })

  test('an unknown finish reason and odd fields come back, but strict refuses the finish reason', () => {
    const source = JSON.stringify([
      pydanticRequest([pydanticPart.prompt('Hi')]),
      pydanticResponse([pydanticPart.text('Hello')], {
        finish_reason: 'context_exhausted',
        model_name: { family: 'x' },
        usage: 'later',
      }),
    ])
    const { value, configs } = fromPydanticAI(source, fixed)
    const stored = parseThread(stringifyThread(value))
    expect(validateThread(stored).wellFormed).toBe(true)
    for (const policy of ['skip', 'raw'] as const)
      expect(toPydanticAIText(stored, { configs, policy })).toEqual({ value: source, lost: [] })
    expect(() => toPydanticAIText(stored, { configs, policy: 'strict' })).toThrow(
      expect.objectContaining({
        code: 'PYDANTIC_REFUSES',
        refused: [
          { pointer: '/turns/1/messages/0/finish_reason', reason: 'unknown finish reason' },
        ],
      }) as Error,
    )
  })
})
