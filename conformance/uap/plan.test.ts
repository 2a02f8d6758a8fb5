import { agent, AgentState, type AgentStateJSON, type PlanStep } from '@skein/agents'
import { plan, type PlanOptions } from '@skein/agents/execution'
import { AssistantMessage, isUserMessage, type LLMCapabilities, UserMessage } from '@skein/ai'
import { calls, fails, says, scripted, stops, waits, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { collect, recordingStore } from './support/state.ts'
import { add, probeLog } from './support/tools.ts'

interface Draft {
  readonly id: string
  readonly dependsOn?: readonly string[]
  readonly tool?: string
}

const start = AgentState.initial()
const steps = (...drafts: Draft[]) =>
  says(
    JSON.stringify({
      steps: drafts.map((draft) => ({ description: `Do ${draft.id}`, dependsOn: [], ...draft })),
    }),
  )

function planner(
  script: readonly ScriptStep[],
  options: PlanOptions = {},
  capabilities: Partial<LLMCapabilities> = {},
) {
  const model = scripted(script, { capabilities })
  return { model, worker: agent({ model, tools: [add], execution: plan(options) }) }
}

/** The steps that ran, in order, under the names in the prompts. */
function order(state: AgentState): string[] {
  const prompts = state.messages
    .filter(isUserMessage)
    .filter(({ metadata }) => metadata?.['uap']?.['phase'] === 'execute')
  return prompts.map(({ text }) => /step "([^"]+)"/.exec(text)?.[1] ?? '')
}

test('UAP-071 the plan is asked for with its schema and without tools', async () => {
  const { model, worker } = planner([steps({ id: 'a' }), says('done')])
  await worker.generate('x', start)
  expect(model.requests[0]!.structure).toMatchObject({ required: ['steps'] })
  expect(model.requests[0]!.tools).toEqual([])
  expect(model.requests[1]!.structure).toBeUndefined()
  expect(model.requests[1]!.tools).toHaveLength(1)
})

test('UAP-071 without structured output a private tool takes the plan; with neither it is refused', async () => {
  const draft = { steps: [{ id: 'a', description: 'A', dependsOn: [] }] }
  const { model, worker } = planner(
    [calls('submit_plan', draft), says('done')],
    {},
    { structuredOutput: false },
  )
  const { state } = await worker.generate('x', start)
  expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['submit_plan'])
  expect(model.requests[0]!.tools[0]!.parameters).toMatchObject({ required: ['steps'] })
  expect(model.requests[1]!.tools.map(({ name }) => name)).toEqual(['add'])
  expect(state.plan).toMatchObject([{ id: 'a', status: 'completed' }])
  expect(state.messages.map(({ type }) => type)).toEqual([
    'user',
    'user',
    'assistant',
    'tool_result',
    'user',
    'assistant',
  ])
  const none = agent({
    model: scripted([], { capabilities: { structuredOutput: false, tools: false } }),
    execution: plan(),
  })
  await expect(none.generate('x', start)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
})

test.each([
  [[{ id: 'c', dependsOn: ['b'] }, { id: 'b', dependsOn: ['a'] }, { id: 'a' }], 'a b c'],
  [
    [
      { id: 'd', dependsOn: ['b', 'c'] },
      { id: 'c', dependsOn: ['a'] },
      { id: 'b', dependsOn: ['a'] },
      { id: 'a' },
    ],
    'a c b d',
  ],
  [[{ id: 'x' }, { id: 'z', dependsOn: ['y'] }, { id: 'y' }], 'x y z'],
])('UAP-072 steps wait for those they depend on (%#)', async (drafts, expected) => {
  const { worker } = planner([steps(...drafts), ...drafts.map(() => says('ok'))])
  const { state } = await worker.generate('x', start)
  expect(order(state)).toEqual(expected.split(' '))
  expect(state.plan!.map(({ id }) => id)).toEqual(drafts.map(({ id }) => id))
})

