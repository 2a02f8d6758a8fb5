import { expect, test } from 'vitest'
import type { Run } from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'

const request_id = '0190aaaa-0000-7000-8000-000000000001'
const busy = { code: 'STATE_CONFLICT', message: expect.stringContaining('worked on') as string }

/** A request whose process died while the write with the id 1.1 was running; nothing can tell its effect. */
async function crashed() {
  const made = await kit()
  const { world } = made
  let isFirst = true
  const pay = toolOf(world, 'pay', {
    risk: 'write_low_risk',
    rollback: undoBy('pay'),
    run: () => {
      if (!isFirst) return 'paid'
      isFirst = false
      return new Promise(() => undefined)
    },
  })
  const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay', { risk: 'write_low_risk' })] })
  const body = async (run: Run): Promise<string> => String((await run.call(pay, { n: 1 })).result)
  void made.governor.run(task, { ...init, request_id }, body)
  await made.time.advance(1)
  return { ...made, task, body, next: made.restart({ tasks: [task] }) }
}

test.each([
  ['absent', 'recover'],
  ['absent', 'recoverCall'],
  ['absent', 'both'],
  ['applied', 'recover'],
  ['applied', 'recoverCall'],
  ['applied', 'both'],
] as const)(
  'UAICP-01 a request goes on after a person found its call %s (%s before)',
  async (found, way) => {
    const { next, task, body, world } = await crashed()
    if (way !== 'recoverCall')
      expect(await next.recover()).toMatchObject([{ request_id, inDoubt: ['1.1'] }])
    if (way !== 'recover') expect(await next.recoverCall(request_id, '1.1')).toBe('in_doubt')
    await next.settleInDoubt(request_id, '1.1', found)
    const result = await next.resume(request_id, task, body)
    if (found === 'absent') {
      expect(result).toMatchObject({ state: 'deliver', value: 'paid' })
      expect(world.done).toEqual(['pay {"n":1}'])
    } else {
      // The answer of the tool is lost, so the write is undone.
      expect(codesOf(result)).toContain('TOOL_IN_DOUBT')
      expect(result).toMatchObject({ undo: [{ call: '1.1', status: 'done' }] })
      expect(world.done).toEqual(['undo_pay {"n":1}'])
    }
  },
)

test('UAICP-01 a refused answer about a call does not keep its request from going on', async () => {
  const { next, task, body } = await crashed()
  const refused = next.settleInDoubt(request_id, 'other', 'absent')
  await expect(refused).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  expect(await next.resume(request_id, task, body)).toMatchObject({ state: 'fail_safe' })
})

test('UAICP-13 a request is not resumed until every answer about its calls is written', async () => {
  const { log, restart, task, body } = await crashed()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  let isHolding = false
  const next = restart({
    tasks: [task],
    audit: {
      read: log.read,
      append: async (entry, options) => {
        if (isHolding) await held
        return log.append(entry, options)
      },
    },
  })
  await next.recover()
  isHolding = true
  // The second call is not in doubt, so its answer is refused while the first one is being written.
  const answer = next.settleInDoubt(request_id, '1.1', 'absent')
  const refused = next.settleInDoubt(request_id, 'other', 'absent')
  await expect(refused).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await expect(next.resume(request_id, task, body)).rejects.toMatchObject(busy)
  release()
  await answer
  expect(await next.resume(request_id, task, body)).toMatchObject({ state: 'deliver' })
})

test('UAICP-13 a request of stepwise calls stays with them after an answer about one of its calls', async () => {
  const { next, task, body } = await crashed()
  await next.recover()
  const call = { id: 'other', tool: 'pay', args: {} }
  const [, admission] = await Promise.all([
    next.settleInDoubt(request_id, '1.1', 'absent'),
    next.admit(request_id, call),
  ])
  expect(admission).toMatchObject({ type: 'allow' })
  expect(await next.recoverCall(request_id, 'other')).toBeUndefined()
  await expect(next.resume(request_id, task, body)).rejects.toMatchObject(busy)
  await next.settle(request_id, 'other', { type: 'result', value: 1 })
  expect(await next.deliver(request_id, 1)).toMatchObject({ type: 'delivered' })
})
