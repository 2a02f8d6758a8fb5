import { defineTool, type RuntimeOptions, type Store, type ToolDefinition } from '@skein/runtime'
import { z } from 'zod'
import type { Lane } from '../../src/testing/simulation.ts'
import type { Finished } from './invariants/finished.ts'
import { spoiling } from './laws-order.ts'
import type { World } from './world.ts'

/** The user of a run with limits, whose value `n` counts calls. */
export const USER = { tenant: 'default', user: 'ada' } as const

/** So low that many runs reach them: an inference reserves 8,192 tokens of output. */
const MAX_INFERENCES = 6
const MAX_TOKENS = 12_000

export function spendingRules({
  time: { scaled },
}: World): NonNullable<RuntimeOptions['spending']> {
  return [
    {
      per: 'tenant',
      periodMs: scaled(60_000),
      maxInferences: MAX_INFERENCES,
      newMessages: 'queue',
    },
    { per: 'user', periodMs: scaled(20_000), maxTokens: MAX_TOKENS },
  ]
}

/** A tool that counts in a value of the user: in one step, or reading and writing with a pause between. */
export function countTool({ chance }: World, lane: Lane): ToolDefinition {
  return defineTool({
    name: 'count',
    description: 'count',
    risk: 'write_low_risk',
    idempotent: true,
    args: z.looseObject({}),
    async execute({ user }) {
      await lane.turn('tool count')
      if (chance.happens(0.5)) await user.update('n', (value) => Number(value ?? 0) + 1)
      else {
        const value = Number((await user.get('n')) ?? 0)
        await lane.turn('tool count has read')
        await user.set('n', value + 1)
      }
      await lane.turn('tool count done')
      return 'counted'
    },
  })
}

/** What was spent stays within the limits, nothing stays reserved, and no update of a user's value is lost. */
export async function limitLaws({ world, threads }: Finished): Promise<void> {
  if (!world.plan.hasLimits) return
  for (const problem of spendingLaws(world)) world.violate(problem)
  const counted = [...threads.values()].flatMap(({ events }) =>
    events.filter(
      (event) =>
        event.type === 'tool_execution_end' &&
        event.toolName === 'count' &&
        JSON.stringify(event).includes('"counted"'),
    ),
  ).length
  const values = await world.stored.store.userValues(USER)
  const value = Number(values.find(({ key }) => key === 'n')?.value ?? 0)
  if (value !== counted) world.violate(`The user's value is ${value} after ${counted} counts.`)
}

/** Adds up all changes of counters, in the order of the commits, and checks the sums after each. */
function* spendingLaws({ trace, plan, clock }: World): Generator<string> {
  const sums = new Map<string, number>()
  let reserved = 0
  for (const { commit, outcome, step } of trace) {
    if (outcome !== 'written') continue
    for (const { name, add } of commit?.counters ?? []) {
      if (add === null) sums.delete(name)
      else sums.set(name, (sums.get(name) ?? 0) + add)
      const sum = sums.get(name) ?? 0
      if (name.endsWith(' inferences') && name.includes('["tenant"') && sum > MAX_INFERENCES)
        yield `step ${step}: ${name} is ${sum}, and the limit ${MAX_INFERENCES}`
      // The answer of a process that counted as dead is added later, whatever the limit is.
      if (commit?.point === 'limit_reserve') reserved = Math.max(reserved, add ?? 0)
      const max = MAX_TOKENS + reserved
      if (name.endsWith(' tokens') && name.includes('["user"') && sum > max && !plan.hasZombies)
        yield `step ${step}: ${name} is ${sum}, and the limit with one reservation ${max}`
      if (name.includes(' held ') && sum < 0) yield `step ${step}: ${name} is ${sum}`
    }
  }
  for (const [name, held] of sums) {
    if (name.startsWith('limit kept ')) yield `A reservation is left: ${name}`
    // Counters of a period that ended a period ago may be removed at any time, and are left as they are.
    const [, , periodMs, from] = name.split(' ').map(Number)
    if (from! + 2 * periodMs! <= clock.now()) continue
    const spent = sums.get(name.replace(' held ', ' spent ')) ?? 0
    if (name.includes(' held ') && held !== spent)
      yield `${name} is ${held} at the end, and ${spent} was spent`
  }
}

/** Planted bugs against these laws; see `plants.ts`. */
export const limitPlants: Readonly<Record<string, (store: Store) => Store>> = {
  /** Reservations are made without looking at the limit. */
  'no-limit': (store) =>
    spoiling(store, ({ point, counters = [] }) => {
      if (point === 'limit_reserve')
        for (const counter of counters) Object.assign(counter, { below: undefined })
    }),

  /** What a dead process has reserved is not found. */
  'kept-reservation': (store) =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'counters')
          return async (prefix: string) =>
            prefix.startsWith('limit kept ') ? new Map() : target.counters(prefix)
        return typeof member === 'function' ? member.bind(target) : member
      },
    }),

  /** A process that was slow settles what another one has settled. */
  'double-settlement': (store) =>
    spoiling(store, ({ point, counters = [] }) => {
      if (point === 'limit_settle')
        for (const counter of counters) Object.assign(counter, { below: undefined })
    }),

  /** Values of users are written without looking whether somebody else has written them. */
  'blind-user-value': (store) =>
    spoiling(store, ({ userValues = [] }) => {
      for (const change of userValues) Object.assign(change, { expectVersion: undefined })
    }),
}
