import { describe, expect, test } from 'vitest'
import {
  defineTaskClass,
  defineVerifier,
  type Journal,
  type Run,
  type State,
  type TaskClass,
} from '../../src/index.ts'
import { canTransition, isTerminal, STATES } from '../../src/contract/envelope.ts'
import type { JournalItem } from '../../src/journal/events.ts'
import { readItem } from '../../src/journal/read-item.ts'
import { openState } from '../../src/journal/governor-state.ts'
import { reduceJournal } from '../../src/journal/reduce.ts'
import { codesOf, init, judgedResult, kit, taskOf, toolOf, undoBy, World } from '../support/kit.ts'

const allowed: readonly string[] = [
  'intake>plan',
  'plan>execute',
  'execute>verify',
  'verify>deliver',
  'verify>plan',
  'verify>execute',
  ...['intake', 'plan', 'execute', 'verify'].map((state) => `${state}>fail_safe`),
]

/** The states a request went through, in order. */
async function pathOf(entries: readonly { envelope: { state: State } }[]): Promise<State[]> {
  return entries
    .map(({ envelope }) => envelope.state)
    .filter((state, i, all) => state !== all[i - 1])
}

test('UAICP-08 the six phases in their order, and every run that passes intake sees them', async () => {
  expect([...STATES]).toEqual(['intake', 'plan', 'execute', 'verify', 'deliver', 'fail_safe'])
  const { governor, entries, world } = await kit()
  const read = toolOf(world, 'read')
  const task = taskOf({ tools: [read] })
  const bodies = [
    async () => 1,
    async () => {
      throw new Error('no')
    },
  ]
  const paths: State[][] = []
  for (const body of bodies) {
    const result = await governor.run(task, init, body)
    const id = 'receipt' in result ? result.receipt.request_id : ''
    paths.push(await pathOf(await entries(id)))
  }
  expect(paths).toEqual([
    ['intake', 'plan', 'execute', 'verify', 'deliver'],
    ['intake', 'plan', 'execute', 'verify', 'fail_safe'],
  ])
})

test('UAICP-08 a refusal at intake goes straight to fail_safe', async () => {
  const { governor, entries } = await kit()
  const identity = { agent_id: '', owner_id: 'o', control_class: 'autonomous' } as const
  let ran = false
  const result = await governor.run(taskOf({ tools: [] }), { ...init, identity }, async () => {
    ran = true
    return 1
  })
  expect(codesOf(result)).toEqual(['IDENTITY_INVALID'])
  expect(ran).toBe(false)
  expect(await pathOf(await entries())).toEqual(['intake', 'fail_safe'])
})

test('UAICP-12 the table is closed: nothing leads out of the two ends', () => {
  const found = STATES.flatMap((from) =>
    STATES.filter((to) => canTransition(from, to)).map((to) => `${from}>${to}`),
  )
  expect(found.sort()).toEqual([...allowed].sort())
  expect(STATES.filter(isTerminal)).toEqual(['deliver', 'fail_safe'])
})

test('UAICP-12 calls after the end are refused, whoever kept the run', async () => {
  const { governor, world, entries } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const task = taskOf({ tools: [write] })
  let late: (() => Promise<unknown>) | undefined
  const result = await governor.run(task, init, async (run) => {
    late = () => run.call(write, { n: 1 })
    return 1
  })
  expect(result.state).toBe('deliver')
  const before = (await entries()).length
  await expect(late!).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  expect(world.done).toEqual([])
  expect((await entries()).length).toBe(before)
})

const needy = (world: World): TaskClass =>
  taskOf({ tools: [toolOf(world, 'read')], needs: [{ type: 'tool_result', source: 'read' }] })

test('UAICP-10 without a repair policy a broken invariant fails safe at once', async () => {
  const { governor, world, entries } = await kit()
  let passes = 0
  const result = await governor.run(needy(world), init, async () => ++passes)
  expect(passes).toBe(1)
  expect(codesOf(result)).toEqual(['EVIDENCE_MISSING'])
  expect(await pathOf(await entries())).toEqual([
    'intake',
    'plan',
    'execute',
    'verify',
    'fail_safe',
  ])
})

