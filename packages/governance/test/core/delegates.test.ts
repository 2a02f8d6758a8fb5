import { describe, expect, test } from 'vitest'
import type { Delegate, FailedSafe, GovernorOptions } from '../../src/index.ts'
import { init, kit, taskOf, toolOf, undoBy, World } from '../support/kit.ts'

const low = 'write_low_risk' as const

/** Two governors on one log: `main` makes a request, and `other` makes requests that work for it. */
async function two(more: Partial<GovernorOptions> = {}) {
  const world = new World()
  const made = await kit()
  const list: Delegate[] = []
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const lost = toolOf(world, 'lost', {
    risk: low,
    rollback: undoBy('write'),
    run: () => {
      throw new Error('connection lost')
    },
  })
  const task = taskOf({ tools: [write, lost, toolOf(world, 'undo_write', { risk: low })] })
  const main = made.restart({ delegates: async () => list, tasks: [task], ...more })
  const other = made.restart({ tasks: [task] })
  const opened = await main.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const traceId = opened.type === 'opened' ? opened.trace_id : ''
  /** A request of the other governor that makes these writes and is delivered. */
  const delegate = async () => {
    const own = await other.open(task, { ...init, parent_trace_id: traceId })
    const request_id = own.type === 'opened' ? own.request_id : ''
    list.push({ request_id, task })
    return { request_id, write: (n: number) => call(other, request_id, n) }
  }
  const call = async (by: typeof main, request: string, n: number, tool = 'write') => {
    const admission = await by.admit(request, { id: `w${n}`, tool, args: { n } })
    if (admission.type !== 'allow') throw new Error(admission.type)
    if (tool === 'write') world.done.push(`write {"n":${n}}`)
    await by.settle(
      request,
      `w${n}`,
      tool === 'write'
        ? { type: 'result', value: 'ok' }
        : { type: 'error', reasons: [{ code: 'TOOL_ERROR' }], effect: 'in_doubt' },
    )
  }
  return { ...made, world, main, other, id, task, list, delegate, call }
}

const undone = (world: World): readonly string[] =>
  world.done.filter((one) => one.startsWith('undo_write'))

describe('a request that fails', () => {
  test('UAICP-26 undoes the writes of requests that worked for it, in the reverse order of the log', async () => {
    const { main, other, id, world, delegate, call, entries } = await two()
    const [a, b] = [await delegate(), await delegate()]
    await call(main, id, 1)
    await a.write(2)
    await b.write(3)
    await a.write(4)
    await call(main, id, 5)
    expect((await other.deliver(a.request_id, 'fine')).type).toBe('delivered')
    const result = (await main.cancel(id)) as FailedSafe
    expect(undone(world)).toEqual([5, 4, 3, 2, 1].map((n) => `undo_write {"n":${n}}`))
    expect(result.undo.map(({ status, request_id }) => [status, request_id === id])).toEqual([
      ['done', true],
      ['done', false],
      ['done', false],
      ['done', false],
      ['done', true],
    ])
    const child = (await entries()).find(({ envelope }) => envelope.request_id === a.request_id)
    expect(child?.envelope.parent_trace_id).toMatch(/^[0-9a-f]{32}$/)
  })

  test('undoes nothing that a request below has undone, and leaves alone one that still works', async () => {
    const { main, other, id, world, delegate, list, task } = await two()
    const [a, b] = [await delegate(), await delegate()]
    await a.write(1)
    await b.write(2)
    await other.cancel(a.request_id)
    list[1] = { request_id: b.request_id, task, isActive: true }
    const result = (await main.cancel(id)) as FailedSafe
    expect(undone(world)).toEqual(['undo_write {"n":1}'])
    expect(result.undo).toMatchObject([{ request_id: a.request_id, status: 'done' }])
  })

  test('undoes what a request below has left to it', async () => {
    const { main, other, id, world, delegate } = await two()
    const a = await delegate()
    await a.write(1)
    const left = (await other.cancel(a.request_id, undefined, { leavesWrites: true })) as FailedSafe
    expect(left.undo).toEqual([])
    expect(undone(world)).toEqual([])
    await main.cancel(id)
    expect(undone(world)).toEqual(['undo_write {"n":1}'])
  })

  test('says so if the tools of a request below are not known here', async () => {
    const { main, id, world, delegate, list } = await two()
    const a = await delegate()
    await a.write(1)
    list[0] = { request_id: a.request_id, task: undefined }
    const result = (await main.cancel(id)) as FailedSafe
    expect(result.undo).toMatchObject([
      { status: 'failed', error: expect.stringContaining('is not known here any more') },
    ])
    expect(undone(world)).toEqual([])
  })
})

test('judge undoes nothing until the request is cancelled', async () => {
  const { main, id, world, call } = await two()
  await call(main, id, 1, 'lost')
  await call(main, id, 2)
  const judgement = await main.judge(id, 'a claim')
  expect(judgement).toMatchObject({
    type: 'failing',
    failure: { reasons: [{ code: 'TOOL_IN_DOUBT' }] },
  })
  expect(undone(world)).toEqual([])
  const result = await main.cancel(id)
  expect(result).toMatchObject({ state: 'fail_safe', reasons: [{ code: 'TOOL_IN_DOUBT' }] })
  expect(undone(world)).toEqual(['undo_write {"n":2}'])
})

describe('UAICP-34 a person decides about a write in doubt of a request that has failed', () => {
  test.each([
    ['applied', 'done', 1],
    ['absent', 'done', 0],
    ['unknown', 'in_doubt', 0],
  ] as const)('%s', async (found, status, count) => {
    const { main, id, world, call, task, list, entries } = await two()
    await call(main, id, 1, 'lost')
    expect(await main.cancel(id)).toMatchObject({ undo: [{ status: 'in_doubt' }] })
    list.push({ request_id: id, task })
    const request_id = '0190aaaa-0000-8000-8000-00000000abcd'
    const by = { type: 'human', id: 'ann' } as const
    const decide = () =>
      main.undoDecided(task, { ...init, request_id }, { request_id: id, call: 'w1', found, by })
    expect(await decide()).toMatchObject({ undo: [{ status }] })
    // The same decision again, e.g. after a crash, runs nothing twice.
    expect(await decide()).toMatchObject({ undo: [{ status }] })
    expect(undone(world)).toHaveLength(count)
    const own = (await entries()).filter(({ envelope }) => envelope.request_id === request_id)
    expect(own.some(({ envelope }) => JSON.stringify(envelope.identity).includes('ann'))).toBe(true)
  })
})
