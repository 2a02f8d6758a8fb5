/** A tree of agents is killed at every point where something reaches the outside, and continues. */
import { type AgentState } from '@skein/agents'
import { type CheckpointStore, memoryCheckpoints } from '@skein/agents/checkpoint'
import { seededRandom } from '@skein/base'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { countOf } from '../support/counts.ts'
import { content } from './support/state.ts'
import { effectsOf, liveTree, type TreePlan, type TreeWorld } from './support/tree-run.ts'

const root = mkdtempSync(join(tmpdir(), 'skein-tree-'))
afterAll(() => rmSync(root, { recursive: true }))

/** One process over a store that outlives it. It dies at the given point; nothing happens after that. */
async function oneLife(
  { plan, store, log }: Pick<TreeWorld, 'plan' | 'store' | 'log'>,
  asked: string[],
  diesAt: number,
): Promise<{ readonly state?: AgentState; readonly points: number }> {
  const never = new Promise<never>(() => {})
  let points = 0
  let die = (): void => {}
  const death = new Promise<undefined>((resolve) => (die = () => resolve(undefined)))
  const point = async (): Promise<void> => {
    if (points >= diesAt) return never
    if (++points < diesAt) return
    die()
    return never
  }
  // A write reaches the store and the process dies before it learns of it: the worst moment.
  const mortal: CheckpointStore = {
    ...store,
    save: async (id, state) => {
      if (points >= diesAt) return never
      await store.save(id, state)
      await point()
    },
    record: async (id, entry) => {
      if (points >= diesAt) return never
      await store.record!(id, entry)
      log.push(`recorded ${id}:${entry.toolCallId}`)
      await point()
    },
    delete: async (id) => {
      if (points >= diesAt) return never
      await store.delete(id)
      await point()
    },
    load: (id) => (points >= diesAt ? never : store.load(id)),
  }
  const run = liveTree({ plan, store: mortal, point, log }, asked)
  const result = await Promise.race([run, death])
  return result ? { state: result.state, points } : { points }
}

/**
 * What must be the same with and without crashes. Traces are in the order in which sub-agents ended, and their calls in
 * that in which those of one message ended, which is another one if the process died between them.
 */
function summary(state: AgentState): unknown {
  const known = content(state.withMetadata('agentId', 'any')) as { subagentTraces: Trace[] }
  const { usage, subagentUsage, steps } = state.run!
  return { ...known, subagentTraces: sorted(known.subagentTraces), usage, subagentUsage, steps }
}

type Trace = {
  parentToolCallId: string
  toolExecutions?: { toolCallId: string }[]
  children?: Trace[]
}

function sorted(traces: readonly Trace[]): Trace[] {
  return traces
    .map(({ children = [], toolExecutions = [], ...trace }) => ({
      ...trace,
      toolExecutions: toolExecutions.toSorted((a, b) => a.toolCallId.localeCompare(b.toolCallId)),
      children: sorted(children),
    }))
    .sort((a, b) => a.parentToolCallId.localeCompare(b.parentToolCallId))
}

async function whole(plan: TreePlan) {
  const store = memoryCheckpoints({ journal: true })
  const log: string[] = []
  const asked: string[] = []
  const { state, points } = await oneLife({ plan, store, log }, asked, Infinity)
  return { state: summary(state!), effects: effectsOf(log), asked: asked.toSorted(), points }
}

async function crashing(plan: TreePlan, deaths: readonly number[]) {
  const store = memoryCheckpoints({ journal: true })
  const log: string[] = []
  const asked: string[] = []
  let end: AgentState | undefined
  for (const diesAt of [...deaths, Infinity])
    if (!end) end = (await oneLife({ plan, store, log }, asked, diesAt)).state
  return {
    state: summary(end!),
    effects: effectsOf(log),
    asked: asked.toSorted(),
    sessions: await store.list(),
  }
}

const EVERY = countOf({ fast: 4, all: 1, deep: 1 })

test('UAP-166 a tree killed at every commit point does each effect once, asks once and ends the same', async () => {
  const plan: TreePlan = { topRounds: 1, children: 2, leaves: 2, asks: true }
  const { points, ...expected } = await whole(plan)
  expect(expected.effects).toHaveLength(1 + 2 + 2 * 2 * 3)
  expect(points).toBeGreaterThan(60)
  for (let diesAt = 1; diesAt <= points; diesAt += EVERY) {
    const { sessions, ...found } = await crashing(plan, [diesAt])
    expect(found, `dies at point ${diesAt}`).toEqual(expected)
    expect(sessions, `dies at point ${diesAt}`).toEqual(['tree'])
  }
})

const seeds = countOf({ fast: 30, all: 200, deep: 2000 })
const KILLS = countOf({ fast: 3, all: 20, deep: 20 })

test(`UAP-166 ${seeds} trees that are killed several times`, async () => {
  const known = new Map<string, Awaited<ReturnType<typeof whole>>>()
  for (let seed = 1; seed <= seeds; seed++) {
    const random = seededRandom(seed)
    const pick = (count: number): number => Math.floor(random() * count)
    const plan: TreePlan = {
      topRounds: pick(3),
      children: 1 + pick(3),
      leaves: 1 + pick(2),
      asks: pick(3) > 0,
    }
    const key = JSON.stringify(plan)
    const { points, ...expected } = known.get(key) ?? (await whole(plan))
    known.set(key, { points, ...expected })
    const deaths = Array.from({ length: 1 + pick(4) }, () => 1 + pick(points))
    const { sessions, ...found } = await crashing(plan, deaths)
    expect(found, `seed ${seed}: ${key} ${deaths.join()}`).toEqual(expected)
    expect(sessions, `seed ${seed}`).toEqual(['tree'])
  }
}, 120_000)

const script = join(import.meta.dirname, 'support', 'killed-tree.ts')

test(`UAP-168 UAP-166 ${KILLS} processes with a tree, killed with SIGKILL`, () => {
  const outcomes = new Set<string>()
  let kills = 0
  for (let at = 0; kills < KILLS; at++) {
    const dir = mkdtempSync(join(root, 'process-'))
    for (let life = 0, isDone = false; !isDone; life++) {
      // Each life gets further than the one before, so that it ends.
      const dies = kills >= KILLS ? Infinity : 3 + at * 5 + life * 17
      const args = ['--conditions=@skein/source', script, dir, String(dies)]
      const { status, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      if (signal === 'SIGKILL') kills++
      else if (status !== 0) throw new Error(stderr)
      else isDone = true
    }
    const effects = effectsOf(readFileSync(join(dir, 'log.txt'), 'utf8').trim().split('\n'))
    const asked = readFileSync(join(dir, 'asked.txt'), 'utf8').trim().split('\n')
    expect(effects).toHaveLength(9)
    expect(new Set(asked).size).toBe(asked.length)
    expect(readdirSync(join(dir, 'checkpoints'))).toEqual(['tree'])
    const answer = readFileSync(join(dir, 'answer.json'), 'utf8')
    outcomes.add(JSON.stringify([effects, asked.toSorted(), answer]))
  }
  expect(outcomes.size).toBe(1)
}, 180_000)
