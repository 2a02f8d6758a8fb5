import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  defineVerifier,
  governor as makeGovernor,
  hashJson,
  memoryPayloads,
  standardPolicy,
  type Approvals,
  type JournalItem,
  type State,
} from '../../src/index.ts'
import { TRANSITIONS } from '../../src/contract/envelope.ts'
import { memoryLog } from '../../src/audit/index.ts'
import { randomIds, seededRandom } from '@skein/base'
import { init, judged, taskOf, toolOf, undoBy, World } from '../support/kit.ts'
import { manualTime } from '../support/manual-timer.ts'

const runs = process.env['SKEIN_DEEP'] ? 100_000 : 600

/** What a body, its tools and the people around it may do; drawn at random. */
interface Script {
  readonly needs: number
  readonly repair: number
  readonly verifier: 'pass' | 'fail' | 'throw' | 'later'
  readonly steps: readonly Step[]
  readonly end: 'return' | 'throw'
  readonly isUndoBroken: boolean
}

type Step =
  | { readonly type: 'read' | 'low' | 'chunk' | 'plan' | 'step' | 'unknown' | 'native' }
  | { readonly type: 'doubt'; readonly found: 'applied' | 'absent' | 'unknown' }
  | { readonly type: 'high'; readonly answer: 'approve' | 'deny' | 'wait' | 'forge' }
  | { readonly type: 'child'; readonly isGood: boolean; readonly writes: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    type: fc.constantFrom('read', 'low', 'chunk', 'plan', 'step', 'unknown', 'native'),
  }),
  fc.record({
    type: fc.constant('doubt' as const),
    found: fc.constantFrom('applied', 'absent', 'unknown'),
  }),
  fc.record({
    type: fc.constant('high' as const),
    answer: fc.constantFrom('approve', 'deny', 'wait', 'forge'),
  }),
  fc.record({ type: fc.constant('child' as const), isGood: fc.boolean(), writes: fc.boolean() }),
)

const script: fc.Arbitrary<Script> = fc.record({
  needs: fc.integer({ min: 0, max: 2 }),
  repair: fc.integer({ min: 0, max: 2 }),
  verifier: fc.constantFrom('pass', 'pass', 'pass', 'fail', 'throw', 'later'),
  steps: fc.array(step, { maxLength: 6 }),
  end: fc.constantFrom('return', 'return', 'return', 'throw'),
  isUndoBroken: fc.boolean(),
})

/** People who can be told what to say; the real tokens have a suite of their own. */
const approvals: Approvals = {
  redeem: async ([token]) =>
    token === 'good'
      ? { ok: true, approvers: [{ id: 'pat', issuer: 'bank', jti: 'j', type: 'human' }] }
      : { ok: false, reason: { code: 'APPROVAL_INVALID' } },
}

async function play({ needs, repair, verifier, steps, end, isUndoBroken }: Script) {
  const world = new World()
  const time = manualTime()
  const items: JournalItem[] = []
  let answer: 'approve' | 'deny' | 'wait' | 'forge' = 'wait'
  let found: 'applied' | 'absent' | 'unknown' = 'unknown'
  const low = 'write_low_risk' as const
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'low', { risk: low, rollback: undoBy('low') })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const doubt = toolOf(world, 'doubt', {
    risk: low,
    rollback: undoBy('low'),
    probe: () => found,
    run: () => {
      throw new Error('lost')
    },
  })
  const undo = (name: string) =>
    toolOf(world, name, {
      risk: low,
      run: () => {
        if (isUndoBroken) throw new Error('stuck')
      },
    })
  const tools = [read, write, high, doubt, undo('undo_low'), undo('undo_high')]
  const inner = taskOf({ name: 'inner', tools })
  const task = taskOf({
    tools,
    needs: needs > 0 ? [{ type: 'tool_result', source: 'read', min: needs }] : [],
    verifiers: [
      defineVerifier({
        id: 'v',
        timeoutMs: 10,
        check: (_evidence, context) => {
          if (verifier === 'throw') throw new Error('boom')
          const isGood = verifier === 'pass' || (verifier === 'later' && context.candidate === 2)
          return [{ check_id: 'c', result: isGood ? 'pass' : 'fail' }]
        },
      }),
    ],
    ...(repair > 0 && { repair: { max: repair } }),
  })
  const governor = makeGovernor({
    id: 'g',
    audit: judged(memoryLog()),
    payloads: memoryPayloads(),
    policy: standardPolicy,
    approvals,
    clock: time,
    timer: time.timer,
    ids: randomIds({ random: seededRandom(1) }),
    observe: (item) => items.push(item),
  })
  const result = await governor.run(
    task,
    {
      ...init,
      approve: async () => {
        if (answer === 'wait') return { type: 'wait' }
        if (answer === 'deny') return { type: 'deny', reason: 'no' }
        return { type: 'approve', tokens: [answer === 'approve' ? 'good' : 'bad'] }
      },
    },
    async (run) => {
      for (const [n, one] of steps.entries()) {
        const ignore = (error: { code?: string }): void => {
          if (error.code === 'APPROVAL_REQUIRED') throw error
        }
        if (one.type === 'read') await run.call(read, { n })
        else if (one.type === 'low') await run.call(write, { n, attempt: run.attempt })
        else if (one.type === 'chunk') run.chunk(`${run.attempt} ${n}`)
        else if (one.type === 'plan') await run.plan({ n })
        else if (one.type === 'step') await run.step('s', () => n)
        else if (one.type === 'native') await run.native('search').catch(ignore)
        else if (one.type === 'unknown')
          await run.call(toolOf(world, 'stranger'), { n }).catch(ignore)
        else if (one.type === 'doubt') {
          ;({ found } = one)
          await run.call(doubt, { n }).catch(ignore)
        } else if (one.type === 'high') {
          ;({ answer } = one)
          await run.call(high, { n }).catch(ignore)
        } else if (one.type === 'child') {
          const { isGood, writes } = one
          const body = async (
            child: Parameters<Parameters<typeof run.child>[2]>[0],
          ): Promise<number> => {
            if (writes) await child.call(write, { n, child: true })
            if (!isGood) throw new Error('child fails')
            return n
          }
          await run.child(inner, {}, body).catch(ignore)
        }
      }
      if (end === 'throw') throw new Error('body fails')
      return run.attempt
    },
  )
  return { result, items, world }
}