test.each(['plan', 'execute'] as const)(
  'UAICP-11 repair goes back to %s, is counted in every entry and ends at its bound',
  async (to) => {
    const { governor, world, entries } = await kit()
    const task = { ...needy(world), repair: { max: 2, to } }
    const whys: string[][] = []
    const result = await governor.run(task, init, async (run) => {
      whys.push(run.why.map(({ code }) => code))
      return run.attempt
    })
    expect(whys).toEqual([[], ['EVIDENCE_MISSING'], ['EVIDENCE_MISSING']])
    expect(codesOf(result)).toEqual(['EVIDENCE_MISSING', 'REPAIR_EXHAUSTED'])
    const found = await entries()
    const back = to === 'plan' ? ['plan', 'execute', 'verify'] : ['execute', 'verify']
    expect(await pathOf(found)).toEqual([
      'intake',
      'plan',
      'execute',
      'verify',
      ...back,
      ...back,
      'fail_safe',
    ])
    expect(found.every(({ attempt }) => attempt >= 1 && attempt <= 3)).toBe(true)
    expect(found.at(-1)?.attempt).toBe(3)
  },
)

test.each([Infinity, NaN, 0.5, -1, '2'])(
  'UAICP-11 a task class without a bound on its repairs is refused: %s',
  (max) => {
    const define = () =>
      defineTaskClass({
        name: 't',
        tools: [],
        needs: [],
        verifiers: [],
        repair: { max: max as number },
      })
    expect(define).toThrow('repair.max must be a number of repairs')
  },
)

test('UAICP-11 a repaired run delivers, and its first attempt was undone', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
  const read = toolOf(world, 'read')
  const task = taskOf({
    tools: [write, undo, read],
    needs: [{ type: 'tool_result', source: 'read' }],
    repair: { max: 1 },
  })
  const result = await governor.run(task, init, async (run) => {
    await run.call(write, { n: run.attempt })
    if (run.attempt === 2) await run.call(read, {})
    return 'done'
  })
  expect(judgedResult(result)).toMatchObject({ state: 'deliver', value: 'done' })
  expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}', 'write {"n":2}', 'read {}'])
})

test('UAICP-07 plan, call, evidence, verification, gate: in this order, on a snapshot', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read')
  let seen: readonly unknown[] = []
  let lateCall: Promise<unknown> | undefined
  const task = taskOf({
    tools: [read],
    verifiers: [
      defineVerifier({
        id: 'v',
        timeoutMs: 100,
        check: async (evidence) => {
          lateCall = later?.()
          await lateCall?.catch(() => undefined)
          seen = evidence
          expect(Object.isFrozen(evidence)).toBe(true)
          return [{ check_id: 'one', result: 'pass' }]
        },
      }),
    ],
  })
  let later: (() => Promise<unknown>) | undefined
  const result = await governor.run(task, init, async (run) => {
    await run.plan({ steps: ['read'] })
    await run.call(read, { n: 1 })
    later = async () => run.call(read, { n: 2 })
    return 1
  })
  expect(result.state).toBe('deliver')
  expect(seen).toHaveLength(1)
  await expect(lateCall).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  expect((await entries()).map(({ type }) => type)).toEqual([
    'opened',
    'transition',
    'planned',
    'transition',
    'call_settled',
    'transition',
    'verified',
    'delivered',
  ])
})

test('UAICP-13 calls overlap, transitions do not: of two that compete one wins', async () => {
  const { governor, world } = await kit()
  const waiting: (() => void)[] = []
  const read = toolOf(world, 'read', {
    run: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve)
        if (waiting.length === 3) for (const go of waiting) go()
      }),
  })
  const task = taskOf({ tools: [read] })
  const result = await governor.run(task, init, async (run) => {
    await Promise.all([1, 2, 3].map((n) => run.call(read, { n })))
    return world.done.length
  })
  expect(result).toMatchObject({ state: 'deliver', value: 3 })

  const opened = await governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const both = await Promise.allSettled([governor.deliver(id, 1), governor.deliver(id, 2)])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const loser = both.find((one) => one.status === 'rejected')
  expect(loser).toMatchObject({ reason: { code: 'STATE_CONFLICT' } })
  expect((await governor.state(id))?.delivered).toBeDefined()
})

test('UAICP-13 another process that went on first wins', async () => {
  const one = await kit()
  const read = toolOf(one.world, 'read')
  const task = taskOf({ tools: [read] })
  const opened = await one.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const other = one.restart({ tasks: [task] })
  expect(await other.deliver(id, 'theirs')).toMatchObject({ type: 'delivered' })
  const late = one.governor.deliver(id, 'ours')
  await expect(late).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  const delivered = (await one.entries(id)).filter(({ type }) => type === 'delivered')
  expect(delivered).toHaveLength(1)
})