test('UAP-073 UAP-074 UAP-078 the plan is in the state from planning on, and its steps change there', async () => {
  const seen: string[] = []
  const checkpoints = recordingStore()
  const model = scripted([
    steps({ id: 'a', tool: 'add' }, { id: 'b' }),
    says('did a'),
    says('did b'),
  ])
  const told: AgentState[] = []
  const statuses = ({ plan: list = [] }: { plan?: readonly PlanStep[] }) =>
    list.map((s) => s.status).join(' ')
  const worker = agent({
    model,
    tools: [add],
    execution: plan(),
    checkpoints,
    strategy: {
      onStepStart: (step, state) => void seen.push(`start ${step} ${statuses(state)}`),
      onStepEnd: (step, { state }) => {
        told.push(state)
        seen.push(`end ${step} ${statuses(state)}`)
      },
    },
  })
  const { state } = await worker.generate('x', start)
  await worker.flush()
  expect(seen).toEqual([
    'start 1 ',
    'end 1 pending pending',
    'start 2 in_progress pending',
    'end 2 completed pending',
    'start 3 completed in_progress',
    'end 3 completed completed',
  ])
  expect(told.map(statuses)).toEqual([
    'pending pending',
    'completed pending',
    'completed completed',
  ])
  expect(checkpoints.saves.map(([, json]) => statuses(json))).toEqual(told.map(statuses))
  expect((state.toJSON() as AgentStateJSON).plan).toEqual([
    { id: 'a', description: 'Do a', tool: 'add', dependsOn: [], status: 'completed' },
    { id: 'b', description: 'Do b', dependsOn: [], status: 'completed' },
  ])
})

test('UAP-074 a step that failed says so, in the state, the checkpoint and the event', async () => {
  const checkpoints = recordingStore()
  const model = scripted([
    steps({ id: 'a' }, { id: 'b' }),
    fails(),
    steps({ id: 'c' }),
    says('did c'),
  ])
  const worker = agent({ model, execution: plan(), checkpoints })
  const stream = worker.stream('x', start)
  const events = await collect(stream)
  await worker.flush()
  const { state } = await stream.result
  const ended = events.flatMap(({ uap }) =>
    uap?.type === 'plan_step_end' ? [uap.data.planStep] : [],
  )
  expect(ended.map(({ id, status }) => `${id} ${status}`)).toEqual(['a failed', 'c completed'])
  expect(state.plan?.map(({ id, status }) => `${id} ${status}`)).toEqual([
    'a failed',
    'c completed',
  ])
  const saved = checkpoints.saves.map(([, { plan: list = [] }]) =>
    list.map(({ id, status }) => `${id} ${status}`).join(', '),
  )
  expect(saved).toContain('a failed, b pending')
})

test('UAP-074 a stream tells of the plan within the frame of its steps', async () => {
  const { worker } = planner([steps({ id: 'a' }), calls('add', { a: 1, b: 1 }), says('did a')])
  const events = await collect(worker.stream('x', start))
  expect(events.flatMap(({ uap }) => (uap ? [`${uap.type} ${uap.step}`] : []))).toEqual([
    'step_start 1',
    'plan_created 1',
    'step_end 1',
    'step_start 2',
    'plan_step_start 2',
    'action 2',
    'observation 2',
    'plan_step_end 2',
    'step_end 2',
  ])
})

test('UAP-073 UAP-146 the event of a plan has the plan, and the prompt names the tools', async () => {
  const { model, worker } = planner([steps({ id: 'a' }, { id: 'b' }), says('1'), says('2')])
  const events = await collect(worker.stream('x', start))
  const made = events.flatMap(({ uap }) => (uap?.type === 'plan_created' ? [uap.data] : []))
  const step = (id: string) => ({ id, description: `Do ${id}`, dependsOn: [], status: 'pending' })
  expect(made).toEqual([{ plan: [step('a'), step('b')] }])
  expect(model.requests[0]!.messages.at(-1)!.text).toContain('Tools:\n- add: Adds two numbers.')
})

