import { expect, test } from 'vitest'
import { codesOf, identity, init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

function bank(made: Kit) {
  const { world } = made
  const read = toolOf(world, 'read', { run: () => ({ balance: 1 }) })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  const task = taskOf({
    tools: [read, high, undo],
    needs: [{ type: 'tool_result', source: 'read' }],
    repair: { max: 1 },
  })
  return { read, high, task }
}

/** Everything but ids, hashes of them and times. */
const shapeOf = async (made: Kit): Promise<string[]> =>
  (await made.entries()).map(
    ({ type, envelope, attempt, data }) =>
      `${type} ${envelope.state} ${envelope.outcome} ${attempt} ${String(data['tool'] ?? '')}`,
  )

test('UAICP-02 a loop of one’s own over plain data leaves the same log as run does', async () => {
  const one = await kit()
  const { read, high, task } = bank(one)
  const delivered = await one.governor.run(task, { ...init, approve: one.yes }, async (run) => {
    if (run.attempt === 1) return 'too early'
    await run.call(read, {})
    await run.call(high, { n: 1 })
    return 'done'
  })
  expect(delivered.state).toBe('deliver')

  const two = await kit()
  const { task: same } = bank(two)
  // Every step by another process: nothing but the journal connects them.
  const step = () => two.restart({ tasks: [same] })
  const opened = await step().open(same, { identity, input: { wire: 'W-1' } })
  const id = opened.type === 'opened' ? opened.request_id : ''
  expect(await step().deliver(id, 'too early')).toMatchObject({ type: 'repair', attempt: 2 })
  const reader = step()
  expect(await reader.admit(id, { id: '2.1', tool: 'read', args: {} })).toMatchObject({
    type: 'allow',
  })
  expect(await reader.settle(id, '2.1', { type: 'result', value: { balance: 1 } })).toMatchObject({
    type: 'done',
    result: { balance: 1 },
  })
  const call = { id: '2.2', tool: 'high', args: { n: 1 } }
  const asked = await step().admit(id, call)
  if (asked.type !== 'review') throw new Error(asked.type)
  const writer = step()
  expect(await writer.admit(id, call, await two.yes(asked.request))).toMatchObject({
    type: 'allow',
    call: { tool: 'high', args: { n: 1 } },
  })
  await writer.settle(id, '2.2', { type: 'result', value: { ok: true } })
  expect(await step().admit(id, call)).toMatchObject({ type: 'replay', result: { ok: true } })
  expect(await step().deliver(id, 'done')).toMatchObject({
    type: 'delivered',
    result: { value: 'done' },
  })
  expect(await shapeOf(two)).toEqual(await shapeOf(one))
})

test('a call that was running when its process died is settled before it can go on', async () => {
  const made = await kit()
  const { task } = bank(made)
  const first = made.restart({ tasks: [task] })
  const opened = await first.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const call = { id: 'pay', tool: 'high', args: { n: 1 } }
  const asked = await first.admit(id, call)
  if (asked.type !== 'review') throw new Error(asked.type)
  await first.admit(id, call, await made.yes(asked.request))

  const second = made.restart({ tasks: [task] })
  await expect(second.admit(id, call)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await expect(second.deliver(id, 1)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  const third = made.restart({ tasks: [task] })
  expect(await third.recover()).toMatchObject([{ request_id: id, inDoubt: ['pay'] }])
  const left = (await made.entries(id)).filter(({ type }) => type === 'call_settled')
  expect(left).toMatchObject([{ data: { effect: 'in_doubt' }, envelope: { outcome: 'uncertain' } }])
  // A person looked: it did not happen. So it may run now, if a person approves it again.
  await third.settleInDoubt(id, 'pay', 'absent')
  const again = await third.admit(id, call)
  if (again.type !== 'review') throw new Error(again.type)
  expect(again.request.id).not.toBe(asked.request.id)
  expect(again.request.action.round).toBe(2)
  // An approval of the first round, also one that was never used, is not an approval of the second.
  const old = await made.yes(asked.request)
  expect(await third.admit(id, call, old)).toMatchObject({ type: 'review' })
  expect(await third.admit(id, call, await made.yes(again.request))).toMatchObject({
    type: 'allow',
  })
  await third.settle(id, 'pay', { type: 'result', value: 1 })
  await third.admit(id, { id: 'look', tool: 'read', args: {} })
  await third.settle(id, 'look', { type: 'result', value: 1 })
  expect(await third.deliver(id, 1)).toMatchObject({ type: 'delivered' })
})

test('an attempt can be ended without a candidate', async () => {
  const made = await kit()
  const { task } = bank(made)
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const why = [{ code: 'RUN_ERROR', detail: 'the model gave up' }] as const
  expect(await made.governor.fail(id, why)).toMatchObject({ type: 'repair' })
  const ended = await made.governor.fail(id, why)
  if (ended.type !== 'fail_safe') throw new Error(ended.type)
  expect(codesOf(ended.result)).toEqual(['RUN_ERROR', 'EVIDENCE_MISSING', 'REPAIR_EXHAUSTED'])
})

test('a tool that is none of the task’s, or unknown to it, is refused', async () => {
  const made = await kit()
  const { task } = bank(made)
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  expect(await made.governor.admit(id, { id: 'a', tool: 'nobody', args: {} })).toMatchObject({
    type: 'deny',
    reasons: [{ code: 'TOOL_UNKNOWN', subject: 'nobody' }],
  })
})

const found = (subject: string, effect: string) => [
  { code: 'TOOL_IN_DOUBT', subject, detail: `found ${effect}` },
]

test('one call that a crash cut off is settled like recover does, and named what it is', async () => {
  const made = await kit()
  const { world } = made
  let isThere: boolean | 'unknown' = 'unknown'
  const low = { risk: 'write_low_risk' } as const
  const task = taskOf({
    tools: [
      toolOf(world, 'read'),
      toolOf(world, 'probed', { ...low, probe: () => isThere }),
      toolOf(world, 'same', { ...low, idempotent: true }),
      toolOf(world, 'plain', low),
    ],
    acceptInDoubt: true,
  })
  const first = made.restart({ tasks: [task] })
  const opened = await first.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  for (const tool of ['read', 'probed', 'same', 'plain']) {
    await first.admit(id, { id: tool, tool, args: {} })
  }
  expect(await first.recoverCall(id, 'plain')).toBeUndefined()

  const second = made.restart({ tasks: [task] })
  expect(await second.recoverCall(id, 'read')).toBeUndefined()
  expect(await second.recoverCall(id, 'same')).toBe('absent')
  expect(await second.recoverCall(id, 'plain')).toBe('in_doubt')
  expect(await second.recoverCall(id, 'probed')).toBe('in_doubt')
  expect(await second.recoverCall(id, 'probed')).toBe('in_doubt')
  isThere = true
  expect(await second.recoverCall(id, 'probed')).toBe('applied')
  expect(await second.recoverCall(id, 'probed')).toBeUndefined()
  expect(await second.admit(id, { id: 'same', tool: 'same', args: {} })).toMatchObject({
    type: 'allow',
  })
  await second.settle(id, 'same', { type: 'result', value: 1 })
  const settled = (await made.entries(id)).filter(({ type }) => type === 'call_settled')
  const actorOf = ({ envelope }: (typeof settled)[number]) =>
    (envelope.identity['uaicp:actor'] as { type: string }).type
  expect(
    settled.map((entry) => {
      const { call, effect, settled_by, reasons } = entry.data
      return [call, effect, settled_by, entry.envelope.outcome, actorOf(entry), reasons]
    }),
  ).toEqual([
    // Whose doubt stays is recorded once, and again only when something is known.
    ['same', 'absent', 'idempotent', 'failure', 'system', found('same', 'absent')],
    ['plain', 'in_doubt', undefined, 'uncertain', 'agent', found('plain', 'in_doubt')],
    ['probed', 'in_doubt', undefined, 'uncertain', 'agent', found('probed', 'in_doubt')],
    ['probed', 'applied', 'probe', 'failure', 'system', found('probed', 'applied')],
    ['same', 'applied', undefined, 'success', 'agent', undefined],
  ])
  // The doubt about `plain` stays in the log; this task delivers with it.
  expect(await second.deliver(id, 1)).toMatchObject({ type: 'delivered' })
})

test('cancel ends what was failing when its process died, for its own reasons', async () => {
  const made = await kit()
  const { world, log } = made
  const task = taskOf({
    tools: [
      toolOf(world, 'low', { risk: 'write_low_risk', rollback: undoBy('low'), probe: () => true }),
      toolOf(world, 'undo_low', { risk: 'write_low_risk' }),
    ],
  })
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  await made.governor.admit(id, { id: 'w', tool: 'low', args: {} })
  await made.governor.settle(id, 'w', { type: 'result', value: 1 })
  const dying: typeof log = {
    ...log,
    append: (entry, options) => {
      if (entry.line.includes('"undo_settled"')) throw new Error('the machine is gone')
      return log.append(entry, options)
    },
  }
  await made.restart({ tasks: [task], audit: dying }).fail(id, [{ code: 'RUN_ERROR' }])

  const ended = await made.restart({ tasks: [task] }).cancel(id)
  expect(ended).toMatchObject({ state: 'fail_safe', undo: [{ tool: 'low', status: 'done' }] })
  if (ended.state !== 'fail_safe') throw new Error(ended.state)
  expect(codesOf(ended)).toEqual(['RUN_ERROR'])
  expect((await made.entries(id)).at(-1)).toMatchObject({ type: 'failed_safe' })
})

test('steps that come at the same time after a restart are of one request', async () => {
  const made = await kit()
  const { task } = bank(made)
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const second = made.restart({ tasks: [task] })
  const calls = ['a', 'b'].map((call) => second.admit(id, { id: call, tool: 'read', args: {} }))
  expect(await Promise.all(calls)).toMatchObject([{ type: 'allow' }, { type: 'allow' }])
  for (const call of ['a', 'b']) await second.settle(id, call, { type: 'result', value: 1 })
  expect(await second.deliver(id, 1)).toMatchObject({ type: 'delivered' })
})

test('UAICP-08 a request that intake refuses is not opened; one that is opened has both ids', async () => {
  const made = await kit()
  const { task } = bank(made)
  const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const given = { ...init, request_id, trace_id }
  expect(await made.governor.open(task, given)).toEqual({ type: 'opened', request_id, trace_id })
  const refused = await made.governor.open(task, { ...init, trace_id: 'x' })
  expect(refused).toMatchObject({
    type: 'fail_safe',
    result: { state: 'fail_safe', reasons: [{ code: 'SCHEMA_INVALID', subject: 'trace_id' }] },
  })
})

test('UAICP-02 a call that another process admitted is settled with its own arguments', async () => {
  const made = await kit()
  const { world } = made
  const low = toolOf(world, 'low', {
    risk: 'write_low_risk',
    evidence: (result, args) => ({ type: 'tool_result', payload: { result, args } }),
  })
  const task = taskOf({ tools: [low] })
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  await made.governor.admit(id, { id: 'w', tool: 'low', args: { n: 7 } })
  const next = made.restart({ tasks: [task] })
  expect(await next.settle(id, 'w', { type: 'result', value: 5 })).toMatchObject({
    type: 'done',
    result: 5,
    evidence: { source: 'low', payload: { result: 5, args: { n: 7 } } },
  })
  expect(await next.deliver(id, 1)).toMatchObject({ type: 'delivered' })
})

test('UAICP-13 an open request is worked on by one caller; one that has ended can be read', async () => {
  const made = await kit()
  const { task } = bank(made)
  const { governor } = made
  const body = async (): Promise<number> => 9
  const busy = { code: 'STATE_CONFLICT', message: expect.stringContaining('worked on') as string }
  const open = async (): Promise<string> => {
    const opened = await governor.open(task, init)
    return opened.type === 'opened' ? opened.request_id : ''
  }
  const first = await open()
  await expect(governor.resume(first, task, body)).rejects.toMatchObject(busy)
  expect(await governor.deliver(first, 1)).toMatchObject({ type: 'repair' })
  await expect(governor.resume(first, task, body)).rejects.toMatchObject(busy)
  expect(await governor.deliver(first, 1)).toMatchObject({ type: 'fail_safe' })
  expect(await governor.resume(first, task, body)).toMatchObject({ state: 'fail_safe' })
  const second = await open()
  await governor.admit(second, { id: 'r', tool: 'read', args: {} })
  await governor.settle(second, 'r', { type: 'result', value: 1 })
  expect(await governor.deliver(second, 1)).toMatchObject({ type: 'delivered' })
  expect(await governor.resume(second, task, body)).toMatchObject({ state: 'deliver', value: 1 })
  const third = await open()
  const why = [{ code: 'CANCELLED' }] as const
  expect(await governor.fail(third, why)).toMatchObject({ type: 'fail_safe' })
  expect(await governor.resume(third, task, body)).toMatchObject({ state: 'fail_safe' })
  const missing = [{ type: 'tool_result', source: 'read', min: 1, found: 0 }]
  expect(await governor.cancel(await open())).toMatchObject({ missing, undo: [] })
})
