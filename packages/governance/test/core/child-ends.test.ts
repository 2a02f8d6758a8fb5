import { describe, expect, test } from 'vitest'
import { rules, type Governor, type Run, type TaskClass } from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

type Body = (run: Run) => Promise<number>

/** A write that `undo_write` undoes, if `canUndo` says so, and a write that waits for a person. */
function toolsOf({ world }: Kit, canUndo: () => boolean) {
  const low = { risk: 'write_low_risk' } as const
  const write = toolOf(world, 'write', { ...low, rollback: undoBy('write') })
  const pay = toolOf(world, 'pay', { risk: 'write_high_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', {
    ...low,
    run: () => {
      if (!canUndo()) throw new Error('locked')
    },
  })
  return { write, pay, tools: [write, pay, undo] }
}

const statusOf = (canUndo: boolean) => (canUndo ? 'done' : 'failed')

describe.each([true, false])('a child that failed, its write can be undone: %s', (canUndo) => {
  async function setUp() {
    const made = await kit()
    const { write, pay, tools } = toolsOf(made, () => canUndo)
    const inner = taskOf({ name: 'inner', tools })
    const middle = taskOf({ name: 'middle', tools: [] })
    const outer = taskOf({ name: 'outer', tools: [] })
    const ids: string[] = []
    const waits: Body = async (run) => {
      ids.push(run.request_id)
      await run.call(write, { n: 1 })
      await run.call(pay, { n: 2 })
      return 1
    }
    const throws: Body = async (run) => {
      ids.push(run.request_id)
      await run.call(write, { n: 1 })
      throw new Error('no')
    }
    const action = { type: 'tool_call', target: 'undo_write', payload: { n: 1 } }
    const left = () => [
      {
        request_id: ids[0],
        call: '1.1',
        tool: 'write',
        action,
        status: statusOf(canUndo),
        error: canUndo ? undefined : 'locked',
      },
    ]
    const undone = canUndo ? 1 : 0
    return { ...made, inner, middle, outer, waits, throws, left, undone, all: [inner, middle] }
  }

  const endings: [string, (made: Awaited<ReturnType<typeof setUp>>) => Promise<unknown>][] = [
    [
      'because its parent was cancelled while both waited',
      async ({ governor, restart, outer, inner, all, waits }) => {
        const first = await governor.run(outer, init, (run) => run.child(inner, {}, waits))
        if (first.outcome !== 'pending') throw new Error(first.state)
        return restart({ tasks: [outer, ...all] }).cancel(first.request_id)
      },
    ],
    [
      'because its parent was resumed and gave up',
      async ({ governor, restart, outer, inner, all, waits }) => {
        const first = await governor.run(outer, init, (run) => run.child(inner, {}, waits))
        if (first.outcome !== 'pending') throw new Error(first.state)
        return restart({ tasks: all }).resume(first.request_id, outer, async () => {
          throw new Error('gives up')
        })
      },
    ],
    [
      'two levels down',
      async ({ governor, restart, outer, middle, inner, all, waits }) => {
        const first = await governor.run(outer, init, (run) =>
          run.child(middle, {}, (child) => child.child(inner, {}, waits)),
        )
        if (first.outcome !== 'pending') throw new Error(first.state)
        return restart({ tasks: [outer, ...all] }).cancel(first.request_id)
      },
    ],
    [
      'by itself',
      ({ governor, outer, inner, throws }) =>
        governor.run(outer, init, (run) => run.child(inner, {}, throws)),
    ],
    [
      'by itself, and its parent hides it',
      ({ governor, outer, inner, throws }) =>
        governor.run(outer, init, (run) => run.child(inner, {}, throws).catch(() => 1)),
    ],
  ]

  test.each(endings)(
    'UAICP-34 %s: the result of the root says what is left',
    async (_name, end) => {
      const made = await setUp()
      const ended = await end(made)
      expect(ended).toMatchObject({ state: 'fail_safe', undo: made.left() })
      const codes = codesOf(ended as Parameters<typeof codesOf>[0])
      expect(codes.filter((code) => code === 'ROLLBACK_FAILED')).toHaveLength(canUndo ? 0 : 1)
      expect(made.world.count('undo_write')).toBe(made.undone)
      // It was tried by the child and not once more by those above it.
      const tried = (await made.entries()).filter(({ type }) => type === 'undo_settled')
      expect(tried).toHaveLength(1)
    },
  )

  test('UAICP-34 the result is the same when it is read again, also where nobody knows the child’s task', async () => {
    const made = await setUp()
    const { governor, restart, outer, inner, throws } = made
    const first = await governor.run(outer, init, (run) => run.child(inner, {}, throws))
    if (first.state !== 'fail_safe') throw new Error(first.state)
    const again = await restart().resume(first.receipt.request_id, outer, async () => 1)
    expect(again).toEqual(first)
  })

  test('UAICP-11 a parent is tried again only if the write of its child was undone', async () => {
    const { governor, inner, throws, world } = await setUp()
    const outer = taskOf({ name: 'outer', tools: [], repair: { max: 1 } })
    const result = await governor.run(outer, init, async (run) =>
      run.attempt === 1 ? run.child(inner, {}, throws) : 2,
    )
    expect(result.state).toBe(canUndo ? 'deliver' : 'fail_safe')
    expect(world.count('write')).toBe(1)
  })
})

test('UAICP-26 what a child undid before it delivered is not undone again when its parent fails', async () => {
  const made = await kit()
  const { write, tools } = toolsOf(made, () => true)
  const { governor, world } = made
  const inner = taskOf({ name: 'inner', tools, repair: { max: 1 } })
  const middle = taskOf({ name: 'middle', tools: [], repair: { max: 1 } })
  const outer = taskOf({ name: 'outer', tools: [], needs: [{ type: 'test_report' }] })
  // The first attempt of the child in the middle undoes the write of a child that delivered.
  const result = await governor.run(outer, init, (run) =>
    run.child(middle, {}, async (child) => {
      await child.child(inner, {}, async (grandchild) => {
        await grandchild.call(write, { n: child.attempt * 10 + grandchild.attempt })
        if (grandchild.attempt === 1) throw new Error('once more')
        return 1
      })
      if (child.attempt === 1) throw new Error('once more')
      return 1
    }),
  )
  expect(result).toMatchObject({ undo: [22, 21, 12, 11].map(() => ({ status: 'done' })) })
  expect(world.done).toEqual([
    'write {"n":11}',
    'undo_write {"n":11}',
    'write {"n":12}',
    'undo_write {"n":12}',
    'write {"n":21}',
    'undo_write {"n":21}',
    'write {"n":22}',
    'undo_write {"n":22}',
  ])
})

test('UAICP-34 a log that fails in a child: the result of the root says that its write is not undone', async () => {
  const made = await kit()
  const { write, tools } = toolsOf(made, () => true)
  const read = toolOf(made.world, 'read')
  const { log, restart, world } = made
  const inner = taskOf({ name: 'inner', tools: [...tools, read] })
  const ids: string[] = []
  let isDead = false
  const dying = restart({
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (isDead) throw new Error('gone')
        return log.append(entry, options)
      },
    },
  })
  const result = await dying.run(taskOf({ name: 'outer', tools: [read] }), init, async (run) => {
    await run.call(read, {})
    return run.child(inner, {}, async (child) => {
      ids.push(child.request_id)
      await child.call(write, { n: 1 })
      isDead = true
      await child.call(read, {})
      return 1
    })
  })
  expect(result).toMatchObject({
    state: 'fail_safe',
    reasons: [{ code: 'AUDIT_UNAVAILABLE' }],
    undo: [{ request_id: ids[0], call: '1.1', tool: 'write', status: 'failed' }],
  })
  expect(world.done).toEqual(['read {}', 'write {"n":1}', 'read {}'])
})

