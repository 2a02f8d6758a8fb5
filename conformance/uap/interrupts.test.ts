/** Calls that wait for someone: plain data out, answers in, at any depth and in any order. */
import {
  agent,
  AgentState,
  subagent,
  type Agent,
  type AgentContext,
  type AgentStateJSON,
  type Answers,
  type GenerateResult,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import { defer, type Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { collect, recordingStore } from './support/state.ts'
import { probeLog } from './support/tools.ts'

const start = AgentState.initial()
const parameters = { type: 'object' }
const restore = ({ state }: GenerateResult) =>
  AgentState.fromJSON(JSON.parse(JSON.stringify(state)))

function approved(name: string, ran: string[]): Tool {
  return {
    name,
    description: 'Needs a yes.',
    parameters,
    approval: (params: unknown) =>
      defer({ kind: 'approval', request: { name, params: params as never } }),
    run: (params: unknown, { answer }: AgentContext) => {
      ran.push(name)
      return `${name} ran with ${JSON.stringify([params, answer])}`
    },
  }
}

describe('one agent', () => {
  const make = (ran: string[]) => {
    const { probe, log } = probeLog()
    const model = scripted([
      [
        calls('pay', { n: 1 }, { id: 'p' }),
        calls('look', {}, { id: 'l' }),
        calls('send', {}, { id: 's' }),
      ],
      says('done'),
    ])
    const tools = [approved('pay', ran), approved('send', ran), probe('look')]
    return { model, log, worker: agent({ model, tools }) }
  }

  test('a run ends with interrupts as data, after its other calls', async () => {
    const { worker, log, model } = make([])
    const result = await worker.generate('x', start)
    expect(result.stopReason).toBe('interrupted')
    expect(result.interrupts).toEqual([
      {
        id: 'p',
        toolCallId: 'p',
        path: [],
        kind: 'approval',
        request: { name: 'pay', params: { n: 1 } },
      },
      {
        id: 's',
        toolCallId: 's',
        path: [],
        kind: 'approval',
        request: { name: 'send', params: {} },
      },
    ])
    expect(JSON.parse(JSON.stringify(result.interrupts))).toEqual(result.interrupts)
    expect(result.turn.openCalls.map(({ toolCallId }) => toolCallId)).toEqual(['p', 's'])
    expect(result.turn.toolExecutions.map(({ toolName }) => toolName)).toEqual(['look'])
    expect(log).toHaveLength(2)
    expect(model.requests).toHaveLength(1)
  })

  test('approve runs the call once, with the token; deny, result and error do not', async () => {
    const answers: [Answers[string], string, boolean][] = [
      [
        { type: 'approve', token: 'T' },
        'pay ran with [{"n":1},{"type":"approve","token":"T"}]',
        false,
      ],
      [{ type: 'deny', reason: 'too dear' }, 'too dear', true],
      [{ type: 'result', value: 'by hand' }, 'by hand', false],
      [{ type: 'error', message: 'bank closed' }, 'bank closed', true],
    ]
    for (const [answer, result, isError] of answers) {
      const ran: string[] = []
      const { worker, log, model } = make(ran)
      const paused = await worker.generate('x', start)
      const done = await worker.resume(restore(paused), {
        p: answer,
        s: { type: 'deny', reason: 'no' },
      })
      expect(done.stopReason).toBe('complete')
      expect(model.requests[1]!.messages.at(-1)).toMatchObject({
        results: [
          { toolCallId: 'p', result, isError },
          { toolCallId: 'l', result: 'look done' },
          { toolCallId: 's', result: 'no', isError: true },
        ],
      })
      expect(log, 'the other call is not run again').toHaveLength(2)
      expect(ran).toEqual(answer.type === 'approve' ? ['pay'] : [])
      expect(done.state.suspension).toBeUndefined()
      expect(done.turn.toolExecutions.map(({ toolName }) => toolName)).toEqual(['pay', 'send'])
    }
  })

  test('answers may come one by one, in any order, each in another process', async () => {
    const ran: string[] = []
    const { worker, log, model } = make(ran)
    const first = await worker.generate('x', start)
    const second = await worker.resume(restore(first), { s: { type: 'approve' } })
    expect(second.interrupts?.map(({ id }) => id)).toEqual(['p'])
    expect(second.stopReason).toBe('interrupted')
    expect(ran).toEqual(['send'])
    expect(model.requests).toHaveLength(1)
    const third = await worker.resume(restore(second), {})
    expect(third.interrupts?.map(({ id }) => id)).toEqual(['p'])
    const done = await worker.resume(restore(third), { p: { type: 'approve' } })
    expect(done.turn.response.text).toBe('done')
    expect(ran).toEqual(['send', 'pay'])
    expect(log).toHaveLength(2)
    expect(done.state.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'assistant',
    ])
    expect(done.state.step).toBe(2)
  })

  test('an answer to nothing, or that is none, is refused and changes nothing', async () => {
    const ran: string[] = []
    const { worker } = make(ran)
    const paused = await worker.generate('x', start)
    for (const answers of [
      { unknown: { type: 'approve' } },
      { l: { type: 'approve' } },
      { p: { type: 'maybe' } },
      { p: { type: 'deny' } },
      { p: null },
    ])
      await expect(worker.resume(paused.state, answers as never)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
      })
    expect(ran).toEqual([])
  })

  test('a new input closes what waits: finished results stay, the others are reported as interrupted', async () => {
    const { worker, model } = make([])
    const paused = await worker.generate('x', start)
    const next = await worker.generate('forget it', restore(paused))
    expect(model.requests[1]!.messages.map(({ type }) => type)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'user',
    ])
    expect(model.requests[1]!.messages[2]).toMatchObject({
      results: [
        { toolCallId: 'p', isError: true, result: expect.stringContaining('interrupted') },
        { toolCallId: 'l', result: 'look done' },
        { toolCallId: 's', isError: true },
      ],
    })
    expect(next.state.suspension).toBeUndefined()
  })

  test('a stream ends in interrupts too, saves them, and is resumed as one', async () => {
    const ran: string[] = []
    const { worker } = make(ran)
    const checkpoints = recordingStore()
    const saving = agent({ ...worker, checkpoints, sessionId: 's1' })
    const stream = saving.stream('x', start)
    const events = await collect(stream)
    expect(events.at(-1)?.uap).toMatchObject({
      type: 'step_end',
      step: 1,
      data: { stopReason: 'interrupted' },
    })
    await saving.flush()
    const saved = await checkpoints.load('s1')
    const again = saving.resumeStream(AgentState.fromJSON(saved), {
      p: { type: 'approve' },
      s: { type: 'approve' },
    })
    const steps = (await collect(again)).flatMap(({ uap }) =>
      uap ? [`${uap.type} ${uap.step}`] : [],
    )
    expect(steps).toEqual([
      'step_start 1',
      'action 1',
      'observation 1',
      'step_end 1',
      'step_start 2',
      'step_end 2',
    ])
    expect((await again.result).turn.response.text).toBe('done')
    expect(ran).toEqual(['pay', 'send'])
  })

  test('a tool that defers by itself runs again with the answer', async () => {
    const seen: unknown[] = []
    const wait: Tool = {
      name: 'wait',
      description: 'd',
      parameters,
      run: (_: unknown, { answer, deferred }: AgentContext) => {
        seen.push([answer, deferred])
        return answer ? 'continued' : defer({ kind: 'timer', request: { at: 5 } })
      },
    }
    const worker = agent({ model: scripted([calls('wait'), says('ok')]), tools: [wait] })
    const paused = await worker.generate('x', start)
    expect(paused.interrupts).toMatchObject([{ kind: 'timer', request: { at: 5 } }])
    const { turn } = await worker.resume(restore(paused), { call_1: { type: 'approve' } })
    expect(turn.toolExecutions).toMatchObject([{ result: 'continued' }])
    expect(seen[1]).toEqual([{ type: 'approve' }, { kind: 'timer', request: { at: 5 } }])
  })

  test('a call behind a waiting one waits with it, then runs', async () => {
    const ran: string[] = []
    const { probe, names } = probeLog()
    const worker = agent({
      model: scripted([[calls('pay'), calls('ship')], says('ok')]),
      tools: [approved('pay', ran), probe('ship', { dependsOn: ['pay'] })],
    })
    const paused = await worker.generate('x', start)
    expect(paused.interrupts).toHaveLength(1)
    expect(paused.turn.openCalls).toHaveLength(2)
    expect(names()).toEqual([])
    const { turn } = await worker.resume(restore(paused), { call_1: { type: 'approve' } })
    expect(names()).toEqual(['ship start', 'ship end'])
    expect(turn.toolExecutions.every(({ isError }) => !isError)).toBe(true)
  })

  test('resuming what is finished asks no one and changes nothing', async () => {
    const model = scripted([says('done')])
    const worker = agent({ model })
    const { state } = await worker.generate('x', start)
    const again = await worker.resume(state)
    expect([again.stopReason, again.turn.response.text, model.requests.length]).toEqual([
      'complete',
      'done',
      1,
    ])
    expect(again.state.messages).toEqual(state.messages)
  })
})

