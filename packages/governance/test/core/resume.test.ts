import { describe, expect, test } from 'vitest'
import { memoryPayloads, rules, type Governor, type Run } from '../../src/index.ts'
import {
  codesOf,
  init,
  judgedResult,
  kit,
  taskOf,
  toolOf,
  undoBy,
  type Kit,
} from '../support/kit.ts'

type Body = (run: Run) => Promise<number>

function bank(made: Kit) {
  const { world } = made
  const read = toolOf(world, 'read', { run: () => world.done.length })
  const low = toolOf(world, 'low', { risk: 'write_low_risk' })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  return { read, low, high, task: taskOf({ tools: [read, low, high, undo] }) }
}

async function park(governor: Governor, task: ReturnType<typeof taskOf>, body: Body) {
  const result = await governor.run(task, init, body)
  if (result.outcome !== 'pending') throw new Error(`not pending: ${JSON.stringify(result)}`)
  return result
}

test('resume goes on in another process and runs no completed call or step again', async () => {
  const made = await kit()
  const { read, low, high, task } = bank(made)
  let asked = 0
  const body: Body = async (run) => {
    const before = await run.call(read, {})
    await run.call(low, { n: 1 })
    const thought = await run.step('think', () => ++asked)
    await run.call(high, { thought })
    return Number(before.result) + thought
  }
  const first = await park(made.governor, task, body)
  const again = await made.restart().resume(first.request_id, task, body)
  expect(again).toEqual(first)
  const tokens = [await made.sign(first.waiting[0]!)]
  const done = await made.restart().resume(first.request_id, task, body, { tokens })
  expect(judgedResult(done)).toMatchObject({ state: 'deliver', value: 1 })
  expect(asked).toBe(1)
  expect(made.world.done).toEqual(['read {}', 'low {"n":1}', 'high {"thought":1}'])
  const recorded = await made.restart().resume(first.request_id, task, async () => 99)
  expect(recorded).toMatchObject({ state: 'deliver', value: 1 })
  expect(made.world.done).toHaveLength(3)
})

test('other arguments under the same call are another request, with a rollback of their own', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const asking =
    (n: number): Body =>
    async (run) => {
      await run.call(high, { n })
      return n
    }
  const first = await park(made.governor, task, asking(1))
  const rollbackOf = ({ waiting }: typeof first) => waiting[0]!.action.rollback
  expect(rollbackOf(first)).toMatchObject({ target: 'undo_high', payload: { n: 1 } })
  const changed = await made.restart().resume(first.request_id, task, asking(2))
  if (changed.outcome !== 'pending') throw new Error('not pending')
  expect(changed.waiting[0]!.action.args).toEqual({ n: 2 })
  expect(rollbackOf(changed)).toMatchObject({ target: 'undo_high', payload: { n: 2 } })
})

test('one approved state resumed three times runs its action once', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const tokens = [await made.sign(first.waiting[0]!)]
  const results = await Promise.allSettled(
    [1, 2, 3].map(() => made.restart().resume(first.request_id, task, body, { tokens })),
  )
  expect(made.world.count('high')).toBe(1)
  const delivered = results.filter(
    (one) => one.status === 'fulfilled' && one.value.state === 'deliver',
  )
  expect(delivered).toHaveLength(1)
})

test('a token that is of no use leaves the run waiting, with the reason', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const token = await made.sign(first.waiting[0]!)
  await made.time.advance(120_000)
  const late = await made.restart().resume(first.request_id, task, body, { tokens: [token] })
  expect(late).toMatchObject({ outcome: 'pending', rejected: [{ code: 'APPROVAL_EXPIRED' }] })
  const fresh = [await made.sign(first.waiting[0]!)]
  expect(
    await made.restart().resume(first.request_id, task, body, { tokens: fresh }),
  ).toMatchObject({
    state: 'deliver',
  })
})

test('a child that waits twice reports every request and every rejection to its parent', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = (run) =>
    run.child(task, {}, async (child) => {
      const calls = [{ n: 1 }, { n: 2 }].map((args) => child.call(high, args))
      await Promise.allSettled(calls)
      return 1
    })
  const first = await park(made.governor, task, body)
  expect(first).toMatchObject({ waiting: [{}, {}], rejected: undefined })
  const token = await made.sign(first.waiting[1]!)
  await made.time.advance(120_000)
  const late = await made.restart().resume(first.request_id, task, body, { tokens: [token] })
  if (late.outcome !== 'pending') throw new Error(late.outcome)
  const idsOf = (waiting: typeof late.waiting) => waiting.map(({ id }) => id).sort()
  expect(idsOf(late.waiting)).toEqual(idsOf(first.waiting))
  const codes = late.rejected?.map(({ code }) => code).sort()
  expect(codes).toEqual(['APPROVAL_EXPIRED', 'APPROVAL_EXPIRED'])
})

