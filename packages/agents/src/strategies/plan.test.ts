import { describe, expect, test } from 'vitest'
import type { Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { agent, AgentState } from '../index.ts'
import { plan } from './plan.ts'

const start = AgentState.initial()
const steps = (...drafts: readonly { id: string; tool?: string; dependsOn?: string[] }[]) =>
  says(
    JSON.stringify({
      steps: drafts.map((draft) => ({ description: `Do ${draft.id}`, dependsOn: [], ...draft })),
    }),
  )
const tool = (name: string, run: Tool['run']): Tool => ({
  name,
  description: name,
  parameters: { type: 'object' },
  run,
})

describe('maxReplans', () => {
  const broken = tool('broken', () => Promise.reject(new Error('no')))
  const stubborn = () =>
    scripted(({ structure, messages }) => {
      if (structure) return steps({ id: 'a', tool: 'broken' })
      return messages.at(-1)?.type === 'tool_result' ? says('sorry') : calls('broken', {})
    })

  test.each([0, 1, 3])(
    'a tool that always fails ends the run after %i new plans',
    async (limit) => {
      const model = stubborn()
      const execution = plan({ maxReplans: limit })
      const saved: AgentState[] = []
      const run = agent({
        model,
        tools: [broken],
        execution,
        strategy: { onStepEnd: (_, { state }) => void saved.push(state) },
      }).generate('x', start)
      await expect(run).rejects.toThrow(/failed: its tool "broken" said: no/)
      expect(model.requests.filter(({ structure }) => structure).length).toBe(limit + 1)
      const statuses = saved.at(-1)!.plan!.map(({ id, status }) => `${id} ${status}`)
      expect(statuses.length).toBe(limit + 1) // every failed step is still there
      expect(statuses.every((one) => one.endsWith('failed'))).toBe(true)
    },
  )

  test('is a whole number', () => {
    expect(() => plan({ maxReplans: -1 })).toThrow(/maxReplans/)
    expect(() => plan({ maxParallelSteps: 0 })).toThrow(/maxParallelSteps/)
  })
})

describe('maxParallelSteps', () => {
  test('independent steps are given to the model at once, and their calls overlap', async () => {
    let running = 0
    let most = 0
    const slow = (name: string) =>
      tool(name, async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 5))
        running--
        return name
      })
    const model = scripted([
      steps({ id: 'a', tool: 'one' }, { id: 'b', tool: 'two' }, { id: 'c', dependsOn: ['a', 'b'] }),
      [calls('one', {}), calls('two', {})],
      says('both'),
      says('joined'),
    ])
    const events: string[] = []
    const run = agent({
      model,
      tools: [slow('one'), slow('two')],
      execution: plan({ maxParallelSteps: 4 }),
    }).stream('x', start)
    for await (const { uap } of run)
      if (uap?.type === 'plan_step_start' || uap?.type === 'plan_step_end')
        events.push(`${uap.type.slice(10)} ${uap.data.planStep.id} ${uap.data.planStep.status}`)
    const { state } = await run.result
    expect(most).toBe(2)
    expect(events).toEqual([
      'start a in_progress',
      'start b in_progress',
      'end a completed',
      'end b completed',
      'start c in_progress',
      'end c completed',
    ])
    expect(model.requests[1]!.messages.at(-1)!.text).toContain('do not depend on each other')
    expect(state.plan!.map(({ status }) => status)).toEqual(Array(3).fill('completed'))
  })

  test('no more steps are given at once than the limit allows', async () => {
    const model = scripted(({ structure }) =>
      structure ? steps({ id: 'a' }, { id: 'b' }, { id: 'c' }) : says('ok'),
    )
    const run = agent({ model, execution: plan({ maxParallelSteps: 2 }) })
    const { state } = await run.generate('x', start)
    const prompts = model.requests.slice(1).map(({ messages }) => messages.at(-1)!.text)
    expect(prompts.map((text) => text.match(/step "."/g))).toEqual([
      ['step "a"', 'step "b"'],
      ['step "c"'],
    ])
    expect(state.plan!.map(({ status }) => status)).toEqual(Array(3).fill('completed'))
  })

  test('only the step whose tool failed is failed', async () => {
    const model = scripted([
      steps({ id: 'a', tool: 'good' }, { id: 'b', tool: 'bad' }),
      [calls('good', {}), calls('bad', {})],
      says('hm'),
      steps({ id: 'c' }),
      says('done'),
    ])
    const tools = [tool('good', () => 1), tool('bad', () => Promise.reject(new Error('no')))]
    const { state } = await agent({
      model,
      tools,
      execution: plan({ maxParallelSteps: 2 }),
    }).generate('x', start)
    expect(state.plan!.map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a completed',
      'b failed',
      'c completed',
    ])
  })
})

describe('parallel steps that use one tool', () => {
  /** Fetches a page; `b` and `c` work, `a` as often as `broken` says no. */
  const fetching = (broken: () => boolean) =>
    tool('fetch', ({ page }: { page: string }) => {
      if (page === 'a' && broken()) throw new Error('no')
      return page
    })
  const three = ['a', 'b', 'c'].map((id) => ({ id, tool: 'fetch' }))
  const statuses = (state: AgentState) => state.plan!.map(({ id, status }) => `${id} ${status}`)

  test('each is completed or failed by its own call', async () => {
    const model = scripted([
      steps(...three),
      ['a', 'b', 'c'].map((page) => calls('fetch', { page })),
      says('hm'),
      steps({ id: 'd' }),
      says('done'),
    ])
    const execution = plan({ maxParallelSteps: 3 })
    const { state } = await agent({ model, tools: [fetching(() => true)], execution }).generate(
      'x',
      start,
    )
    expect(statuses(state)).toEqual(['a failed', 'b completed', 'c completed', 'd completed'])
  })

  test('a call that is repeated with success completes its step', async () => {
    let failures = 1
    const model = scripted([
      steps(...three),
      [calls('fetch', { page: 'a' }), calls('fetch', { page: 'b' })],
      [calls('fetch', { page: 'a' })],
      [calls('fetch', { page: 'c' })],
      says('all'),
    ])
    const execution = plan({ maxParallelSteps: 3 })
    const tools = [fetching(() => failures-- > 0)]
    const { state } = await agent({ model, tools, execution }).generate('x', start)
    expect(statuses(state)).toEqual(['a completed', 'b completed', 'c completed'])
  })

  test('steps that fail together use up one new plan of maxReplans', async () => {
    const model = scripted(({ structure, messages }) => {
      if (structure) return steps(...three)
      if (messages.at(-1)?.type === 'tool_result') return says('hm')
      return three.map(() => calls('fetch', { page: 'a' }))
    })
    const execution = plan({ maxParallelSteps: 3, maxReplans: 2 })
    const run = agent({ model, tools: [fetching(() => true)], execution }).generate('x', start)
    await expect(run).rejects.toThrow(/failed: its tool "fetch" said: no/)
    expect(model.requests.filter(({ structure }) => structure).length).toBe(3)
  })
})
