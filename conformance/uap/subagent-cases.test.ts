/** Sub-agents in the less common cases: resumed, stopped, written by hand, under a strategy of one's own. */
import {
  agent,
  AgentState,
  subagent,
  type AgentContext,
  type AgentOptions,
  type SubagentEvent,
} from '@skein/agents'
import { memoryCheckpoints, type CheckpointStore } from '@skein/agents/checkpoint'
import { recordEvents } from '@skein/agents/testing'
import { defer, UserMessage, type Tool } from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { custom } from './support/custom-strategy.ts'

type CallRecord = Parameters<NonNullable<CheckpointStore['record']>>[1]

const start = AgentState.initial()
const parameters = { type: 'object', properties: {} }
const tool = (name: string, run: Tool['run']): Tool => ({
  name,
  description: 'd',
  parameters,
  run,
})

function kid(
  options: Partial<AgentOptions>,
  more: Partial<Parameters<typeof subagent>[0]> = {},
): Tool {
  const model = scripted(() => says('hi'))
  return subagent({
    name: 'kid',
    description: 'd',
    parameters,
    agent: agent({ model, ...options }),
    prompt: () => 'go',
    ...more,
  })
}

/** Calls `kid` with the id `k`, and the others in the same message; then speaks. */
function caller(tools: readonly Tool[], options: Partial<AgentOptions> = {}) {
  const model = scripted(({ messages }) =>
    messages.at(-1)?.type === 'user'
      ? tools.map(({ name }) => calls(name, {}, { id: name === 'kid' ? 'k' : name }))
      : says('done'),
  )
  return agent({ model, tools, ...options })
}

describe('context', () => {
  test('UAP-100 UAP-101 who declares more than one parameter gets the context, all others the arguments alone', async () => {
    const seen: unknown[] = []
    const see = (name: string, given: readonly unknown[]): void => {
      const { agentId } = (given[1] ?? {}) as Partial<AgentContext>
      seen.push([name, given.length, agentId])
    }
    const tools = [
      tool('none', function () {
        see('none', Array.from(arguments as Iterable<unknown>))
      }),
      tool('one', function (_params: unknown) {
        see('one', Array.from(arguments as Iterable<unknown>))
      }),
      tool('two', (params: unknown, context: unknown) => see('two', [params, context])),
      tool('three', function (_params: unknown, _context: unknown, _more: unknown) {
        see('three', Array.from(arguments as Iterable<unknown>))
      } as unknown as Tool['run']),
    ]
    const approved = tools.map((one) => ({ ...one, approval: () => true }))
    for (const list of [tools, approved])
      for (const options of [{}, { execution: custom() }]) {
        seen.length = 0
        const parent = caller(list, options)
        await parent.generate('x', start)
        expect(seen).toEqual([
          ['none', 1, undefined],
          ['one', 1, undefined],
          ['two', 2, parent.id],
          ['three', 2, parent.id],
        ])
      }
  })

  test('UAP-102 UAP-104 inside a sub-agent it names the sub-agent: its model, its config or none, its id', async () => {
    const seen: Partial<AgentContext>[] = []
    const look = tool('look', (_: unknown, context: AgentContext) => void seen.push(context))
    const script = () =>
      scripted(({ messages }) => (messages.length === 1 ? calls('look') : says('ok')))
    const own = { headers: { 'x-own': '1' } }
    const kids = [
      agent({ model: script(), tools: [look] }),
      agent({ model: script(), tools: [look], config: own }),
      agent({ tools: [look], config: own, system: 'lent' }),
    ]
    const config = { headers: { 'x-parent': '1' } }
    const model = scripted(({ messages, system }) => {
      if (system === 'lent') return messages.length === 1 ? calls('look') : says('ok')
      return messages.length === 1 ? ['0', '1', '2'].map((name) => calls(name)) : says('ok')
    })
    const tools = kids.map((one, index) =>
      subagent({ name: `${index}`, description: 'd', parameters, agent: one, prompt: () => 'go' }),
    )
    const { state } = await agent({ model, config, tools }).generate('x', start)
    expect(state.subagentTraces.map(({ success }) => success)).toEqual([true, true, true])
    const byConfig = (wanted: unknown) => seen.filter(({ parentConfig }) => parentConfig === wanted)
    expect(byConfig(undefined).map(({ agentId, parentModel }) => [agentId, parentModel])).toEqual([
      [kids[0]!.id, kids[0]!.model],
    ])
    expect(byConfig(own).map(({ parentModel }) => parentModel)).toEqual([kids[1]!.model, model])
    const lent = model.requests.filter(({ system }) => system === 'lent')
    expect(lent.map((request) => request.config.headers)).toEqual([own.headers, own.headers])
  })
})

