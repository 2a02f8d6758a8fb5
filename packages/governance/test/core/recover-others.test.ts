import { expect, test } from 'vitest'
import type { Run } from '../../src/index.ts'
import { init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'

type Body = (run: Run) => Promise<unknown>

const first = '0190aaaa-0000-7000-8000-000000000001'
const second = '0190aaaa-0000-7000-8000-000000000002'
const blocked = {
  request_id: first,
  task: 'outer',
  error: { code: 'STATE_CONFLICT', message: expect.stringContaining('"inner"') as string },
}

/**
 * Tasks whose time ends after a second. `outer` starts children of `inner`, which a governor knows only if it
 * is named; the first undoing of a write never ends.
 */
async function setUp() {
  const made = await kit()
  const { world } = made
  let isFirst = true
  const low = { risk: 'write_low_risk' } as const
  let hanging = 0
  const run = (): Promise<never> => {
    hanging++
    return new Promise(() => undefined)
  }
  const write = toolOf(world, 'write', { ...low, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', {
    ...low,
    idempotent: true,
    run: () => {
      if (!isFirst) return null
      isFirst = false
      return run()
    },
  })
  const hang = toolOf(world, 'hang', { run })
  const stuck = toolOf(world, 'stuck', { ...low, run })
  const limits = { deadlineMs: 1000 }
  const inner = taskOf({ name: 'inner', tools: [write, undo, hang, stuck] })
  const outer = taskOf({ name: 'outer', tools: [hang], limits })
  const other = taskOf({ name: 'other', tools: [hang], limits })
  /** Runs a request of `outer` and then one of `other`, until both hang. */
  const crash = async (body: Body): Promise<void> => {
    void made.governor.run(outer, { ...init, request_id: first }, body as never)
    await made.time.advance(1)
    await expect.poll(() => hanging).toBe(1)
    const hangs: Body = (run) => run.call(hang, {})
    void made.governor.run(other, { ...init, request_id: second }, hangs as never)
    await made.time.advance(1)
    await expect.poll(() => hanging).toBe(2)
  }
  return { ...made, write, hang, stuck, inner, outer, other, crash }
}

test('UAICP-01 a request with an open child of an unknown task does not keep others from being recovered', async () => {
  const { crash, restart, time, hang, inner, outer, other } = await setUp()
  await crash((run) => run.child(inner, {}, (child) => child.call(hang, {}) as never))
  await time.advance(1001)
  const recovered = await restart({ tasks: [outer, other] }).recover()
  expect(recovered).toMatchObject([
    { ...blocked, state: 'execute' },
    { request_id: second, state: 'fail_safe', error: undefined },
  ])
  const later = await restart({ tasks: [outer, inner] }).recover()
  expect(later.map(({ task, state, error }) => [task, state, error])).toEqual([
    ['inner', 'fail_safe', undefined],
    ['outer', 'fail_safe', undefined],
  ])
  expect(await restart({ tasks: [outer, inner, other] }).recover()).toEqual([])
})

test('UAICP-34 the write of a child whose task is unknown is undone when the task is known', async () => {
  const { crash, restart, time, write, inner, outer, other, world } = await setUp()
  await crash(async (run) => {
    await run.child(inner, {}, async (child) => {
      await child.call(write, { n: 1 })
      return 1
    })
    throw new Error('later steps fail')
  })
  await time.advance(1001)
  const recovered = await restart({ tasks: [outer, other] }).recover()
  expect(recovered).toMatchObject([
    { ...blocked, state: 'fail_safe' },
    { request_id: second, state: 'fail_safe', error: undefined },
  ])
  expect(world.count('undo_write')).toBe(0)
  const later = await restart({ tasks: [outer, inner] }).recover()
  expect(later).toMatchObject([{ request_id: first, state: 'fail_safe', error: undefined }])
  expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}'])
})

test('recover rejects if the log cannot be written: then no request can be recovered', async () => {
  const { crash, restart, log, stuck, inner, outer, other } = await setUp()
  await crash((run) => run.child(inner, {}, (child) => child.call(stuck, {}) as never))
  const append = (): never => {
    throw new Error('disk full')
  }
  const next = restart({ tasks: [outer, inner, other], audit: { read: log.read, append } })
  await expect(next.recover()).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
})