describe('UAICP-17 a child that waits is continued by its parent alone', () => {
  async function parkChild() {
    const made = await kit()
    const { pay, tools } = toolsOf(made, () => true)
    const read = toolOf(made.world, 'read')
    const inner = taskOf({ name: 'inner', tools: [...tools, read] })
    const policy = rules([{ when: ({ tool }) => tool === 'write', effect: 'deny' }], { id: 'no' })
    const outer: TaskClass = { ...taskOf({ name: 'outer', tools: [] }), policy }
    const first = await made.governor.run(outer, init, (run) =>
      run.child(inner, {}, async (child) => (await child.call(pay, { n: 1 })).result),
    )
    if (first.outcome !== 'pending') throw new Error(first.state)
    const child = first.waiting[0]!.action.request_id
    return { ...made, child, inner, outer, parent: first.request_id, asked: first.waiting[0]! }
  }

  const ways: [string, (next: Governor, child: string, inner: TaskClass) => Promise<unknown>][] = [
    ['resume', (next, child, inner) => next.resume(child, inner, async () => 1)],
    ['admit', (next, child) => next.admit(child, { id: 'w', tool: 'write', args: {} })],
    ['deliver', (next, child) => next.deliver(child, 1)],
  ]

  test.each(ways)('UAICP-17 %s with the id of the child is refused', async (_name, go) => {
    const { restart, child, inner, outer, parent, entries, world } = await parkChild()
    const before = (await entries()).length
    await expect(go(restart({ tasks: [outer, inner] }), child, inner)).rejects.toMatchObject({
      code: 'STATE_CONFLICT',
      reasons: [{ subject: child, detail: expect.stringContaining(parent) as string }],
    })
    expect(await entries()).toHaveLength(before)
    expect(world.done).toEqual([])
  })

  test('UAICP-12 a child that has ended can be read by its id, and ended by it', async () => {
    const { restart, child, inner, outer } = await parkChild()
    const next = restart({ tasks: [outer, inner] })
    const ended = await next.cancel(child)
    expect(ended).toMatchObject({ state: 'fail_safe', reasons: [{ code: 'CANCELLED' }] })
    expect(await next.resume(child, inner, async () => 1)).toEqual(ended)
  })
})
