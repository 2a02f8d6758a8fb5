import { AgentState } from '@skein/agents'
import { fileCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { says, type ScriptFunction } from '@skein/ai/testing'
import fc from 'fast-check'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { countOf } from '../support/counts.ts'
import { jobScript, live, type Job, type Mortal } from './support/mortal-run.ts'
import { content } from './support/state.ts'

const root = mkdtempSync(join(tmpdir(), 'skein-kill-'))
afterAll(() => rmSync(root, { recursive: true }))

const jobs = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 5 })
/** Each process writes so often before it dies; the last one lives. */
const deaths = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 5 })

const steps = [
  { id: 'one', description: 'act', dependsOn: [] },
  { id: 'two', description: 'tell', dependsOn: ['one'] },
]
const strategies = {
  loop: { execution: loop(), script: jobScript },
  react: {
    execution: react(),
    script: (job: Job): ScriptFunction => {
      const acting = jobScript(job)
      return (request, index) =>
        request.tools.length === 0 ? says('I think.') : acting(request, index)
    },
  },
  plan: {
    execution: plan(),
    script: (job: Job): ScriptFunction => {
      const acting = jobScript(job)
      return (request, index) =>
        request.structure ? says(JSON.stringify({ steps })) : acting(request, index)
    },
  },
}

type Options = Pick<Mortal, 'isJournalled' | 'isSequential'>

function mortal(name: keyof typeof strategies, job: Job, options: Options): Mortal {
  const { execution, script } = strategies[name]
  const dir = mkdtempSync(join(root, 'run-'))
  return { dir, job, execution, script: script(job), effects: [], ...options }
}

/** Lives and dies until the work is done; gives the last state, as it is on the disk. */
async function toTheEnd(one: Mortal, lives: readonly number[]): Promise<AgentState> {
  for (const diesAfter of lives) if (await live(one, diesAfter)) break
  await live(one, Infinity)
  return AgentState.fromJSON(await fileCheckpoints({ dir: one.dir }).load('job'))
}

const known = (state: AgentState): unknown => content(state.withMetadata('agentId', 'any'))
const callCount = (job: Job): number => job.reduce((sum, count) => sum + count, 0)
const names = Object.keys(strategies) as (keyof typeof strategies)[]

describe.each(names)('%s', (name) => {
  const numRuns = countOf({ fast: 3, all: 6, deep: 300 })

  test('UAP-166 killed anywhere and resumed: the same transcript, and with the journal each effect once', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, deaths, async (job, lives) => {
        const options = { isJournalled: true, isSequential: true }
        const [killed, whole] = [mortal(name, job, options), mortal(name, job, options)]
        expect(known(await toTheEnd(killed, lives))).toEqual(known(await toTheEnd(whole, [])))
        expect(killed.effects).toEqual(whole.effects)
        expect(new Set(killed.effects).size).toBe(callCount(job))
      }),
      { seed: 166, numRuns },
    )
  })

  test('UAP-166 without the journal the transcript is the same too; effects may repeat, under the same key', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, deaths, async (job, lives) => {
        const options = { isJournalled: false, isSequential: false }
        const [killed, whole] = [mortal(name, job, options), mortal(name, job, options)]
        expect(known(await toTheEnd(killed, lives))).toEqual(known(await toTheEnd(whole, [])))
        expect(new Set(killed.effects)).toEqual(new Set(whole.effects))
      }),
      { seed: 1660, numRuns },
    )
  })

  test('UAP-166 calls side by side: only those under way at death are repeated, under the same key', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, deaths, async (job, lives) => {
        const one = mortal(name, job, { isJournalled: true, isSequential: false })
        await toTheEnd(one, lives)
        expect(new Set(one.effects).size).toBe(callCount(job))
        expect(one.effects.length).toBeLessThanOrEqual(
          callCount(job) + lives.length * (Math.max(...job) - 1),
        )
      }),
      { seed: 16600, numRuns },
    )
  })
})

describe('UAP-168 real processes, killed with SIGKILL', () => {
  const script = join(import.meta.dirname, 'support', 'killed-process.ts')
  const run = (dir: string, dies: number): number | null => {
    const args = ['--conditions=@skein/source', script, dir, String(dies)]
    const { status, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    if (signal !== 'SIGKILL' && status !== 0) throw new Error(stderr)
    return signal === 'SIGKILL' ? null : status
  }

  const processes = countOf({ fast: 1, all: 2, deep: 25 })
  const plans = [
    [3, 2],
    ...Array.from({ length: 24 }, (_, seed) => [1 + (seed % 7), 4 + ((seed * 5) % 8)]),
  ].slice(0, processes)
  test.each(plans)('UAP-168 UAP-166 after %i and %i writes', (...deaths) => {
    const dir = mkdtempSync(join(root, 'process-'))
    for (const dies of deaths) run(dir, dies)
    expect(run(dir, Infinity)).toBe(0)
    const effects = readFileSync(join(dir, 'effects.txt'), 'utf8').trim().split('\n')
    expect(effects).toEqual(['0.0', '0.1', '1.0', '2.0', '2.1', '2.2'])
    const answer = JSON.parse(readFileSync(join(dir, 'answer.json'), 'utf8')) as string[]
    expect(answer).toEqual([
      'user',
      ...Array.from({ length: 3 }, () => ['assistant', 'tool_result']).flat(),
      'assistant',
    ])
  })
})