test('UAP-075 a plan that is too long is cut so that nothing depends on what is gone', async () => {
  const five = [
    { id: 'e', dependsOn: ['d'] },
    { id: 'a' },
    { id: 'd', dependsOn: ['c'] },
    { id: 'b', dependsOn: ['a'] },
    { id: 'c', dependsOn: ['b'] },
  ]
  const { model, worker } = planner([steps(...five), says('1'), says('2'), says('3')], {
    maxPlanSteps: 3,
  })
  const { state, stopReason } = await worker.generate('x', start)
  expect(order(state)).toEqual(['a', 'b', 'c'])
  expect(stopReason).toBe('complete')
  const ids = state.plan!.map(({ id }) => id)
  expect(ids.sort()).toEqual(['a', 'b', 'c'])
  expect(model.requests[0]!.messages.at(-1)!.text).toContain('At most 3 steps.')
  const long = Array.from({ length: 40 }, (_, index) => ({ id: `s${index}` }))
  const free = planner([steps(...long), ...long.map(() => says('ok'))])
  expect((await free.worker.generate('x', start)).state.plan).toHaveLength(40)
})

describe('a step that fails', () => {
  test('UAP-076 leads to a new plan that keeps what is done', async () => {
    const { model, worker } = planner([
      steps({ id: 'a' }, { id: 'b', dependsOn: ['a'] }),
      says('did a'),
      fails('broken'),
      steps({ id: 'a', dependsOn: [] }, { id: 'c', dependsOn: ['a'] }),
      says('did a again'),
      says('did c'),
    ])
    const { state, turn } = await worker.generate('the goal', start)
    expect(state.plan!.map(({ id, status, dependsOn }) => [id, status, dependsOn])).toEqual([
      ['a', 'completed', []],
      ['b', 'failed', ['a']],
      ['a-2', 'completed', []],
      ['c', 'completed', ['a-2']],
    ])
    expect(order(state)).toEqual(['a', 'b', 'a-2', 'c'])
    expect(turn.response.text).toBe('did c')
    expect(state.step).toBe(6)
    const asked = model.requests[3]!.messages.at(-1)!.text
    expect(asked).toContain('broken')
    expect(asked).toContain('the goal')
    expect(asked).toContain('a: Do a')
    expect(asked).toContain('The step "b" (Do b) failed')
  })

  test('UAP-076 by its own tool is one too, and is marked before there is a new plan', async () => {
    const broken = { ...add, name: 'broken', run: () => Promise.reject(new Error('no')) }
    const marks: string[] = []
    const model = scripted([
      steps({ id: 'a', tool: 'broken' }),
      calls('broken'),
      says('sorry'),
      steps({ id: 'b' }),
      says('ok'),
    ])
    const { state } = await agent({
      model,
      tools: [broken],
      execution: plan(),
      strategy: {
        onStepEnd: (step, result) =>
          void marks.push(`${step} ${result.state.plan?.map((s) => s.status).join()}`),
      },
    }).generate('x', start)
    expect(marks).toEqual(['1 pending', '2 failed', '3 failed,pending', '4 failed,completed'])
    expect(state.plan).toMatchObject([
      { id: 'a', status: 'failed' },
      { id: 'b', status: 'completed' },
    ])
  })

  test('UAP-076 with allowReplan: false the error surfaces, and the state says what failed', async () => {
    const saved = recordingStore()
    const model = scripted([steps({ id: 'a' }), fails({ message: 'broken', code: 'RATE_LIMITED' })])
    const worker = agent({ model, execution: plan({ allowReplan: false }), checkpoints: saved })
    await expect(worker.generate('x', start)).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      message: 'broken',
    })
    await worker.flush()
    expect(saved.saves.at(-1)![1].plan).toMatchObject([{ id: 'a', status: 'failed' }])
  })

  test('UAP-076 a step whose tool failed and then worked is completed', async () => {
    let tries = 0
    const flaky = {
      ...add,
      name: 'flaky',
      run: () => {
        tries++
        if (tries === 1) throw new Error('not yet')
        return 'fine'
      },
    }
    const model = scripted([
      steps({ id: 'a', tool: 'flaky' }),
      calls('flaky'),
      calls('flaky'),
      says('did a'),
    ])
    const { state } = await agent({ model, tools: [flaky], execution: plan() }).generate('x', start)
    expect(state.plan).toMatchObject([{ id: 'a', status: 'completed' }])
  })

  test('UAP-076 a step whose tool worked and then failed has failed', async () => {
    let tries = 0
    const breaking = {
      ...add,
      name: 'breaking',
      run: () => {
        tries++
        if (tries === 2) throw new Error('worn out')
        return 'fine'
      },
    }
    const model = scripted([
      steps({ id: 'a', tool: 'breaking' }),
      calls('breaking'),
      calls('breaking'),
      says('hm'),
      steps({ id: 'b' }),
      says('did b'),
    ])
    const { state } = await agent({ model, tools: [breaking], execution: plan() }).generate(
      'x',
      start,
    )
    expect(state.plan).toMatchObject([
      { id: 'a', status: 'failed' },
      { id: 'b', status: 'completed' },
    ])
  })

  test('UAP-076 only failed steps count against the number of new plans', async () => {
    const { worker } = planner(
      [
        steps({ id: 'a' }, { id: 'b' }, { id: 'c' }),
        says('did a'),
        says('did b'),
        fails('broken'),
        steps({ id: 'd' }),
        says('did d'),
      ],
      { maxReplans: 1 },
    )
    const { state } = await worker.generate('x', start)
    expect(state.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a completed',
      'b completed',
      'c failed',
      'd completed',
    ])
  })

  test('UAP-076 a new plan may depend on completed steps, not on failed ones', async () => {
    const replanned = (dependsOn: string) =>
      planner([
        steps({ id: 'a' }, { id: 'b', dependsOn: ['a'] }),
        says('did a'),
        fails('broken'),
        steps({ id: 'c', dependsOn: [dependsOn] }),
        steps({ id: 'd' }),
        says('ok'),
      ])
    const good = replanned('a')
    await good.worker.generate('x', start).catch(() => {})
    expect(good.model.requests[4]!.messages.at(-1)!.text).toContain('Carry out step "c"')
    const bad = replanned('b')
    const { state } = await bad.worker.generate('x', start)
    expect(bad.model.requests[4]!.messages.at(-1)!.text).toContain('"b", which is not a step')
    expect(state.plan!.map(({ id }) => id)).toEqual(['a', 'b', 'd'])
  })

  test('UAP-076 ids of a new plan that are taken get new ones, each its own', async () => {
    const { worker } = planner([
      steps({ id: 'a' }, { id: 'a-2' }, { id: 'b' }),
      says('did a'),
      says('did a-2'),
      fails('broken'),
      steps({ id: 'a' }, { id: 'a-3', dependsOn: ['a'] }, { id: 'b', dependsOn: ['a-3'] }),
      says('1'),
      says('2'),
      says('3'),
    ])
    const { state } = await worker.generate('x', start)
    expect(state.plan!.map(({ id, dependsOn }) => [id, ...dependsOn])).toEqual([
      ['a'],
      ['a-2'],
      ['b'],
      ['a-4'],
      ['a-3', 'a-4'],
      ['b-2', 'a-3'],
    ])
  })

  test('UAP-076 if planning again fails too, the error has the code and all fields of the step', async () => {
    const failure = {
      message: 'broken',
      code: 'RATE_LIMITED',
      statusCode: 429,
      hint: 'Wait.',
      retryAfterMs: 3000,
      requestId: 'r1',
    }
    const worker = agent({
      model: scripted([
        steps({ id: 'a' }),
        fails({ ...failure, code: 'RATE_LIMITED' }),
        fails({ message: 'no plan', code: 'PROVIDER_ERROR' }),
      ]),
      execution: plan(),
    })
    await expect(worker.generate('x', start)).rejects.toMatchObject({
      ...failure,
      message: 'broken Planning again failed too: no plan',
      provider: 'scripted',
      modality: 'llm',
      cause: { message: 'no plan', code: 'PROVIDER_ERROR' },
    })
  })

  test('is not planned again once the stop condition holds, and a failed replan tells both', async () => {
    const model = scripted([steps({ id: 'a' }), fails('broken')])
    const { stopReason } = await agent({
      model,
      execution: plan(),
      strategy: { stopCondition: ({ step }) => step === 2 },
    }).generate('x', start)
    expect(stopReason).toBe('stop_condition')
    const twice = agent({
      model: scripted([steps({ id: 'a' }), fails('broken'), fails('no plan')]),
      execution: plan(),
    })
    const error = await twice.generate('x', start).catch((e: Error) => e)
    expect(error).toMatchObject({
      message: expect.stringContaining('broken'),
      cause: { message: 'no plan' },
    })
  })

  test('UAP-074 UAP-152 an abort is no failure of the step: it stays in progress, and nothing is planned', async () => {
    const controller = new AbortController()
    const ended: number[] = []
    const model = scripted([
      steps({ id: 'a' }),
      () => {
        controller.abort()
        return waits(Infinity)
      },
    ])
    const worker = agent({
      model,
      execution: plan(),
      strategy: { onStepEnd: (step) => void ended.push(step) },
    })
    const stream = worker.stream('x', start, { signal: controller.signal })
    const types: string[] = []
    await expect(
      (async () => {
        for await (const { uap } of stream) if (uap) types.push(uap.type)
      })(),
    ).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(types).not.toContain('plan_step_end')
    expect(ended).toEqual([1])
    expect(model.requests).toHaveLength(2)
  })

  test('by a hook fails the run', async () => {
    const { worker } = planner([steps({ id: 'a' }), calls('add', { a: 1, b: 1 })])
    const hooked = agent({
      ...worker,
      strategy: { onAct: () => Promise.reject(new Error('mine')) },
    })
    await expect(hooked.generate('x', start)).rejects.toThrow('mine')
  })
})