/** What must hold of any run, told from its entries and the world alone. */
function check(script: Script, { result, items, world }: Awaited<ReturnType<typeof play>>): void {
  const root = items.find(({ type }) => type === 'opened')?.request_id
  const states = new Map<string, State>()
  const attempts = new Map<string, number>()
  const closed = new Set<string>()
  const sequence = new Map<string, number>()
  for (const item of items) {
    const { request_id } = item
    if (closed.has(request_id)) throw new Error('an entry after the end')
    expect(item.seq).toBe(sequence.get(request_id) ?? 0)
    sequence.set(request_id, item.seq + 1)
    const before = states.get(request_id)
    if (before && before !== item.state && !TRANSITIONS[before].includes(item.state)) {
      throw new Error(`${before} to ${item.state}`)
    }
    if (before === 'verify' && (item.state === 'plan' || item.state === 'execute')) {
      attempts.set(request_id, (attempts.get(request_id) ?? 0) + 1)
    }
    states.set(request_id, item.state)
    if (item.type === 'delivered' || item.type === 'failed_safe') closed.add(request_id)
    if (item.type === 'call_started' && before === 'fail_safe')
      throw new Error('a write after the decision')
  }
  expect(attempts.get(root ?? '') ?? 0).toBeLessThanOrEqual(script.repair)
  // UAICP-01: delivered with proof, failed safe, or (a pause) waiting for people.
  if (result.outcome === 'pending') {
    expect(script.steps.some((one) => one.type === 'high' && one.answer === 'wait')).toBe(true)
    expect(closed.has(root ?? '')).toBe(false)
    return
  }
  expect(closed.size).toBe(states.size)
  expect(states.get(root ?? '')).toBe(result.state)
  const forged = script.steps.every((one) => one.type !== 'high' || one.answer !== 'approve')
  if (forged) expect(world.count('high')).toBe(0)
  expect(world.count('stranger')).toBe(0)
  if (result.state === 'deliver') {
    expect(script.end).toBe('return')
    expect(script.verifier === 'pass' || script.verifier === 'later').toBe(true)
    expect(result.evidence.filter(({ source }) => source === 'read').length).toBeGreaterThanOrEqual(
      script.needs,
    )
    for (const { payload, hash } of result.evidence) expect(hash).toBe(hashJson(payload ?? null))
    expect(script.steps.some((one) => one.type === 'child' && !one.isGood)).toBe(false)
    return
  }
  if (result.state !== 'fail_safe') throw new Error('a third end')
  expect(result.outcome).toBe('uncertain')
  expect(result.reasons.length).toBeGreaterThan(0)
  const writes = world.count('low') + world.count('high')
  const undone = world.count('undo_low') + world.count('undo_high')
  const inDoubt = script.steps.some((one) => one.type === 'doubt' && one.found !== 'absent')
  if (!script.isUndoBroken && !inDoubt) expect(undone).toBe(writes)
  if (script.isUndoBroken) {
    const failed = result.undo.filter(({ status }) => status === 'failed').length
    expect(undone).toBe(0)
    if (writes > 0 && !script.steps.some((one) => one.type === 'child'))
      expect(failed).toBeGreaterThan(0)
  }
}

test(
  'UAICP-01 any run ends delivered with proof or failed safe, by the table and within its bounds',
  { timeout: process.env['SKEIN_DEEP'] ? 3_600_000 : 60_000 },
  async () => {
    const ends = { deliver: 0, fail_safe: 0, pending: 0 }
    await fc.assert(
      fc.asyncProperty(script, async (one) => {
        const played = await play(one)
        ends[
          played.result.outcome === 'pending' ? 'pending' : (played.result.state as 'deliver')
        ] += 1
        check(one, played)
      }),
      { seed: 1, numRuns: runs },
    )
    if (process.env['SKEIN_DEEP']) console.log(`state machine: ${runs} sequences`, ends)
    for (const count of Object.values(ends)) expect(count).toBeGreaterThan(runs / 50)
  },
)
