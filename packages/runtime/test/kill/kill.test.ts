import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { sqliteStore } from '@skein/runtime'
import { foldKernel } from '../../src/fold/fold.ts'
import { callsHaveOneResult } from '../simulation/invariants/calls.ts'
import { childrenAreHeardOnce } from '../simulation/invariants/children.ts'
import type { Finished, FinishedThread } from '../simulation/invariants/finished.ts'
import { numbersAreWhole } from '../simulation/invariants/logs.ts'
import { messagesAreTakenOnce } from '../simulation/invariants/messages.ts'
import { actionOf, EffectsFile } from './kill-agents.ts'

// In CI ten kills, which take about half a minute; fifty with SKEIN_DEEP.
const isDeep = process.env['SKEIN_DEEP'] !== undefined
const KILLS = isDeep ? 50 : 10
const THREADS = 20
const MESSAGES = 15
const THINK_MS = isDeep ? 120 : 40
const folder = mkdtempSync(join(tmpdir(), 'skein-kill-'))
const random = seededRandom(Number(process.env['SKEIN_SEED'] ?? 5))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the worker until it is done, or until it is killed some time after it is ready. */
async function work(killAfterMs: number | undefined): Promise<'done' | 'killed'> {
  const program = join(import.meta.dirname, 'worker.ts')
  const given = [folder, THREADS, MESSAGES, THINK_MS].map(String)
  const worker = spawn(process.execPath, ['--conditions=@skein/source', program, ...given], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') },
  })
  let problem = ''
  worker.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()))
  worker.stdout.once('data', () => {
    if (killAfterMs !== undefined) setTimeout(() => worker.kill('SIGKILL'), killAfterMs)
  })
  const [code, signal] = (await once(worker, 'close')) as [number | null, string | null]
  expect(problem).toBe('')
  expect([code, signal]).toEqual(signal === null ? [0, null] : [null, 'SIGKILL'])
  return signal === null ? 'done' : 'killed'
}

test(
  `SA-81 kill -9 under load, ${KILLS} times: all is done, nothing is lost, doubled or out of order`,
  { timeout: 600_000 },
  async () => {
    const effects = new EffectsFile(join(folder, 'effects.txt'))
    writeFileSync(join(folder, 'effects.txt'), '')
    let kills = 0
    while (kills < KILLS && (await work(20 + random() * 230)) === 'killed') kills++
    expect(kills, 'the work was done before it was killed often enough').toBe(KILLS)
    expect(await work(undefined)).toBe('done')
    const finished = await read()
    const violations: string[] = []
    const given = { ...finished, world: { violate: (what: string) => violations.push(what) } }
    const run = { ...given, clients: { sent: [] } } as unknown as Finished // what the checks look at
    numbersAreWhole(run)
    messagesAreTakenOnce(run)
    callsHaveOneResult(run)
    childrenAreHeardOnce(run)
    expect(violations).toEqual([])
    checkConversations(finished.threads)
    const outcomes = checkEffects(finished.threads, effects.lines())
    process.stdout.write(
      `${kills} kills, ${finished.threads.size} threads, ${JSON.stringify(outcomes)}\n`,
    )
  },
)

async function read(): Promise<{ threads: Map<string, FinishedThread> }> {
  const store = sqliteStore({ path: join(folder, 'data', 'skein.db') })
  expect(await store.check()).toEqual([])
  const threads = new Map<string, FinishedThread>()
  for (const head of await store.list({ limit: 1000, sort: 'oldest' })) {
    const log = await store.events(head.id)
    threads.set(head.id, {
      head,
      log,
      events: log.map(({ event }) => event),
      state: foldKernel(log),
    })
  }
  await store.close()
  return { threads }
}

/** Every message was taken, in order, and every one that asks for something got it asked for once. */
function checkConversations(threads: ReadonlyMap<string, FinishedThread>): void {
  const roots = [...threads.values()].filter(({ head }) => head.parentId === null)
  expect(roots.length).toBe(THREADS)
  for (const { head, events, state } of roots) {
    const thread = head.clientId!.split('-')[1]
    const wanted = Array.from({ length: MESSAGES }, (_, number) => `m-${thread}-${number}`)
    const taken = events.flatMap((event) =>
      event.type === 'message_added' ? (event.queueId ?? []) : [],
    )
    expect(taken.filter((id) => id.startsWith('m-'))).toEqual(wanted)
    expect([head.lifecycle, state.queue, state.session]).toEqual(['idle', [], undefined])
    const called = state.entries.flatMap(({ calls }) =>
      calls.map(({ call }) => String(call.arguments['ref'])),
    )
    expect(called.toSorted()).toEqual(wanted.filter(actionOf).toSorted())
  }
}

/** A write that succeeded happened once; one in doubt at most once; none that may not be repeated twice. */
function checkEffects(
  threads: ReadonlyMap<string, FinishedThread>,
  lines: readonly string[],
): Record<string, number> {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  const outcomes: Record<string, number> = { repeatedPuts: 0 }
  for (const [line, count] of counts)
    if (line.startsWith('put')) outcomes['repeatedPuts']! += count - 1
    else expect(count, line).toBe(1)
  for (const { events } of threads.values())
    for (const event of events) {
      if (event.type !== 'tool_execution_end') continue
      const key = `${event.toolName} ${event.outcome}`
      outcomes[key] = (outcomes[key] ?? 0) + 1
    }
  for (const { state } of threads.values())
    for (const { call, outcome, isUnknown } of state.entries.flatMap(({ calls }) => calls)) {
      if (!['send', 'put', 'pay'].includes(call.toolName) || outcome?.type !== 'done' || isUnknown)
        continue
      expect(counts.get(`${call.toolName} ${String(call.arguments['ref'])}`) ?? 0).toBeGreaterThan(
        0,
      )
    }
  return outcomes
}