test('UAP-077 a plan schema of one’s own is sent, and what it adds to steps is kept', async () => {
  const planSchema = { type: 'array', items: { type: 'object' } }
  const answer = says(JSON.stringify([{ id: 1, description: 'A', effort: 'small' }]))
  const { model, worker } = planner([answer, says('ok')], { planSchema })
  const { state } = await worker.generate('x', start)
  expect(model.requests[0]!.structure).toEqual(planSchema)
  expect(state.plan).toEqual([
    { id: '1', description: 'A', effort: 'small', dependsOn: [], status: 'completed' },
  ])
})

describe('a plan that cannot be carried out', () => {
  const bad: [string, ScriptStep, string][] = [
    [
      'a cycle',
      steps({ id: 'a', dependsOn: ['b'] }, { id: 'b', dependsOn: ['a'] }),
      'wait for each other',
    ],
    ['an unknown dependency', steps({ id: 'a', dependsOn: ['nowhere'] }), 'nowhere'],
    ['an id twice', steps({ id: 'a' }, { id: 'a' }), 'id "a"'],
    ['no list', says('{"hello":1}'), 'no list'],
    ['no JSON', says('I would rather not'), 'not JSON'],
  ]
  test.each(bad)(
    'UAP-079 %s: the model gets one correction, then it is INVALID_RESPONSE',
    async (_, answer, words) => {
      const again = planner([answer, steps({ id: 'ok' }), says('done')])
      const { state } = await again.worker.generate('x', start)
      expect(again.model.requests[1]!.messages.at(-1)!.text).toContain(words)
      expect(state.plan).toMatchObject([{ id: 'ok', status: 'completed' }])
      const twice = planner([answer, answer])
      await expect(twice.worker.generate('x', start)).rejects.toMatchObject({
        code: 'INVALID_RESPONSE',
        message: expect.stringContaining(words),
      })
      const once = planner([answer], { allowReplan: false })
      await expect(once.worker.generate('x', start)).rejects.toMatchObject({
        code: 'INVALID_RESPONSE',
      })
    },
  )

  test('UAP-079 fields that are no text or no list are read as far as they can be', async () => {
    const drafts = [
      { id: 1, description: 'A', tool: '', dependsOn: null },
      { id: 'b', description: 'B', tool: 7, dependsOn: [1] },
    ]
    const { worker } = planner([says(JSON.stringify({ plan: drafts })), says('1'), says('2')])
    const { state, turn } = await worker.generate('x', start)
    expect(state.plan).toEqual([
      { id: '1', description: 'A', dependsOn: [], status: 'completed' },
      { id: 'b', description: 'B', dependsOn: ['1'], status: 'completed' },
    ])
    expect(turn.warnings).toEqual([])
    expect(state.messages.filter(isUserMessage).map(({ text }) => text)).not.toContainEqual(
      expect.stringContaining('Use the tool'),
    )
  })

  test.each<[unknown, string[]]>([
    ['b', ['b', 'a']],
    [['b'], ['b', 'a']],
    ['0', ['0', 'a']],
    [0, ['0', 'a']],
    ['', ['a', 'b']],
    [[''], ['a', 'b']],
    [null, ['a', 'b']],
    [undefined, ['a', 'b']],
  ])('UAP-072 UAP-079 a dependency on %j is kept, as a list or not', async (dependsOn, carried) => {
    const other = carried.find((id) => id !== 'a')
    const drafts = [
      { id: 'a', description: 'A', dependsOn },
      { id: other, description: 'B', dependsOn: [] },
    ]
    const { worker } = planner([says(JSON.stringify(drafts)), says('1'), says('2')])
    const { state } = await worker.generate('x', start)
    expect(order(state)).toEqual(carried)
    expect(state.plan![0]!.dependsOn).toEqual(carried[0] === 'a' ? [] : [other])
  })

  test.each([['x'], ['b, c'], { b: true }, 7, true])(
    'UAP-079 a dependency on %j, which is no step, is a problem',
    async (dependsOn) => {
      const drafts = [
        { id: 'a', description: 'A', dependsOn },
        { id: 'b', description: 'B', dependsOn: [] },
        { id: 'c', description: 'C', dependsOn: [] },
      ]
      const { worker } = planner([says(JSON.stringify(drafts))], { allowReplan: false })
      await expect(worker.generate('x', start)).rejects.toMatchObject({
        code: 'INVALID_RESPONSE',
        message: expect.stringMatching(/"a" depends on ".+", which is not a step/),
      })
    },
  )

  test('UAP-079 UAP-050 an answer that was no plan stays in the history, and its tokens count', async () => {
    const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 7 }
    const { worker } = planner([
      [says('I would rather not'), stops('end_turn', { usage })],
      [steps({ id: 'a' }), stops('end_turn', { usage })],
      [says('done'), stops('end_turn', { usage })],
    ])
    const { state, turn } = await worker.generate('x', start)
    expect(state.messages.map(({ text }) => text)).toContain('I would rather not')
    expect(state.messages.map(({ id }) => id)).toEqual(turn.messages.map(({ id }) => id))
    expect([turn.cycles, turn.usage.totalTokens, state.run?.usage.totalTokens]).toEqual([3, 21, 21])
  })

  test('UAP-079 of two lists the one named steps is the plan', async () => {
    const [a, b] = ['a', 'b'].map((id) => ({ id, description: id.toUpperCase() }))
    const { worker } = planner([says(JSON.stringify({ plan: [b], steps: [a] })), says('ok')])
    expect((await worker.generate('x', start)).state.plan).toMatchObject([{ id: 'a' }])
  })

  test('UAP-079 a step without an id or a description is a problem, by its number', async () => {
    const answer = says(JSON.stringify([{ id: 'a', description: 'A' }, { id: '' }, 'b']))
    const { worker } = planner([answer], { allowReplan: false })
    await expect(worker.generate('x', start)).rejects.toThrow(
      'Step 2 needs an id and a description. Step 3 needs an id and a description.',
    )
  })

  test('UAP-079 an empty plan means an answer right away', async () => {
    const { probe, names } = probeLog()
    const model = scripted([steps(), calls('look'), says('seen')])
    const worker = agent({ model, tools: [probe('look')], execution: plan() })
    const { turn, state, stopReason } = await worker.generate('x', start)
    expect(turn.response.text).toBe('seen')
    expect([state.step, stopReason, state.plan]).toEqual([2, 'complete', []])
    expect(names()).toHaveLength(2)
    expect(model.requests[1]!.messages.at(-1)!.type).toBe('user')
  })

  test('a tool that does not exist is a warning', async () => {
    const { worker } = planner([steps({ id: 'a', tool: 'magic' }), says('ok')])
    const { turn } = await worker.generate('x', start)
    expect(turn.warnings).toMatchObject([{ code: 'unknown_plan_tool' }])
    const cut = planner([steps({ id: 'a', tool: 'add' }, { id: 'b', tool: 'magic' }), says('ok')], {
      maxPlanSteps: 1,
    })
    expect((await cut.worker.generate('x', start)).turn.warnings).toEqual([])
  })
})