test('a person who denies is heard, and the run fails safe', async () => {
  const made = await kit()
  const { high, low, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(low, {})
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const by = { type: 'human', id: 'pat' } as const
  const denials = [{ id: first.waiting[0]!.id, reason: 'too much', by }]
  const result = await made.restart().resume(first.request_id, task, body, { denials })
  expect(codesOf(result)).toContain('APPROVAL_DENIED')
  expect(result).toMatchObject({ undo: [{ tool: 'low', status: 'skipped' }] })
  expect(made.world.count('high')).toBe(0)
})

describe('a replay that takes another way is a conflict before it has an effect', () => {
  const ways: [string, (tools: ReturnType<typeof bank>) => Body][] = [
    [
      'other arguments',
      ({ low, high }) =>
        async (run) => {
          await run.call(low, { n: 2 })
          await run.call(high, {})
          return 1
        },
    ],
    [
      'another tool',
      ({ read, high }) =>
        async (run) => {
          await run.call(read, { n: 1 })
          await run.call(high, {})
          return 1
        },
    ],
    ['no call', () => async () => 1],
  ]
  test.each(ways)('%s', async (_name, other) => {
    const made = await kit()
    const tools = bank(made)
    const first = await park(made.governor, tools.task, async (run) => {
      await run.call(tools.low, { n: 1 })
      await run.call(tools.high, {})
      return 1
    })
    const result = await made.restart().resume(first.request_id, tools.task, other(tools))
    expect(codesOf(result)).toContain('STATE_CONFLICT')
    expect(made.world.done).toEqual(['low {"n":1}'])
  })
})

test.each(['erased', 'changed'])('a payload that was %s is not believed on resume', async (how) => {
  const payloads = memoryPayloads()
  const made = await kit({ payloads })
  const { read, high, task } = bank(made)
  let damage: (() => void) | undefined
  const seen: unknown[] = []
  const body: Body = async (run) => {
    const { evidence, result } = await run.call(read, {})
    seen.push(result)
    damage = () => {
      if (how === 'erased') payloads.erase(evidence.hash)
      else void payloads.put(evidence.hash, '"forged"')
    }
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  damage?.()
  const result = await made.restart().resume(first.request_id, task, body)
  expect(codesOf(result)).toContain('EVIDENCE_INVALID')
  expect(seen).toEqual([0])
})

test('a policy that changed while the run waited asks for a new approval', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  const tokens = [await made.sign(first.waiting[0]!)]
  const policy = rules([{ when: () => true, effect: 'review' }], { id: 'stricter' })
  const second = await made.restart({ policy }).resume(first.request_id, task, body, { tokens })
  expect(second).toMatchObject({ outcome: 'pending' })
  expect(made.world.done).toEqual([])
})

test('a policy that now denies a write that was made blocks its delivery', async () => {
  const made = await kit()
  const { high, low, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(low, { n: 1 })
    await run.call(high, {}).catch((error: { code: string }) => {
      if (error.code !== 'APPROVAL_DENIED') throw error
    })
    return 1
  }
  const first = await park(made.governor, task, body)
  const denials = [{ id: first.waiting[0]!.id, reason: 'no' }]
  const policy = rules([
    { when: ({ tool }) => tool === 'low', effect: 'deny' },
    { when: ({ tool }) => tool === 'high', effect: 'review' },
  ])
  const result = await made.restart({ policy }).resume(first.request_id, task, body, { denials })
  expect(result.outcome).not.toBe('success')
})

test('cancel ends a run that waits, and recover one whose time is over', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  expect(codesOf(await made.governor.cancel(first.request_id))).toEqual(['CANCELLED'])
  const timed = { ...task, name: 'timed', limits: { deadlineMs: 1000 } }
  const second = await park(made.governor, timed, body)
  const early = await made.restart({ tasks: [timed] }).recover()
  expect(early).toMatchObject([
    { request_id: second.request_id, isPending: true, state: 'execute' },
  ])
  await made.time.advance(1001)
  const late = await made.restart({ tasks: [timed] }).recover()
  expect(late).toMatchObject([
    { request_id: second.request_id, state: 'fail_safe', isPending: false },
  ])
  expect(await made.restart({ tasks: [timed] }).recover()).toEqual([])
})

test('a tool whose running twice is one run is run again after a crash, with the same key', async () => {
  const made = await kit()
  const { world } = made
  const keys: string[] = []
  let isFirst = true
  const pay = toolOf(world, 'pay', {
    risk: 'write_low_risk',
    idempotent: true,
    run: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey)
      if (!isFirst) return 'paid'
      isFirst = false
      return new Promise(() => undefined)
    },
  })
  const task = taskOf({ tools: [pay] })
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const body: Body = async (run) => {
    await run.call(pay, { n: 1 })
    return 1
  }
  void made.governor.run(task, { ...init, request_id }, body)
  await made.time.advance(1)
  const result = await made.restart().resume(request_id, task, body)
  expect(result).toMatchObject({ state: 'deliver' })
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
})
