import {
  agent,
  AgentState,
  subagent,
  type Agent,
  type AgentContext,
  type AgentStreamEvent,
  type GenerateResult,
  type ModellessAgent,
  type SubagentEvent,
} from '@skein/agents'
import { loop, react } from '@skein/agents/execution'
import {
  AssistantMessage,
  isAssistantMessage,
  UserMessage,
  withToolContext,
  type Middleware,
  type Tool,
  type Turn,
} from '@skein/ai'
import { addUsage } from '@skein/ai/engine'
import { calls, fails, says, scripted, waits, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { anonymous, collect, recordingStore } from './support/state.ts'
import { add, probeLog } from './support/tools.ts'

const start = AgentState.initial()
const parameters = { type: 'object', properties: { query: { type: 'string' } } }
const adding = calls('add', { a: 1, b: 1 })

function helper(
  child: Agent | ModellessAgent,
  more: { sharesBudget?: boolean; name?: string } = {},
): Tool {
  return subagent<{ query?: string }>({
    name: 'helper',
    description: 'Helps.',
    parameters,
    agent: child,
    prompt: ({ query = 'nothing' }) => `Find: ${query}`,
    ...more,
  })
}

describe('context', () => {
  test('UAP-101 a tool with one parameter gets the arguments alone', async () => {
    const counts: number[] = []
    const plain: Tool = {
      ...add,
      name: 'plain',
      run(_params: unknown) {
        counts.push(arguments.length)
        return null
      },
    }
    const marked = withToolContext({
      ...add,
      name: 'marked',
      run(...given: unknown[]) {
        counts.push(given.length)
        return null
      },
    })
    const model = scripted([calls('plain'), calls('marked'), says('ok')])
    await agent({ model, tools: [plain, marked] }).generate('x', start)
    expect(counts).toEqual([1, 2])
  })

  test('UAP-103 UAP-104 a sub-agent uses its own model, or its caller’s with its config', async () => {
    const own = scripted([says('mine')])
    const parentModel = scripted([
      [calls('own'), calls('lent')],
      says('lent to the child'),
      says('done'),
    ])
    const config = { headers: { 'x-parent': 'yes' } }
    const tools = [
      helper(agent({ model: own }), { name: 'own' }),
      helper(agent({ tools: [add], system: 'Child.' }), { name: 'lent' }),
    ]
    await agent({ model: parentModel, config, tools, system: 'Parent.' }).generate('x', start)
    expect(own.requests).toHaveLength(1)
    expect(own.requests[0]!.config.headers).toBeUndefined()
    expect(parentModel.requests.map(({ system }) => system)).toEqual([
      'Parent.',
      'Child.',
      'Parent.',
    ])
    expect(parentModel.requests[1]!.config.headers).toEqual({ 'x-parent': 'yes' })
  })

  test('UAP-105 whose model it is, is decided when it runs', async () => {
    const tool = helper(agent({ system: 'Child.' }))
    const models = [1, 2].map(() => scripted([calls('helper'), says('inner'), says('outer')]))
    for (const model of models) await agent({ model, tools: [tool] }).generate('x', start)
    for (const { requests } of models)
      expect(requests.map(({ system }) => system)).toContain('Child.')
  })
})

describe('order of tools', () => {
  const run = async (script: readonly ScriptStep[], tools: readonly Tool[]) =>
    agent({ model: scripted(script), tools }).generate('x', start)

  test('UAP-106 a sequential tool is done before the others start', async () => {
    const { probe, names } = probeLog()
    await run(
      [[calls('a'), calls('first'), calls('b')], says('ok')],
      [probe('a'), probe('first', { sequential: true }), probe('b')],
    )
    expect(names()).toEqual(['first start', 'first end', 'a start', 'b start', 'a end', 'b end'])
  })

  test('UAP-107 a dependent tool waits, within a message and across rounds, and learns when it cannot run', async () => {
    const { probe, names } = probeLog()
    const read = probe('read')
    const write = probe('write', { dependsOn: ['read'] })
    await run([[calls('write'), calls('read')], says('ok')], [read, write])
    expect(names()).toEqual(['read start', 'read end', 'write start', 'write end'])
    const across = await run([calls('read'), calls('write'), says('ok')], [read, write])
    expect(across.turn.toolExecutions.every(({ isError }) => !isError)).toBe(true)
    const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(across.state)))
    const later = await agent({
      model: scripted([calls('write'), says('ok')]),
      tools: [read, write],
    }).generate('y', restored)
    expect(later.turn.toolExecutions).toMatchObject([{ toolName: 'write', isError: false }])
    const never = await run([calls('write'), says('ok')], [read, write])
    expect(never.turn.toolExecutions[0]).toMatchObject({
      isError: true,
      result: expect.stringContaining('read'),
    })
    const broken = probe('read', { run: () => Promise.reject(new Error('no')) })
    const failed = await run([[calls('read'), calls('write')], says('ok')], [broken, write])
    expect(failed.turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, true])
  })

  test('UAP-108 an order that came with the calls is kept, from a middleware or in a restored state', async () => {
    const ordered = new AssistantMessage('', [
      { toolCallId: 'two', toolName: 'b', arguments: {}, after: ['one', 'no such call'] },
      { toolCallId: 'one', toolName: 'a', arguments: {} },
    ])
    const setsOrder: Middleware = {
      name: 'order',
      onResponse: (context) => {
        const turn = context.response as Turn
        if (turn.response.hasToolCalls)
          context.response = { ...turn, response: ordered, messages: [ordered] }
      },
    }
    const expected = ['a start', 'a end', 'b start', 'b end']
    const { probe, names } = probeLog()
    const worker = agent({
      model: scripted([[calls('b'), calls('a')], says('ok')]),
      tools: [probe('a'), probe('b')],
      llmMiddleware: [setsOrder],
    })
    await collect(worker.stream('x', start))
    expect(names()).toEqual(expected)
    const again = probeLog()
    const restored = agent({
      model: scripted([says('ok')]),
      tools: [again.probe('a'), again.probe('b')],
    })
    await restored.resume(start.withMessages([new UserMessage('x'), ordered]))
    expect(again.names()).toEqual(expected)
  })

  test('UAP-109 UAP-110 calls overlap by default, a cycle runs one by one, and each has one result in call order', async () => {
    const { probe, names } = probeLog()
    await run([[calls('a'), calls('b')], says('ok')], [probe('a'), probe('b')])
    expect(names().slice(0, 2)).toEqual(['a start', 'b start'])
    const cycle = probeLog()
    const tools = [
      cycle.probe('c', { dependsOn: ['d'] }),
      cycle.probe('d', { dependsOn: ['c'] }),
      cycle.probe('e', { dependsOn: ['nowhere'] }),
    ]
    const { state, turn } = await run(
      [[calls('d'), calls('c'), calls('e'), calls('missing')], says('ok')],
      tools,
    )
    expect(cycle.names().filter((name) => !name.startsWith('e'))).toEqual([
      'd start',
      'd end',
      'c start',
      'c end',
    ])
    const asked = state.messages.filter(isAssistantMessage)[0]!.toolCalls!.map((c) => c.toolCallId)
    expect(turn.toolExecutions.map(({ toolCallId }) => toolCallId)).toEqual(asked)
    expect(state.messages[2]).toMatchObject({
      results: asked.map((toolCallId) => ({ toolCallId })),
    })
    expect(turn.warnings.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['dependency_cycle', 'unknown_dependency']),
    )
  })
})