test('UAP-079 UAP-076 steps of a resumed state that can never start lead to a new plan, or to an error', async () => {
  const step = (id: string, status: PlanStep['status'], ...dependsOn: string[]): PlanStep => ({
    id,
    description: `Do ${id}`,
    dependsOn,
    status,
  })
  const list = [step('a', 'failed'), step('b', 'pending', 'a'), step('c', 'pending')]
  for (const limit of [1, 2])
    for (const messages of [[], ['Sorry.']]) {
      const state = start
        .withMessage(new UserMessage('x'))
        .withMessages(messages.map((text) => new AssistantMessage(text)))
        .withPlan(list)
      const script = [says('did c'), steps({ id: 'd', dependsOn: ['c'] }), says('did d')]
      const { worker, model } = planner(script, { maxParallelSteps: limit })
      const { state: ended, stopReason } = await worker.resume(state)
      expect(ended.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual([
        'a failed',
        'c completed',
        'd completed',
      ])
      expect([stopReason, model.requests.length]).toEqual(['complete', 3])
      expect(model.requests[1]!.messages.at(-1)!.text).toContain('"b" (Do b) failed')
      for (const options of [{ allowReplan: false }, { maxReplans: 0 }])
        await expect(planner([says('did c')], options).worker.resume(state)).rejects.toMatchObject({
          code: 'INVALID_RESPONSE',
          message: expect.stringContaining('"b"'),
        })
    }
})

test('UAP-071 UAP-077 a plan that a tool takes: its schema, its call among others, and no execution', async () => {
  const planSchema = { type: 'object', properties: { plan: { type: 'array' } } }
  const other = { steps: [{ id: 'wrong', description: 'W', dependsOn: [] }] }
  const draft = { plan: [{ id: 'a', description: 'A', dependsOn: [] }] }
  const { model, worker } = planner(
    [[calls('add', other, { id: 'x' }), calls('submit_plan', draft, { id: 'y' })], says('done')],
    { planSchema },
    { structuredOutput: false },
  )
  const { state, turn } = await worker.generate('x', start)
  expect(model.requests[0]!.tools.map(({ parameters }) => parameters)).toEqual([planSchema])
  expect(state.plan).toEqual([{ ...draft.plan[0], status: 'completed' }])
  expect(turn.toolExecutions).toEqual([])
  expect(turn.openCalls).toEqual([])
  expect(state.messages[3]).toMatchObject({
    results: ['x', 'y'].map((toolCallId) => ({ toolCallId, result: 'The plan was received.' })),
  })
})

test.each([
  [1, 'a|b|c|d|e'],
  [2, 'a,b|c,d|e'],
  [3, 'a,b,c|d,e'],
  [9, 'a,b,c|d,e'],
])(
  'UAP-072 at most %d steps at the same time, each after all that it depends on',
  async (maxParallelSteps, expected) => {
    const drafts = [
      { id: 'a' },
      { id: 'b' },
      { id: 'c' },
      { id: 'd', dependsOn: ['a', 'b'] },
      { id: 'e', dependsOn: ['a', 'c'] },
    ]
    const { worker } = planner([steps(...drafts), ...drafts.map(() => says('ok'))], {
      maxParallelSteps,
    })
    const stream = worker.stream('x', start)
    const groups: string[][] = []
    for await (const { uap } of stream) {
      if (uap?.type === 'step_start') groups.push([])
      if (uap?.type === 'plan_step_start') {
        groups.at(-1)!.push(uap.data.planStep.id)
        expect(uap.data.planStep.status).toBe('in_progress')
      }
      if (uap?.type === 'plan_step_end') expect(uap.data.planStep.status).toBe('completed')
    }
    expect(groups.slice(1).join('|')).toBe(expected)
    expect((await stream.result).state.plan!.map(({ status }) => status)).toEqual(
      drafts.map(() => 'completed'),
    )
  },
)

test('UAP-074 UAP-076 of a group the steps whose tool failed have failed; all of them if the model failed', async () => {
  const broken = { ...add, name: 'broken', run: () => Promise.reject(new Error('no')) }
  const drafts = [{ id: 'a', tool: 'add' }, { id: 'b', tool: 'broken' }, { id: 'c' }] // prettier-ignore
  const group = [calls('add', { a: 1, b: 1 }), calls('broken')]
  const cases: [readonly ScriptStep[], string][] = [
    [[group, says('hm')], 'a completed, b failed, c completed'],
    [[calls('broken'), calls('add', { a: 1, b: 1 }), says('hm')], 'a completed, b failed, c completed'],
    [[fails('broken')], 'a failed, b failed, c failed'],
  ] // prettier-ignore
  for (const [script, expected] of cases) {
    const model = scripted([steps(...drafts), ...script, steps({ id: 'd' }), says('ok')])
    const execution = plan({ maxParallelSteps: 3 })
    const worker = agent({ model, tools: [add, broken], execution })
    const stream = worker.stream('x', start)
    const made: PlanStep[][] = []
    for await (const { uap } of stream)
      if (uap?.type === 'plan_created') made.push([...uap.data.plan])
    const { state } = await stream.result
    const told = (list: readonly PlanStep[]) => list.map(({ id, status }) => `${id} ${status}`)
    expect(told(state.plan!).join(', ')).toBe(`${expected}, d completed`)
    expect(told(made[1]!).join(', ')).toBe(`${expected}, d pending`)
  }
})

test('UAP-075 a new plan has its own limit, and may depend on what is completed', async () => {
  const { worker } = planner(
    [
      steps({ id: 'a' }, { id: 'b' }),
      says('did a'),
      fails('broken'),
      steps({ id: 'e', dependsOn: ['d'] }, { id: 'c', dependsOn: ['a'] }, { id: 'd' }),
      says('did c'),
      says('did d'),
    ],
    { maxPlanSteps: 2 },
  )
  const { state } = await worker.generate('x', start)
  expect(state.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual([
    'a completed',
    'b failed',
    'c completed',
    'd completed',
  ])
})

test('UAP-076 UAP-079 a new plan may follow as often as allowed, and a next call plans anew', async () => {
  const broken = (id: string) => [steps({ id }), fails('broken')]
  const { worker } = planner(
    [...broken('a'), ...broken('b'), steps({ id: 'c' }), says('did c'), steps({ id: 'z' }), says('did z')],
    { maxReplans: 2 },
  ) // prettier-ignore
  const first = await worker.generate('x', start)
  expect(first.state.plan!.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  const { state } = await worker.generate('y', first.state)
  expect(state.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual(['z completed'])
  const limited = planner([...broken('a'), ...broken('b')], { maxReplans: 1 })
  await expect(limited.worker.generate('x', start)).rejects.toThrow('broken')
})

test('UAP-078 the status of a step is the run’s, whatever the model wrote', async () => {
  const drafts = [{ id: 'a', description: 'A', dependsOn: [], status: 'completed' }]
  const { worker, model } = planner([says(JSON.stringify({ steps: drafts })), says('did a')])
  const { state } = await worker.generate('x', start)
  expect(model.requests).toHaveLength(2)
  expect(state.plan).toEqual([{ ...drafts[0], status: 'completed' }])
  const self = planner([steps({ id: 'a', dependsOn: ['a'] })], { allowReplan: false })
  await expect(self.worker.generate('x', start)).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  expect(self.model.requests).toHaveLength(1)
})

test('UAP-079 an agent’s repair is for its answers: only the strategy asks again for a plan that is no JSON', async () => {
  const { worker, model } = planner([says('no plan')], { allowReplan: false })
  await expect(
    agent({ ...worker, structure: { type: 'object' }, repair: 3 }).generate('x', start),
  ).rejects.toMatchObject({
    code: 'INVALID_RESPONSE',
  })
  expect(model.requests).toHaveLength(1)
})