test('UAICP-15 no delivery while a call, an approval or a child is open', async () => {
  const { governor, world } = await kit()
  const read = toolOf(world, 'read')
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [read, high, toolOf(world, 'undo_high')] })
  const opened = await governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  await governor.admit(id, { id: 'a', tool: 'read', args: {} })
  await expect(governor.deliver(id, 1)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await governor.settle(id, 'a', { type: 'result', value: 1 })
  expect(await governor.admit(id, { id: 'b', tool: 'high', args: {} })).toMatchObject({
    type: 'review',
  })
  await expect(governor.deliver(id, 1)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  const denied = { type: 'deny', reason: 'no' } as const
  expect(await governor.admit(id, { id: 'b', tool: 'high', args: {} }, denied)).toMatchObject({
    type: 'deny',
    reasons: [{ code: 'APPROVAL_DENIED' }],
  })
  expect(await governor.deliver(id, 1)).toMatchObject({ type: 'delivered' })
  // A child that waits for a person is open as well.
  const waiting = await governor.run(taskOf({ name: 'outer', tools: [] }), init, async (run) => {
    await run.child(task, {}, async (child) => (await child.call(high, {})).result)
    return 1
  })
  const outer = 'request_id' in waiting ? waiting.request_id : ''
  const open = governor.deliver(outer, 1)
  await expect(open).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await expect(open).rejects.toThrow(/child .* is running/)
})

test('UAICP-15 a body that does not wait for its calls and children is waited for', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read', { run: () => new Promise((go) => setImmediate(go)) })
  const inner = taskOf({ name: 'inner', tools: [read] })
  const task = taskOf({ tools: [read] })
  const result = await governor.run(task, init, async (run) => {
    void run.call(read, { n: 1 })
    void run.child(inner, {}, async (child) => (await child.call(read, { n: 2 })).result)
    return 1
  })
  expect(result.state).toBe('deliver')
  expect(world.count('read')).toBe(2)
  const types = (await entries()).map(({ type }) => type)
  expect(types.indexOf('child_settled')).toBeLessThan(types.lastIndexOf('delivered'))
  expect(types.at(-1)).toBe('delivered')
})

test('UAICP-12 a run kept from an earlier attempt cannot act in a later one', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const read = toolOf(world, 'read')
  const task = taskOf({
    tools: [write, read],
    needs: [{ type: 'tool_result', source: 'read' }],
    repair: { max: 1 },
  })
  let old: Run | undefined
  const refused: string[] = []
  await governor.run(task, init, async (run) => {
    old ??= run
    if (run.attempt === 2) {
      await run.call(read, {})
      await old.call(write, {}).catch((error: { code: string }) => refused.push(error.code))
    }
    return 1
  })
  expect(refused).toEqual(['STATE_CONFLICT'])
  expect(world.done).toEqual(['read {}'])
})

test('UAICP-03 a journal with a gap, or an impossible entry, is not gone on with', async () => {
  const made = await kit()
  const high = toolOf(made.world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(made.world, 'undo_high')] })
  const first = await made.governor.run(
    task,
    init,
    async (run) => (await run.call(high, {})).result,
  )
  const id = 'request_id' in first ? first.request_id : ''
  for (const dropped of [1, 2]) {
    const damaged: Journal = {
      append: made.log.append,
      async *read(options) {
        for await (const record of made.log.read(options)) {
          if (record.envelope.metadata?.['uaicp:seq'] !== dropped) yield record
        }
      },
    }
    const resumed = made.restart({ audit: damaged }).resume(id, task, async () => 1)
    await expect(resumed).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  }
  // Without its first entry there is no request.
  const headless: Journal = {
    append: made.log.append,
    async *read(options) {
      for await (const record of made.log.read(options)) {
        if (record.envelope.metadata?.['uaicp:seq'] !== 0) yield record
      }
    },
  }
  const other = made.restart({ audit: headless })
  expect(await other.state(id)).toBeUndefined()
  await expect(other.resume(id, task, async () => 1)).rejects.toThrow(`no request ${id}`)
})

test('UAICP-03 a request goes on only as the task that it was opened for, and is read alone', async () => {
  const made = await kit()
  const { world, log } = made
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const body = async (run: Run) => (await run.call(high, {})).result
  const first = await made.governor.run(task, init, body)
  const id = 'request_id' in first ? first.request_id : ''
  const reads: unknown[] = []
  const next = made.restart({
    audit: {
      append: log.append,
      read: (options) => (reads.push(options), log.read(options)),
    },
  })
  const unknown = { code: 'STATE_CONFLICT', reasons: [{ subject: 'task' }] }
  await expect(next.resume(id, taskOf({ name: 'other', tools: [] }), body)).rejects.toMatchObject(
    unknown,
  )
  await expect(next.cancel(id)).rejects.toMatchObject(unknown)
  expect(await next.recover()).toEqual([])
  // A task class that was given once is known from then on.
  expect((await next.resume(id, task, body)).outcome).toBe('pending')
  expect(await next.recover()).toMatchObject([{ request_id: id, task: 'task', isPending: true }])
  expect(reads.slice(0, 2)).toEqual([{ requestId: id }, { requestId: id }])
})