/** The tool that UAP §8.7 writes out by hand. */
function handWritten(child: Agent): Tool {
  return {
    name: 'explore',
    description: 'Explores.',
    parameters,
    run: async ({ query }: { query: string }, context: AgentContext) => {
      const subagentId = crypto.randomUUID()
      const identity = {
        subagentId,
        subagentType: 'explorer',
        parentToolCallId: context.toolCallId,
      }
      context.onSubagentEvent({
        type: 'subagent_start',
        ...identity,
        prompt: query,
        timestamp: Date.now(),
      })
      const stream = child.stream(query, AgentState.initial())
      for await (const innerEvent of stream)
        context.onSubagentEvent({ type: 'subagent_event', ...identity, innerEvent })
      const { turn } = await stream.result
      context.onSubagentEvent({
        type: 'subagent_end',
        ...identity,
        success: true,
        result: turn.response.text,
        timestamp: Date.now(),
        toolExecutions: turn.toolExecutions,
      })
      return turn.response.text
    },
  }
}

const subagentEvents = (events: readonly AgentStreamEvent[]) =>
  events.flatMap(({ uap }) =>
    uap?.type.startsWith('subagent_')
      ? [uap as Extract<typeof uap, { type: SubagentEvent['type'] }>]
      : [],
  )

describe('events', () => {
  const childScript: ScriptStep[] = [adding, says('found it')]
  const parentScript: ScriptStep[] = [
    calls('helper', { query: 'q' }, { id: 'the-call' }),
    says('done'),
  ]

  test('UAP-111 UAP-112 UAP-113 show in the caller’s stream while the tool runs, and name run and call', async () => {
    let resume = (): void => {}
    const held = new Promise<void>((resolve) => (resume = resolve))
    const child = agent({
      model: scripted([says('first'), says('unused')]),
      strategy: { onStepEnd: () => held },
    })
    const parent = agent({ model: scripted(parentScript), tools: [helper(child)] })
    const events: AgentStreamEvent[] = []
    for await (const event of parent.stream('x', start)) {
      events.push(event)
      const { uap } = event
      // The child is held until its text has been seen here.
      if (uap?.type === 'subagent_event' && uap.data.innerEvent.upp?.type === 'message_stop')
        resume()
    }
    const told = subagentEvents(events)
    expect(new Set(told.map(({ data }) => data.subagentId)).size).toBe(1)
    for (const { data, agentId, step } of told) {
      expect(data.parentToolCallId).toBe('the-call')
      expect(data.subagentType).toBe('helper')
      expect([agentId, step]).toEqual([parent.id, 1])
    }
    const end = events.findIndex(({ upp }) => upp?.type === 'tool_execution_end')
    const ended = events.findIndex(({ uap }) => uap?.type === 'subagent_end')
    expect(ended).toBeLessThan(end)
  })

  test('UAP-114 UAP-117 start comes before the child is asked; each event carries its data', async () => {
    const asked: number[] = []
    const seen: SubagentEvent[] = []
    const model = scripted((_, index) => {
      asked.push(seen.length)
      return index === 0 ? adding : says('found it')
    })
    const tool = helper(agent({ model, tools: [add] }))
    const run = tool.run as (params: unknown, context: unknown) => Promise<unknown>
    const result = await run(
      { query: 'q' },
      {
        toolCallId: 'c',
        streaming: true,
        signal: new AbortController().signal,
        onSubagentEvent: (event: SubagentEvent) => seen.push(event),
      },
    )
    expect(result).toBe('found it')
    expect(asked[0]).toBeGreaterThan(0)
    expect(seen[0]).toMatchObject({
      type: 'subagent_start',
      prompt: 'Find: q',
      timestamp: expect.any(Number),
    })
    expect(seen.at(-1)).toMatchObject({
      type: 'subagent_end',
      success: true,
      result: 'found it',
      timestamp: expect.any(Number),
      toolExecutions: [{ toolName: 'add', arguments: { a: 1, b: 1 }, result: 2 }],
      usage: { totalTokens: expect.any(Number) },
    })
    expect(seen.slice(1, -1).every(({ type }) => type === 'subagent_event')).toBe(true)
  })

  test('UAP-115 every start has exactly one end: success, failure, abort', async () => {
    const broken = fails('broken')
    const cases: [ScriptStep[], boolean][] = [
      [[says('ok')], false],
      [[broken], false],
      [[[says('part'), waits(Infinity)]], true],
    ]
    const ends: unknown[] = []
    for (const [script, aborts] of cases) {
      const parent = agent({
        model: scripted(parentScript),
        tools: [helper(agent({ model: scripted(script) }))],
      })
      const stream = parent.stream('x', start)
      const events: AgentStreamEvent[] = []
      try {
        for await (const event of stream) {
          events.push(event)
          if (aborts && event.uap?.type === 'subagent_event') stream.abort()
        }
      } catch (error) {
        expect(error).toMatchObject({ code: 'CANCELLED' })
      }
      const told = subagentEvents(events)
      expect(told.filter(({ type }) => type === 'subagent_start')).toHaveLength(1)
      const ended = told.filter(({ type }) => type === 'subagent_end')
      expect(ended).toHaveLength(1)
      const { success, error } = ended[0]!.data as { success: boolean; error?: string }
      ends.push(success)
      if (script[0] === broken) expect(error).toContain('broken')
    }
    expect(ends).toEqual([true, false, false])
  })

  test('UAP-116 the forwarded events are those of the child’s own stream', async () => {
    const child = () => agent({ model: scripted(childScript), tools: [add] })
    const direct = await collect(child().stream('Find: q', start))
    const parent = agent({ model: scripted(parentScript), tools: [helper(child())] })
    const told = subagentEvents(await collect(parent.stream('x', start)))
    const inner = told.flatMap(({ data }) => ('innerEvent' in data ? [data.innerEvent] : []))
    const plain = (events: readonly AgentStreamEvent[]) =>
      anonymous(
        events.map((event) =>
          JSON.parse(JSON.stringify(event).replaceAll(/"agentId":"[^"]*"/g, '"agentId":""')),
        ),
      )
    expect(plain(inner)).toEqual(plain(direct))
    expect(inner.length).toBeGreaterThan(10)
  })

  test('UAP-118 UAP-123 a tool written by hand can tell, and leaves a trace, streaming or not', async () => {
    for (const mode of ['generate', 'stream'] as const) {
      const child = agent({ model: scripted(childScript), tools: [add] })
      const parent = agent({
        model: scripted([calls('explore', { query: 'where' }), says('done')]),
        tools: [handWritten(child)],
      })
      const events: AgentStreamEvent[] = []
      const follow = async (): Promise<GenerateResult> => {
        const stream = parent.stream('x', start)
        for await (const event of stream) events.push(event)
        return stream.result
      }
      const { state } = await (mode === 'generate' ? parent.generate('x', start) : follow())
      if (mode === 'stream')
        expect(subagentEvents(events).map(({ type }) => type)).toEqual(
          expect.arrayContaining(['subagent_start', 'subagent_end']),
        )
      expect(state.subagentTraces).toMatchObject([
        {
          subagentType: 'explorer',
          prompt: 'where',
          success: true,
          result: 'found it',
          toolExecutions: [{ toolName: 'add', result: '2' }],
        },
      ])
    }
  })

  test('parallel sub-agents interleave, each in its own order', async () => {
    const child = agent({ model: scripted(() => says('one two three')) })
    const parent = agent({
      model: scripted([
        [calls('helper', { query: 'a' }), calls('helper', { query: 'b' })],
        says('done'),
      ]),
      tools: [helper(child)],
    })
    const told = subagentEvents(await collect(parent.stream('x', start)))
    const ids = [...new Set(told.map(({ data }) => data.subagentId))]
    expect(ids).toHaveLength(2)
    for (const id of ids) {
      const types = told.filter(({ data }) => data.subagentId === id).map(({ type }) => type)
      expect(types[0]).toBe('subagent_start')
      expect(types.at(-1)).toBe('subagent_end')
    }
    const changes = told.filter(({ data }, i) => told[i - 1]?.data.subagentId !== data.subagentId)
    expect(changes.length).toBeGreaterThan(3)
  })
})

describe('traces', () => {
  test('UAP-119 UAP-121 UAP-124 hold all that the sub-agent ran, after generate and stream', async () => {
    for (const mode of ['generate', 'stream'] as const) {
      const { probe } = probeLog()
      const child = agent({
        model: scripted([[calls('a'), calls('b')], calls('c'), says('all done')]),
        tools: [probe('a'), probe('b'), probe('c', { run: () => ({ deep: [1] }) })],
      })
      const parent = agent({
        model: scripted([calls('helper', {}, { id: 'k' }), says('done')]),
        tools: [helper(child)],
      })
      const { state, turn } =
        mode === 'generate'
          ? await parent.generate('x', start)
          : await parent.stream('x', start).result
      expect(state.subagentTraces).toHaveLength(1)
      const [trace] = state.subagentTraces
      expect(trace).toMatchObject({
        subagentType: 'helper',
        parentToolCallId: 'k',
        prompt: 'Find: nothing',
        success: true,
        result: 'all done',
      })
      expect(trace!.toolExecutions!.map(({ toolName, result }) => [toolName, result])).toEqual([
        ['a', 'a done'],
        ['b', 'b done'],
        ['c', '{"deep":[1]}'],
      ])
      expect(turn.toolExecutions).toMatchObject([{ result: 'all done' }])
    }
  })

  test('UAP-123 are left by a sub-agent that failed as well', async () => {
    const child = agent({ model: scripted([fails('broken')]) })
    const tools = [helper(child)]
    const parent = agent({ model: scripted([calls('helper'), says('done')]), tools })
    const { state } = await parent.generate('x', start)
    expect(state.subagentTraces).toMatchObject([{ success: false, error: 'broken' }])
  })

  test('UAP-127 each execution has name, id, arguments, text, error and duration', async () => {
    let now = 1000
    const clock = { now: () => now }
    const wait = (ms: number, value: unknown) => () => {
      now += ms
      return value
    }
    const child = agent({
      model: scripted([
        [calls('list', { n: 1 }), calls('text', { n: 2 }), calls('bad', { n: 3 })],
        says('found'),
      ]),
      tools: [
        { ...add, name: 'list', sequential: true, run: wait(5, { a: [1, null] }) },
        { ...add, name: 'text', sequential: true, run: wait(7, 'as it is') },
        {
          ...add,
          name: 'bad',
          sequential: true,
          run: () => {
            now += 2
            throw new Error('no')
          },
        },
      ],
      clock,
    })
    const { state } = await agent({
      model: scripted([calls('helper'), says('done')]),
      tools: [helper(child)],
    }).generate('x', start)
    const { toolExecutions, startTime, endTime } = state.subagentTraces[0]!
    expect([startTime, endTime]).toEqual([1000, 1014])
    const toolCallId = expect.any(String) as string
    expect(toolExecutions).toEqual([
      {
        toolName: 'list',
        toolCallId,
        arguments: { n: 1 },
        result: '{"a":[1,null]}',
        isError: false,
        duration: 5,
      },
      {
        toolName: 'text',
        toolCallId,
        arguments: { n: 2 },
        result: 'as it is',
        isError: false,
        duration: 7,
      },
      {
        toolName: 'bad',
        toolCallId,
        arguments: { n: 3 },
        result: expect.stringContaining('no') as string,
        isError: true,
        duration: 2,
      },
    ])
  })

  test('UAP-127 have times in milliseconds, and results as text', async () => {
    const child = agent({
      model: scripted([calls('odd'), fails('then it broke')]),
      tools: [{ ...add, name: 'odd', run: () => null }],
    })
    const before = Date.now()
    const { state } = await agent({
      model: scripted([calls('helper'), says('done')]),
      tools: [helper(child)],
    }).generate('x', start)
    const [trace] = state.subagentTraces
    expect(trace).toMatchObject({
      success: false,
      error: 'then it broke',
      toolExecutions: [{ toolName: 'odd', result: 'null' }],
    })
    expect(trace!.startTime).toBeGreaterThanOrEqual(before)
    expect(trace!.endTime).toBeGreaterThanOrEqual(trace!.startTime)
    expect('result' in trace!).toBe(false)
  })

  test('UAP-125 UAP-126 are in the checkpoint of the step that ran the tool, and come back from it', async () => {
    const checkpoints = recordingStore()
    const child = agent({ model: scripted([adding, says('found')]), tools: [add] })
    const parent = agent({
      model: scripted([calls('helper'), says('done')]),
      tools: [helper(child)],
      checkpoints,
    })
    const { state } = await parent.generate('x', start)
    await parent.flush()
    expect(checkpoints.saves[0]![1].subagentTraces).toHaveLength(1)
    const restored = AgentState.fromJSON(checkpoints.saves[0]![1])
    expect(restored.subagentTraces).toEqual(state.subagentTraces)
  })

  test('sub-agents of sub-agents hang under their caller, and their tokens count', async () => {
    const totals: number[] = []
    for (const mode of ['generate', 'stream'] as const) {
      const leaf = agent({ model: scripted([says('leaf says so')]) })
      const middle = agent({
        model: scripted([calls('helper'), says('middle says so')]),
        tools: [helper(leaf)],
      })
      const parent = agent({
        model: scripted([calls('helper'), says('done')]),
        tools: [helper(middle)],
        strategy: { stopCondition: (_, { usage }) => void totals.push(usage.totalTokens) as never },
      })
      const { state, turn } =
        mode === 'generate'
          ? await parent.generate('x', start)
          : await parent.stream('x', start).result
      expect(state.subagentTraces).toHaveLength(1)
      const [trace] = state.subagentTraces
      expect(trace!.children).toMatchObject([{ result: 'leaf says so' }])
      const all = addUsage(addUsage(turn.usage, trace!.usage!), trace!.children![0]!.usage!)
      expect(totals.at(-1)).toBe(all.totalTokens)
      expect(turn.usage.totalTokens).toBeLessThan(all.totalTokens)
    }
  })
})

describe('control', () => {
  test('a stop condition of the caller is not the sub-agent’s, unless it is shared', async () => {
    for (const sharesBudget of [false, true]) {
      const childModel = scripted([...Array.from({ length: 5 }, () => adding), says('end')])
      const asked: number[] = []
      const child = agent({ model: childModel, tools: [add] })
      const parent = agent({
        model: scripted([calls('helper'), says('done')]),
        tools: [helper(child, { sharesBudget })],
        strategy: {
          stopCondition: (state, { usage }) => {
            asked.push(state.messages.length)
            return usage.totalTokens > 60
          },
        },
      })
      await parent.generate('x', start)
      if (sharesBudget) expect(childModel.requests.length).toBeLessThan(6)
      else expect([childModel.requests.length, asked.length]).toEqual([6, 1])
    }
  })

  test('aborting the caller aborts the sub-agent’s request and tools', async () => {
    const aborted: string[] = []
    const controller = new AbortController()
    const slow: Tool = {
      ...add,
      run: (_: unknown, { signal }: AgentContext) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push('tool')
            reject(new Error('aborted'))
          })
          queueMicrotask(() => controller.abort()) // the tool runs now
        }),
    }
    const child = agent({ model: scripted([adding]), tools: [slow] })
    const parent = agent({ model: scripted([calls('helper')]), tools: [helper(child)] })
    await expect(parent.generate('x', start, { signal: controller.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    expect(aborted).toEqual(['tool'])
  })

  test('strategies mix: a react child under a loop parent', async () => {
    const child = agent({ model: scripted([says('think'), says('act')]), execution: react() })
    const parent = agent({
      model: scripted([calls('helper'), says('done')]),
      tools: [helper(child)],
      execution: loop(),
    })
    const { state } = await parent.generate('x', start)
    expect(state.subagentTraces[0]?.result).toBe('act')
  })

  test('arguments are checked by a Standard Schema', async () => {
    const { z } = await import('zod')
    const tool = subagent({
      name: 'helper',
      description: 'd',
      parameters: z.object({ city: z.string() }),
      agent: agent({ model: scripted([says('sunny')]) }),
      prompt: ({ city }) => city.toUpperCase(),
    })
    const parent = agent({
      model: scripted([calls('helper', { city: 3 }), calls('helper', { city: 'Rom' }), says('ok')]),
      tools: [tool],
    })
    const { turn, state } = await parent.generate('x', start)
    expect(turn.toolExecutions.map(({ isError }) => isError)).toEqual([true, false])
    expect(state.subagentTraces.map(({ prompt }) => prompt)).toEqual(['ROM'])
    expect(tool.parameters).toMatchObject({ properties: { city: { type: 'string' } } })
  })
})