test('UAP-114 the start of a sub-agent is reported before its middleware or anything of it runs', async () => {
  const log: string[] = []
  const middleware = [{ name: 'log', before: () => void log.push('before') }]
  const inner = kid({ middleware })
  const outer: Tool = {
    ...inner,
    run: (params: never, context: AgentContext) => {
      const onSubagentEvent = ({ type }: SubagentEvent): void => void log.push(type)
      return inner.run(params, { ...context, onSubagentEvent } as never)
    },
  }
  await caller([outer]).generate('x', start)
  expect(log).toEqual(['subagent_start', 'before', 'subagent_end'])
})

test('UAP-117 UAP-127 a prompt that is a message is reported as its text, in event and trace', async () => {
  const parent = caller([kid({}, { prompt: () => new UserMessage('find it') })])
  const { events, result } = await recordEvents(parent.stream('x', start))
  const started = events.find(({ uap }) => uap?.type === 'subagent_start')
  expect(started?.uap?.data).toMatchObject({ prompt: 'find it' })
  expect(result?.state.subagentTraces).toMatchObject([{ prompt: 'find it' }])
})

test.each([
  ['', ''],
  [0, 0],
  [false, false],
  [null, 'hi'],
  [undefined, 'hi'],
  [{ a: 1 }, { a: 1 }],
])('UAP-119 a result of %j is reported as %j', async (given, told) => {
  const { turn } = await caller([kid({}, { result: () => given })]).generate('x', start)
  expect(turn.toolExecutions.map(({ result }) => result)).toEqual([told])
})

test('UAP-115 UAP-117 a sub-agent that its time limit stopped tells its end itself, with what it used', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const timeoutMs = 60_000
  const model = scripted(({ messages }) => {
    if (messages.length === 1) return calls('act')
    queueMicrotask(() => vi.advanceTimersByTime(timeoutMs))
    return waits(Infinity)
  })
  let release = (): void => {}
  const other = tool('other', () => new Promise<void>((resolve) => (release = resolve)))
  const stopped = kid({ model, tools: [tool('act', () => 'acted')] }, { timeoutMs })
  const stream = caller([stopped, other]).stream('x', start)
  const ends: unknown[] = []
  for await (const { uap } of stream) {
    if (uap?.type !== 'subagent_end') continue
    ends.push(uap.data)
    release() // the other call of the message runs until here
  }
  const toolExecutions = [{ toolName: 'act', result: 'acted' }]
  const usage = { totalTokens: expect.any(Number) }
  expect(ends).toMatchObject([{ success: false, toolExecutions, usage }])
  const { state } = await stream.result
  expect(state.subagentTraces).toMatchObject([{ success: false, toolExecutions, usage }])
})