describe.each([
  {
    name: 'react',
    execution: react,
    before: [says('thinking')],
    after: [says('thinking'), says('done')],
  },
  {
    name: 'plan',
    execution: plan,
    before: [
      says(
        '{"steps":[{"id":"a","description":"A","dependsOn":[]},{"id":"b","description":"B","dependsOn":["a"]}]}',
      ),
    ],
    after: [says('did a'), says('done')],
  },
])('$name', ({ execution, before, after }) => {
  test('continues in the middle of its step', async () => {
    const ran: string[] = []
    const model = scripted([...before, calls('pay'), ...after] as ScriptStep[])
    const worker = agent({ model, tools: [approved('pay', ran)], execution: execution() })
    const paused = await worker.generate('x', start)
    expect(paused.stopReason).toBe('interrupted')
    const { step } = paused.state
    const done = await worker.resume(restore(paused), { call_1: { type: 'approve' } })
    expect(done.turn.response.text).toBe('done')
    expect(ran).toEqual(['pay'])
    expect(done.state.step).toBe(step + 1)
    if (execution === plan)
      expect(done.state.plan).toMatchObject([{ status: 'completed' }, { status: 'completed' }])
    else expect(done.state.reasoning).toEqual(['thinking', 'thinking'])
  })
})

describe('sub-agents', () => {
  /** A chain of agents, each calling the next, down to one that needs approval. */
  function chain(depth: number, ran: string[], names: string[] = []): Agent {
    if (depth === 0)
      return agent({
        model: scripted(({ messages }) =>
          messages.length === 1
            ? [calls('pay', {}, { id: `leaf${names.join('')}` }), calls('look')]
            : says('leaf done'),
        ),
        tools: [
          approved('pay', ran),
          { name: 'look', description: 'd', parameters, run: () => void ran.push('look') },
        ],
        execution: loop(),
      })
    return agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? [calls('one'), calls('two')] : says(`level ${depth} done`),
      ),
      tools: ['one', 'two'].map((name) =>
        subagent({
          name,
          description: 'd',
          parameters,
          agent: chain(depth - 1, ran, [...names, name]),
          prompt: () => 'go',
        }),
      ),
    })
  }

  test.each([1, 2, 3])(
    'depth %i: every waiting call is named by its path, and answered in any order',
    async (depth) => {
      for (const mode of ['generate', 'stream'] as const) {
        const ran: string[] = []
        const top = chain(depth, ran)
        let result =
          mode === 'generate' ? await top.generate('x', start) : await top.stream('x', start).result
        const leaves = 2 ** depth
        expect(result.interrupts).toHaveLength(leaves)
        expect(new Set(result.interrupts!.map(({ id }) => id)).size).toBe(leaves)
        for (const { path, toolCallId } of result.interrupts!)
          expect(toolCallId).toBe(`leaf${path.join('')}`)
        expect(ran.filter((name) => name === 'look')).toHaveLength(leaves)
        // From the last to the first, one at a time, each after a trip through JSON.
        for (const { toolCallId, id } of result.interrupts!.toReversed()) {
          const answers: Answers = { [mode === 'generate' ? toolCallId : id]: { type: 'approve' } }
          result =
            mode === 'generate'
              ? await top.resume(restore(result), answers)
              : await top.resumeStream(restore(result), answers).result
        }
        expect(result.interrupts).toBeUndefined()
        expect(result.turn.response.text).toBe(`level ${depth} done`)
        expect(ran.filter((name) => name === 'look')).toHaveLength(leaves)
        expect(ran.filter((name) => name === 'pay')).toHaveLength(leaves)
      }
    },
  )

  test('where two sub-agents use the same call id, the answer must name the interrupt', async () => {
    const ran: string[] = []
    const child = () =>
      agent({ model: scripted([calls('pay'), says('ok')]), tools: [approved('pay', ran)] })
    const tools = ['one', 'two'].map((name) =>
      subagent({ name, description: 'd', parameters, agent: child(), prompt: () => 'go' }),
    )
    const parent = agent({ model: scripted([[calls('one'), calls('two')], says('done')]), tools })
    const paused = await parent.generate('x', start)
    expect(paused.interrupts!.map(({ id, path }) => [id, path])).toEqual([
      ['call_1/call_1', ['one']],
      ['call_2/call_1', ['two']],
    ])
    await expect(
      parent.resume(paused.state, { call_1: { type: 'approve' } }),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      hint: expect.stringContaining('call_2/call_1'),
    })
    const { turn } = await parent.resume(restore(paused), {
      'call_1/call_1': { type: 'approve' },
      'call_2/call_1': { type: 'deny', reason: 'no' },
    })
    expect(turn.response.text).toBe('done')
    expect(ran).toEqual(['pay'])
  })

  test('a tool written by hand over query() is pointed to the helper', async () => {
    const child = agent({ model: scripted([calls('pay')]), tools: [approved('pay', [])] })
    const byHand: Tool = {
      name: 'hand',
      description: 'd',
      parameters,
      run: async () => (await child.query('go')).response.text,
    }
    const { turn } = await agent({
      model: scripted([calls('hand'), says('ok')]),
      tools: [byHand],
    }).generate('x', start)
    expect(turn.toolExecutions[0]).toMatchObject({
      isError: true,
      result: expect.stringContaining('waits for an answer'),
    })
    await expect(
      agent({ model: scripted([calls('pay')]), tools: [approved('pay', [])] }).query('go'),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      hint: expect.stringContaining('subagent('),
    })
  })

  test('so is one over generate() that says whose context it runs in', async () => {
    const child = agent({ model: scripted([calls('pay')]), tools: [approved('pay', [])] })
    const byHand: Tool = {
      name: 'hand',
      description: 'd',
      parameters,
      run: async (_: unknown, parentContext: AgentContext) =>
        (await child.generate('go', start, { parentContext })).turn.response.text,
    }
    const { turn, interrupts } = await agent({
      model: scripted([calls('hand'), says('ok')]),
      tools: [byHand],
    }).generate('x', start)
    expect(interrupts).toBeUndefined()
    expect(turn.toolExecutions[0]).toMatchObject({
      isError: true,
      result: expect.stringContaining('waits for an answer'),
    })
  })

  test('a sub-agent that waited has one trace, of all its parts', async () => {
    const child = agent({
      model: scripted([calls('pay'), says('paid')]),
      tools: [approved('pay', [])],
    })
    const tool = subagent({
      name: 'one',
      description: 'd',
      parameters,
      agent: child,
      prompt: () => 'go',
    })
    const parent = agent({ model: scripted([calls('one'), says('done')]), tools: [tool] })
    const paused = await parent.generate('x', start)
    const { state } = await parent.resume(restore(paused), { call_1: { type: 'approve' } })
    expect(paused.state.subagentTraces).toEqual([])
    expect(state.subagentTraces).toMatchObject([
      { success: true, result: 'paid', prompt: 'go', toolExecutions: [{ toolName: 'pay' }] },
    ])
    const request = paused.state.suspension!.deferred[0]!.request.request
    const { run } = (request as unknown as { state: AgentStateJSON }).state
    expect(run!.usage.totalTokens).toBeGreaterThan(0)
    expect(state.subagentTraces[0]!.usage!.totalTokens).toBeGreaterThan(run!.usage.totalTokens)
    expect(state.run!.subagentUsage).toEqual(state.subagentTraces[0]!.usage)
  })
})
