import { expect, test } from 'vitest'
import { init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

function taskIn({ world }: Kit) {
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
  const task = taskOf({
    tools: [read, write, high, undo],
    needs: [
      { type: 'tool_result', source: 'read', min: 2 },
      { type: 'tool_result', source: 'write' },
      { type: 'custom', subtype: 'com.example:price' },
    ],
    limits: { deadlineMs: 1000 },
  })
  return { read, write, high, task }
}

const MISSING = [
  { type: 'tool_result', source: 'read', min: 2, found: 1 },
  { type: 'custom', subtype: 'com.example:price', min: 1, found: 0 },
]
const NEEDED = [
  { code: 'EVIDENCE_MISSING', subject: 'tool_result:read', detail: '1 of 2' },
  { code: 'EVIDENCE_MISSING', subject: 'custom:com.example:price', detail: '0 of 1' },
]

/** Runs until a call waits for a person; by then some of the needs are met. */
async function park(made: Kit) {
  const { read, write, high, task } = taskIn(made)
  const waiting = await made.governor.run(task, init, async (run) => {
    await run.call(read, {})
    await run.call(write, {})
    await run.call(high, {})
    return 1
  })
  if (waiting.outcome !== 'pending') throw new Error(waiting.state)
  return { id: waiting.request_id, task }
}

test('UAICP-33 cancelling a request that waits names what is missing', async () => {
  const made = await kit()
  const { id } = await park(made)
  expect(await made.governor.cancel(id)).toMatchObject({
    reasons: [{ code: 'CANCELLED', subject: id }, ...NEEDED],
    missing: MISSING,
    undo: [{ tool: 'write', status: 'done' }],
  })
})

test.each(['recover', 'resume', 'cancel'] as const)(
  'UAICP-33 a request that waited past its deadline names what is missing when %s finds it',
  async (how) => {
    const made = await kit()
    const { id, task } = await park(made)
    await made.time.advance(1000)
    const next = made.restart({ tasks: [task] })
    if (how === 'recover') await next.recover()
    const ended =
      how === 'cancel' ? await next.cancel(id) : await next.resume(id, task, async () => 1)
    expect(ended).toMatchObject({
      reasons: [{ code: 'DEADLINE_EXCEEDED', subject: id }, ...NEEDED],
      missing: MISSING,
    })
  },
)

test('UAICP-33 a process that dies while it undoes loses nothing of what was missing', async () => {
  const made = await kit()
  const { id, task } = await park(made)
  const { log } = made
  const dying = made.restart({
    tasks: [task],
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (entry.line.includes('"failed_safe"')) throw new Error('gone')
        return log.append(entry, options)
      },
    },
  })
  await dying.cancel(id)
  // The write, whose evidence one of the needs asked for, is undone by now.
  expect(made.world.count('undo_write')).toBe(1)
  const ended = await made.restart({ tasks: [task] }).cancel(id)
  expect(ended).toMatchObject({
    reasons: [{ code: 'CANCELLED', subject: id }, ...NEEDED],
    missing: MISSING,
    undo: [{ tool: 'write', status: 'done' }],
  })
})

test('UAICP-33 a child that ends with its parent names what it lacks', async () => {
  const made = await kit()
  const { read, high, task } = taskIn(made)
  const first = await made.governor.run(taskOf({ name: 'outer', tools: [] }), init, (run) =>
    run.child({ ...task, name: 'inner' }, {}, async (child) => {
      await child.call(read, {})
      return (await child.call(high, {})).result
    }),
  )
  if (first.outcome !== 'pending') throw new Error(first.state)
  await made.governor.cancel(first.request_id)
  const [end] = (await made.entries()).filter(({ type }) => type === 'failed_safe')
  expect(end?.data['missing']).toEqual([
    MISSING[0],
    { type: 'tool_result', source: 'write', min: 1, found: 0 },
    MISSING[1],
  ])
})