describe('a sub-agent that waited for an answer', () => {
  const ask = tool('ask', () => defer({ kind: 'input', request: 'well?' }))
  const script = () =>
    scripted(({ messages }) => {
      if (messages.length === 1) return calls('get', {}, { id: 'g' })
      const asks = [calls('read', {}, { id: 'r' }), calls('ask', {}, { id: 'a' })]
      return messages.length === 3 ? asks : says('hi')
    })
  const tools = [tool('get', () => 'text'), tool('read', () => ({ n: 1 })), ask]

  test('UAP-111 UAP-112 UAP-116 forwards its events when it continues in a stream, under one id', async () => {
    const parent = caller([kid({ model: script(), tools })])
    const first = await recordEvents(parent.stream('x', start))
    const { state } = first.result!
    const second = await recordEvents(
      parent.resumeStream(state, { a: { type: 'result', value: 2 } }),
    )
    const inner = [first, second].map(({ events }) =>
      events.flatMap(({ uap }) =>
        uap?.type === 'subagent_event'
          ? [uap.data.innerEvent.uap?.type ?? uap.data.innerEvent.upp?.type]
          : [],
      ),
    )
    const of = (types: readonly unknown[], type: string) => types.filter((one) => one === type)
    expect(inner.map((types) => of(types, 'step_start').length)).toEqual([2, 2])
    expect(inner.map((types) => of(types, 'text_delta').length > 0)).toEqual([false, true])
    const ids = [...first.events, ...second.events].flatMap(({ uap }) =>
      uap && 'subagentId' in uap.data ? [uap.data.subagentId] : [],
    )
    expect(new Set(ids).size).toBe(1)
    for (const { types } of [first, second]) {
      const told = types.filter((type) => type.startsWith('subagent'))
      expect([told[0], told.at(-1)]).toEqual(['subagent_start', 'subagent_end'])
      expect(new Set(told.slice(1, -1))).toEqual(new Set(['subagent_event']))
    }
    const starts = [first, second].flatMap(({ events }) =>
      events.flatMap(({ uap }) => (uap?.type === 'subagent_start' ? [uap.data] : [])),
    )
    expect(starts[1]).toEqual(starts[0]) // with the prompt and the time of the beginning
  })

  test('UAP-124 UAP-127 has in its trace every call, before and after, with texts as they were', async () => {
    const parent = caller([kid({ model: script(), tools })])
    const { state } = await parent.generate('x', start)
    expect(state.subagentTraces).toEqual([])
    const done = await parent.resume(AgentState.fromJSON(JSON.parse(JSON.stringify(state))), {
      a: { type: 'result', value: 'yes' },
    })
    const [trace] = done.state.subagentTraces
    const list = trace!.toolExecutions!.map(({ toolCallId, result }) => [toolCallId, result])
    expect(list).toEqual([
      ['g', 'text'],
      ['r', '{"n":1}'],
      ['a', 'yes'],
    ])
  })

  test('UAP-121 keeps no other trace of its message from being stored', async () => {
    const other = { ...kid({}), name: 'other' }
    const parent = caller([kid({ model: script(), tools }), other])
    const { state, interrupts } = await parent.generate('x', start)
    expect(interrupts).toHaveLength(1)
    expect(state.subagentTraces.map(({ parentToolCallId }) => parentToolCallId)).toEqual(['other'])
    const { state: end } = await parent.resume(state, { a: { type: 'result', value: 1 } })
    expect(end.subagentTraces.map(({ parentToolCallId }) => parentToolCallId)).toEqual([
      'other',
      'k',
    ])
  })
})

test('UAP-111 UAP-123 a hand-written sub-agent without a start is reported and traced all the same', async () => {
  const identity = { subagentId: 's', subagentType: 't', parentToolCallId: 'hand' }
  const innerEvent = { source: 'uap', uap: { type: 'step_start', step: 1, agentId: 'x', data: {} } }
  const ended = { ...identity, success: true, result: 'r', timestamp: 7 }
  const hand = tool('hand', (_: unknown, { onSubagentEvent }: AgentContext) => {
    onSubagentEvent({ type: 'subagent_event', ...identity, innerEvent } as SubagentEvent)
    onSubagentEvent({ type: 'subagent_end', ...ended })
  })
  const { events, result } = await recordEvents(caller([hand]).stream('x', start))
  const told = events.flatMap(({ uap }) => (uap?.type.startsWith('subagent') ? [uap.data] : []))
  expect(told).toEqual([{ ...identity, innerEvent }, ended])
  expect(result?.state.subagentTraces).toMatchObject([
    { ...identity, prompt: '', startTime: 7, endTime: 7, success: true, result: 'r' },
  ])
})

test('UAP-125 UAP-126 each entry of a journal has the traces of its own call, and a restored state has each once', async () => {
  const store = memoryCheckpoints({ journal: true })
  const entries: CallRecord[] = []
  let saves = 0
  const checkpoints = {
    ...store,
    // Later saves are lost, as after a crash: the state before the calls and the journal remain.
    save: async (id: string, state: never) => (saves++ === 0 ? store.save(id, state) : undefined),
    record: async (id: string, entry: CallRecord) => (
      entries.push(entry),
      store.record!(id, entry)
    ),
  }
  const kids = ['kid', 'two'].map((name) => ({ ...kid({}), name }))
  const parent = caller([...kids, tool('plain', () => 'x')], { checkpoints, sessionId: 's' })
  await parent.generate('x', start)
  const traced = entries.map(({ toolCallId, traces }) => [
    toolCallId,
    traces?.map(({ parentToolCallId }) => parentToolCallId),
  ])
  expect(new Map(traced as never)).toEqual(
    new Map([['k', ['k']], ['two', ['two']], ['plain', undefined]] as never), // prettier-ignore
  )
  await store.record!(
    's',
    entries.find(({ toolCallId }) => toolCallId === 'k')!,
  )
  const restored = AgentState.fromJSON(await store.load('s'))
  const ids = restored.subagentTraces.map(({ parentToolCallId }) => parentToolCallId)
  expect(ids.toSorted()).toEqual(['k', 'two'])
  expect(restored.run!.subagentUsage.totalTokens).toBe(
    restored.subagentTraces.reduce((sum, { usage }) => sum + usage!.totalTokens, 0),
  )
})
