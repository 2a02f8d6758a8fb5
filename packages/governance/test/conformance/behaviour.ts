import { defineVerifier, rules, type TaskClass } from '../../src/index.ts'
import { init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

/** One behaviour that the contract asks for, tried out on a governor. */
export interface Behaviour {
  readonly id: string
  readonly part: 'phases' | 'invariants' | 'objects'
  readonly title: string
  readonly result: 'pass' | 'fail'
}

type Try = (made: Kit) => Promise<boolean>

const failing = (made: Kit): TaskClass =>
  taskOf({ tools: [toolOf(made.world, 'read')], needs: [{ type: 'tool_result', source: 'read' }] })

const tries: readonly [Behaviour['part'], string, Try][] = [
  [
    'phases',
    'a delivered run goes through intake, plan, execute, verify and deliver',
    async (made) => {
      await made.governor.run(taskOf({ tools: [] }), init, async () => 1)
      const states = new Set((await made.entries()).map(({ envelope }) => envelope.state))
      return [...states].join() === 'intake,plan,execute,verify,deliver'
    },
  ],
  [
    'phases',
    'a run that may not deliver ends in fail_safe, uncertain',
    async (made) => {
      const result = await made.governor.run(failing(made), init, async () => 1)
      return result.state === 'fail_safe' && result.outcome === 'uncertain'
    },
  ],
  [
    'phases',
    'repair is bounded',
    async (made) => {
      let passes = 0
      await made.governor.run({ ...failing(made), repair: { max: 2 } }, init, async () => ++passes)
      return passes === 3
    },
  ],
  [
    'invariants',
    'no delivery without the required evidence, and the missing need is named',
    async (made) => {
      const result = await made.governor.run(failing(made), init, async () => 1)
      return result.state === 'fail_safe' && result.missing[0]?.source === 'read'
    },
  ],
  [
    'invariants',
    'no delivery over a failing verifier',
    async (made) => {
      const check = () => [{ check_id: 'c', result: 'fail' as const }]
      const verifiers = [defineVerifier({ id: 'v', timeoutMs: 10, check })]
      const result = await made.governor.run(taskOf({ tools: [], verifiers }), init, async () => 1)
      return result.state === 'fail_safe'
    },
  ],
  [
    'invariants',
    'a low-risk write that policy denies has no effect',
    async (made) => {
      const write = toolOf(made.world, 'write', { risk: 'write_low_risk' })
      const policy = rules([{ when: () => true, effect: 'deny' }])
      const task = taskOf({ tools: [write], policy })
      await made.governor.run(task, init, async (run) => (await run.call(write, {})).result)
      return made.world.done.length === 0
    },
  ],
  [
    'invariants',
    'a high-risk write waits for approval and has no effect before',
    async (made) => {
      const high = toolOf(made.world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
      const task = taskOf({ tools: [high, toolOf(made.world, 'undo_high')] })
      const result = await made.governor.run(
        task,
        init,
        async (run) => (await run.call(high, {})).result,
      )
      return result.outcome === 'pending' && made.world.done.length === 0
    },
  ],
  [
    'invariants',
    'writes of a run that fails are inverted, the last first',
    async (made) => {
      const write = toolOf(made.world, 'write', {
        risk: 'write_low_risk',
        rollback: undoBy('write'),
      })
      const undo = toolOf(made.world, 'undo_write', { risk: 'write_low_risk' })
      await made.governor.run(taskOf({ tools: [write, undo] }), init, async (run) => {
        await run.call(write, { n: 1 })
        await run.call(write, { n: 2 })
        throw new Error('later step fails')
      })
      return made.world.done.slice(2).join() === 'undo_write {"n":2},undo_write {"n":1}'
    },
  ],
  [
    'objects',
    'every emitted envelope is valid and names its actor',
    async (made) => {
      // The kit's log throws on a line that the normative schema refuses.
      await made.governor.run(failing(made), init, async () => 1)
      const entries = await made.entries()
      return entries.every(({ envelope }) => envelope.identity['uaicp:actor'] !== undefined)
    },
  ],
]

/** Tries all of them, each in a world of its own. */
export async function behaviours(): Promise<Behaviour[]> {
  const found: Behaviour[] = []
  for (const [index, [part, title, attempt]] of tries.entries()) {
    const result = (await attempt(await kit())) ? 'pass' : 'fail'
    found.push({ id: `behaviour-${`${index + 1}`.padStart(2, '0')}`, part, title, result })
  }
  return found
}
