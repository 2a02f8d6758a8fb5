import { expect, test } from 'vitest'
import type { Pending, Run } from '../src/index.ts'
import { init, kit, taskOf, toolOf, undoBy } from './support/kit.ts'

test('a call that waits ends the pass: what a body makes of the error is not recorded', async () => {
  const { governor, world, sign, entries, restart } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const note = toolOf(world, 'note')
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  const task = taskOf({ tools: [high, note, undo] })
  const asked: string[] = []
  // As frameworks do: the model is shown the error, answers to it and makes another call.
  const body = async (run: Run): Promise<string> => {
    const told = await run.call(high, { n: 1 }, { id: 'a' }).then(
      () => 'done',
      () => 'refused',
    )
    const model = async (): Promise<string> => {
      asked.push(told)
      return `The call was ${told}.`
    }
    const answer = await run.step('model', model).catch(() => 'no answer')
    await run.call(note, { told }, { id: `note ${asked.length}` }).catch(() => undefined)
    return answer
  }
  const first = await governor.run(task, init, body)
  expect(first).toMatchObject({ outcome: 'pending', waiting: [{ action: { call_id: 'a' } }] })
  expect(asked).toEqual([])
  expect((await entries()).map(({ type }) => type)).toEqual([
    'opened',
    'transition',
    'transition',
    'review_requested',
  ])
  const [request] = (first as Pending).waiting
  const tokens = [await sign(request!)]
  const second = await restart().resume(request!.action.request_id, task, body, { tokens })
  expect(second).toMatchObject({ state: 'deliver', value: 'The call was done.' })
  expect(asked).toEqual(['done'])
  expect(world.count('high')).toBe(1)
})

test('calls made at the same time are asked for together, and those that need nobody run', async () => {
  const { governor, world } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const slow = toolOf(world, 'slow', {
    run: () => new Promise((resolve) => setTimeout(resolve, 20, null)),
  })
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  const task = taskOf({ tools: [high, slow, undo] })
  const result = await governor.run(task, init, async (run) => {
    const all = [
      run.call(high, { n: 1 }, { id: 'a' }),
      run.call(slow, {}, { id: 'b' }),
      // As a framework that checks something before it makes a call.
      Promise.resolve().then(async () => {
        for (let tick = 0; tick < 20; tick++) await undefined
        return run.call(high, { n: 2 }, { id: 'c' })
      }),
    ]
    await Promise.allSettled(all)
    return ''
  })
  expect(result).toMatchObject({
    waiting: [{ action: { call_id: 'a' } }, { action: { call_id: 'c' } }],
  })
  expect(world.done).toEqual(['slow {}'])
})

test('a run that is cancelled while a call waits for its neighbours ends', async () => {
  const { governor, world } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const stuck = toolOf(world, 'stuck', {
    run: (_args, { signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('aborted'))),
      ),
  })
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  const task = taskOf({ tools: [high, stuck, undo] })
  const controller = new AbortController()
  const running = governor.run(task, { ...init, signal: controller.signal }, async (run) => {
    await Promise.all([run.call(high, { n: 1 }), run.call(stuck, {})])
    return ''
  })
  setTimeout(() => controller.abort(), 10)
  expect(await running).toMatchObject({ state: 'fail_safe', reasons: [{ code: 'CANCELLED' }] })
})
