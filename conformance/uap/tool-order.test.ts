/** UAP §8.5 and §8.6 as properties of random calls: who waits for whom, who runs alone, and that nothing is lost. */
import { agent, AgentState } from '@skein/agents'
import { AssistantMessage, type Tool, UserMessage } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'

interface ToolPlan {
  readonly sequential: boolean
  /** Numbers of tools; one that does not exist is an unknown name. */
  readonly dependsOn: readonly number[]
}

interface CallPlan {
  readonly tool: number
  /** Positions of calls; one that does not exist is an unknown id. */
  readonly after: readonly number[]
  /** How long the call takes, in turns of the event loop. */
  readonly turns: number
}

interface Outcome {
  /** For each call that ran, when it started and ended. */
  readonly times: ReadonlyMap<number, { readonly start: number; end: number }>
  readonly results: readonly { readonly position: number; readonly isError: boolean }[]
  readonly warnings: readonly string[]
}

async function run(
  tools: readonly ToolPlan[],
  plan: readonly CallPlan[],
  streaming: boolean,
): Promise<Outcome> {
  let now = 0
  const times = new Map<number, { start: number; end: number }>()
  const list = tools.map(({ sequential, dependsOn }, number): Tool => ({
    name: `t${number}`,
    description: 'd',
    parameters: { type: 'object' },
    sequential,
    dependsOn: dependsOn.map((other) => `t${other}`),
    run: async ({ position }: { position: number }) => {
      const time = { start: now++, end: Infinity }
      times.set(position, time)
      for (let turn = 0; turn < plan[position]!.turns; turn++)
        await new Promise((resolve) => setImmediate(resolve))
      time.end = now++
      return position
    },
  }))
  const toolCalls = plan.map(({ tool, after }, position) => ({
    toolCallId: `c${position}`,
    toolName: `t${tool}`,
    arguments: { position },
    after: after.map((other) => `c${other}`),
  }))
  const state = AgentState.initial().withMessages([
    new UserMessage('go'),
    new AssistantMessage('', toolCalls),
  ])
  const worker = agent({ model: scripted([says('ok')]), tools: list })
  const { turn } = await (streaming ? worker.resumeStream(state).result : worker.resume(state))
  return {
    times,
    results: turn.toolExecutions.map(({ toolCallId, isError }) => ({
      position: Number(toolCallId.slice(1)),
      isError: isError === true,
    })),
    warnings: turn.warnings.map(({ code }) => code),
  }
}

/** The calls that each call waits for. */
function edgesOf(tools: readonly ToolPlan[], plan: readonly CallPlan[]): Set<number>[] {
  return plan.map(({ tool, after }, position) => {
    const named = plan.flatMap((other, at) =>
      tools[tool]!.dependsOn.includes(other.tool) ? [at] : [],
    )
    const known = after.filter((other) => other < plan.length)
    return new Set([...named, ...known].filter((other) => other !== position))
  })
}

function hasCycle(edges: readonly ReadonlySet<number>[]): boolean {
  const left = new Set(edges.keys())
  for (let found = true; found;) {
    found = false
    for (const at of left)
      if (![...edges[at]!].some((other) => left.has(other))) found = left.delete(at)
  }
  return left.size > 0
}

function check(tools: readonly ToolPlan[], plan: readonly CallPlan[], outcome: Outcome): void {
  const { times, results, warnings } = outcome
  // UAP-110: each call has one result, in the order of the calls.
  expect(results.map(({ position }) => position)).toEqual([...plan.keys()])
  const edges = edgesOf(tools, plan)
  const isCyclic = hasCycle(edges)
  expect(warnings.includes('dependency_cycle')).toBe(isCyclic)
  const isUnknown = plan.some(({ tool }) =>
    tools[tool]!.dependsOn.some((other) => other >= tools.length),
  )
  expect(warnings.includes('unknown_dependency')).toBe(isUnknown)
  // UAP-106: nothing overlaps a sequential call. In a cycle all calls run one by one.
  for (const [position, { start, end }] of times)
    for (const [other, time] of times) {
      const isAlone = tools[plan[position]!.tool]!.sequential
      if (other !== position && isAlone) expect(time.end < start || time.start > end).toBe(true)
    }
  if (isCyclic) return
  const failed = new Set(results.filter(({ isError }) => isError).map(({ position }) => position))
  for (const [position, { tool }] of plan.entries()) {
    // UAP-107, UAP-108: it starts when all that it waits for has ended.
    for (const other of edges[position]!)
      if (times.has(position) && times.has(other))
        expect(times.get(position)!.start).toBeGreaterThan(times.get(other)!.end)
    // UAP-107: it runs if each tool that it depends on has succeeded in this message.
    const isMissing = tools[tool]!.dependsOn.some((name) => {
      const named = [...plan.entries()].filter(
        ([at, other]) => other.tool === name && at !== position,
      )
      return name < tools.length && (named.length === 0 || named.some(([at]) => failed.has(at)))
    })
    expect([position, failed.has(position), times.has(position)]).toEqual([
      position,
      isMissing,
      !isMissing,
    ])
  }
  // UAP-109: what has to wait for nothing starts immediately.
  if (plan.some(({ tool }) => tools[tool]!.sequential)) return
  const firstEnd = Math.min(...[...times.values()].map(({ end }) => end))
  for (const [position, { start }] of times)
    if (edges[position]!.size === 0) expect(start).toBeLessThan(firstEnd)
}

const toolPlans = fc.array(
  fc.record({
    sequential: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
    dependsOn: fc.oneof(fc.constant([]), fc.uniqueArray(fc.nat(5), { maxLength: 2 })),
  }),
  { minLength: 5, maxLength: 5 },
)
const callPlans = fc.array(
  fc.record({
    tool: fc.nat(4),
    after: fc.oneof(fc.constant([]), fc.uniqueArray(fc.nat(6), { maxLength: 2 })),
    turns: fc.integer({ min: 1, max: 4 }),
  }),
  { minLength: 1, maxLength: 6 },
)

test('UAP-106 UAP-107 UAP-108 hold for any calls, streamed or not', async () => {
  await fc.assert(
    fc.asyncProperty(toolPlans, callPlans, async (tools, plan) => {
      const outcomes = [await run(tools, plan, false), await run(tools, plan, true)]
      for (const outcome of outcomes) check(tools, plan, outcome)
      expect(outcomes[1]!.results).toEqual(outcomes[0]!.results)
      expect(outcomes[1]!.warnings).toEqual(outcomes[0]!.warnings)
    }),
    { seed: 106, numRuns: process.env['SKEIN_DEEP'] ? 3000 : 150 },
  )
})

test('UAP-106 a sequential call waits for what another sequential call depends on', async () => {
  const free = { sequential: false, dependsOn: [] }
  const tools = [
    { sequential: true, dependsOn: [2] },
    { sequential: true, dependsOn: [3] },
    free,
    free,
  ]
  const plan = [0, 1, 2, 3].map((tool) => ({ tool, after: [], turns: tool === 3 ? 5 : 1 }))
  check(tools, plan, await run(tools, plan, false))
})

test('UAP-109 any number of calls that wait for nothing run at the same time', async () => {
  const tools = [{ sequential: false, dependsOn: [] }]
  const plan = Array.from({ length: 40 }, () => ({ tool: 0, after: [], turns: 1 }))
  check(tools, plan, await run(tools, plan, true))
})
