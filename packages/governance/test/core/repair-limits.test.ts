import { expect, test } from 'vitest'
import type { Governance, ReasonCode, TaskClass } from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf } from '../support/kit.ts'

const low = 'write_low_risk' as const

test.each<[string, TaskClass['repair']]>([
  ['that has no rollback', { max: 1 }],
  ['that is not undone first', { max: 1, undoFirst: false }],
])(
  'UAICP-09 a write in doubt of an earlier attempt, %s, prevents delivery of a later one',
  async (_name, repair) => {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', {
      risk: low,
      run: () => {
        throw new Error('connection lost')
      },
    })
    const task = taskOf({ tools: [write], ...(repair && { repair }) })
    const attempts: number[] = []
    const result = await governor.run(task, init, async (run) => {
      attempts.push(run.attempt)
      if (run.attempt === 2) return 1
      await run.call(write, {}).catch(() => undefined)
      throw new Error('once more')
    })
    expect(attempts).toEqual([1, 2])
    expect(codesOf(result)).toContain('TOOL_IN_DOUBT')
  },
)

type Rollback = NonNullable<Governance<object, unknown>['rollback']>
const manual: Rollback = () => ({ type: 'manual', target: 'desk', payload: 'Call them.' })
const failing: Rollback = { tool: 'undo_fail' }
const working: Rollback = { tool: 'undo_work' }

test.each<[string, Rollback | undefined, boolean]>([
  ['undone', working, true],
  ['skipped', undefined, true],
  ['failed', failing, false],
  ['manual', manual, false],
  ['impossible', 'impossible', false],
])(
  'UAICP-10 after a write whose undoing is %s, a run is tried again only if nothing is left',
  async (status, rollback, isRepaired) => {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', { risk: low, ...(rollback && { rollback }) })
    const undoes = [
      toolOf(world, 'undo_work', { risk: low }),
      toolOf(world, 'undo_fail', {
        risk: low,
        run: () => {
          throw new Error('locked')
        },
      }),
    ]
    const tools = [write, ...undoes]
    const task = taskOf({ tools, repair: { max: 1 }, allowManualRollback: true })
    const result = await governor.run(task, init, async (run) => {
      if (run.attempt === 2) return 2
      await run.call(write, {})
      throw new Error('once more')
    })
    if (isRepaired) expect(result).toMatchObject({ state: 'deliver', value: 2 })
    else expect(result).toMatchObject({ state: 'fail_safe', undo: [{ status }] })
  },
)

test.each<[ReasonCode, boolean]>([
  ['RUN_ERROR', true],
  ['VERIFICATION_FAILED', true],
  ['POLICY_BLOCKED', true],
  ['TOOL_ERROR', true],
  ['CANCELLED', false],
  ['DEADLINE_EXCEEDED', false],
  ['BUDGET_EXCEEDED', false],
  ['AUDIT_UNAVAILABLE', false],
  ['STATE_CONFLICT', false],
  ['TOOL_IN_DOUBT', false],
  ['APPROVAL_DENIED', false],
  ['IDENTITY_INVALID', false],
])('UAICP-10 an attempt that failed with %s is tried again: %s', async (code, isRepaired) => {
  const { governor } = await kit()
  const opened = await governor.open(taskOf({ tools: [], repair: { max: 1 } }), init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  const why = [{ code: 'RUN_ERROR' as const }, { code }]
  const ended = await governor.fail(id, why)
  expect(ended.type).toBe(isRepaired ? 'repair' : 'fail_safe')
  if (ended.type === 'fail_safe') expect(ended.result.reasons).toEqual(why)
})