test('UAICP-28 an id source that makes no UUIDs is an error', async () => {
  const { governor } = await kit({ ids: () => 'request-1' })
  await expect(governor.run(taskOf({ tools: [] }), init, async () => 1)).rejects.toMatchObject({
    code: 'GOVERNANCE_IDS_INVALID',
  })
})

test('UAICP-12 a request whose process died in intake fails safe when it is recovered', async () => {
  const made = await kit()
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const task = taskOf({ tools: [] })
  const dying = made.restart({
    audit: {
      read: made.log.read,
      append: (entry, options) => {
        if (!entry.line.includes('"opened"')) throw new Error('gone')
        return made.log.append(entry, options)
      },
    },
  })
  let ran = false
  const result = await dying.run(task, { ...init, request_id }, async () => {
    ran = true
    return 1
  })
  expect(codesOf(result)).toEqual(['AUDIT_UNAVAILABLE'])
  expect(ran).toBe(false)
  expect(await dying.open(task, init)).toMatchObject({
    type: 'fail_safe',
    result: { reasons: [{ code: 'AUDIT_UNAVAILABLE' }] },
  })
  const next = made.restart({ tasks: [task] })
  expect(await next.recover()).toMatchObject([
    { request_id, state: 'fail_safe' },
    { state: 'fail_safe' },
  ])
  expect(await next.resume(request_id, task, async () => 1)).toMatchObject({
    reasons: [{ code: 'STATE_CONFLICT', subject: request_id, detail: 'intake' }],
  })
})

test('UAICP-08 a request that is cancelled, in plan or in execute, has seen every phase before its end', async () => {
  const { governor, world, entries } = await kit()
  const task = taskOf({ tools: [toolOf(world, 'read')] })
  for (const isCalled of [false, true]) {
    const opened = await governor.open(task, init)
    const id = opened.type === 'opened' ? opened.request_id : ''
    if (isCalled) {
      await governor.admit(id, { id: 'a', tool: 'read', args: {} })
      await governor.settle(id, 'a', { type: 'result', value: 1 })
    }
    expect(await governor.cancel(id)).toMatchObject({
      state: 'fail_safe',
      reasons: [{ code: 'CANCELLED', subject: id }],
    })
    const path = ['intake', 'plan', 'execute', 'verify', 'fail_safe']
    expect(await pathOf(await entries(id))).toEqual(path)
    const moves = (await entries(id)).filter(({ type }) => type === 'transition')
    expect(moves.map(({ data }) => data['from'])).toEqual(path.slice(0, 4))
    expect(moves.map(({ envelope }) => envelope.outcome)).toEqual([
      'pending',
      'pending',
      'pending',
      'uncertain',
    ])
  }
})

describe('UAICP-03 the fold of a journal', () => {
  test('UAICP-03 holds what happened: calls, steps, chunks, children, effects, reports', async () => {
    const { governor, world, time } = await kit()
    const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
    const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
    const read = toolOf(world, 'read')
    const bare = toolOf(world, 'bare', { risk: 'write_high_risk' })
    const inner = taskOf({ name: 'inner', tools: [write, undo] })
    const task = taskOf({
      tools: [write, undo, read, bare],
      verifiers: ['a', 'b'].map((id) =>
        defineVerifier({
          id,
          timeoutMs: 100,
          check: (_evidence, { candidate }) => [
            { check_id: 'c', result: id === 'a' || candidate === 2 ? 'pass' : 'fail' },
          ],
        }),
      ),
      repair: { max: 1 },
    })
    const ids: string[] = []
    const started = time.now()
    const result = await governor.run(task, init, async (run) => {
      ids[0] = run.request_id
      await run.step('think', () => 1)
      run.chunk('hm')
      await run.call(write, { n: run.attempt }, { id: 'w' })
      await run.call(read, {})
      await time.advance(10)
      if (run.attempt === 1) await run.call(bare, {}).catch(() => undefined)
      else
        await run.child(inner, {}, async (child) => {
          ids[1] = child.request_id
          return (await child.call(write, { n: 9 })).result
        })
      return run.attempt
    })
    expect(result.state).toBe('deliver')
    const [id, childId] = ids as [string, string]
    const state = (await governor.state(id))!
    expect(state).toMatchObject({
      request_id: id,
      parent_trace_id: undefined,
      identity: init.identity,
      startedAt: started,
      state: 'deliver',
      attempt: 2,
      callCount: 6,
      refusals: [],
      chunks: [{ attempt: 1 }, { attempt: 2 }],
      effects: [
        { request_id: id, call: 'w' },
        { request_id: id, call: 'w' },
        { request_id: childId, call: '1.1' },
      ],
      failed: undefined,
    })
    expect(state.why.map(({ code }) => code)).toEqual(['VERIFICATION_FAILED', 'ROLLBACK_REQUIRED'])
    const seen = [...state.calls.values()].map(({ call, tool, risk, attempt, status, effect }) => ({
      call,
      tool,
      risk,
      attempt,
      status,
      effect,
    }))
    const low = 'write_low_risk'
    const reading = { tool: 'read', risk: 'read_only', status: 'done', effect: 'none' }
    expect(seen).toEqual([
      { call: 'w', tool: 'write', risk: low, attempt: 2, status: 'done', effect: 'applied' },
      { call: '1.1', attempt: 1, ...reading },
      {
        call: '1.2',
        tool: 'bare',
        risk: 'write_high_risk',
        attempt: 1,
        status: 'refused',
        effect: 'none',
      },
      { call: '2.1', attempt: 2, ...reading },
    ])
    expect([...state.steps.values()].map(({ step, ok }) => [step, ok])).toEqual([
      ['1.s1', true],
      ['2.s1', true],
    ])
    expect([...state.children.values()]).toMatchObject([
      { child: '2.c1', request_id: childId, attempt: 2, settled: { outcome: 'success', calls: 1 } },
    ])
    // The call was made again, so the record that it was undone is gone.
    expect(state.undo.size).toBe(0)
    expect(state.reports.map(({ verifier, passed }) => [verifier, passed])).toEqual([
      ['a', true],
      ['b', true],
    ])
  })

  test('UAICP-12 no entry can follow that is out of order, of another state or after the end', async () => {
    const { governor, entries } = await kit()
    const result = await governor.run(taskOf({ tools: [] }), init, async () => 1)
    if (result.state !== 'deliver') throw new Error(result.state)
    const all = (await entries()).map(({ envelope }) => readItem({ envelope }))
    const [opened] = all
    if (opened?.type !== 'opened') throw new Error('not opened')
    /** The state after this many entries. */
    const after = (count: number) => {
      const state = openState(opened, init.identity)
      for (const item of all.slice(1, count)) reduceJournal(state, item)
      return state
    }
    const refuses = (count: number, item: object) =>
      expect(() => reduceJournal(after(count), item as JournalItem)).toThrow(
        expect.objectContaining({ code: 'STATE_CONFLICT' }),
      )
    expect(after(all.length).delivered).toBeDefined()
    const [, toPlan, toExecute, toVerify, delivered] = all
    const note = { ...toPlan, type: 'planned', data: { hash: 'sha256:0' } }
    // Another number than the next one.
    refuses(1, { ...toPlan, seq: 2 })
    refuses(1, { ...toPlan, seq: 0 })
    // Another state than the request has, or a transition that the table does not have.
    refuses(2, { ...note, seq: 2, state: 'execute' })
    refuses(2, { ...toVerify, seq: 2 })
    refuses(3, { ...delivered, seq: 3 })
    // Only `delivered` delivers, and it does nothing else.
    refuses(4, { ...toVerify, seq: 4, state: 'deliver' })
    refuses(4, { ...delivered, state: 'execute' })
    // After the end there is nothing.
    refuses(5, { ...note, seq: 5, state: 'deliver' })
    const failed = after(4)
    reduceJournal(failed, { ...toExecute, seq: 4, state: 'fail_safe' } as JournalItem)
    const end = { ...note, type: 'failed_safe', data: { reasons: [], missing: [], undo: [] } }
    reduceJournal(failed, { ...end, seq: 5, state: 'fail_safe' } as unknown as JournalItem)
    expect(failed.failed).toBeDefined()
    expect(() =>
      reduceJournal(failed, { ...note, seq: 6, state: 'fail_safe' } as unknown as JournalItem),
    ).toThrow(expect.objectContaining({ code: 'STATE_CONFLICT' }))
  })
})
