import { expect, test } from 'vitest'
import { rules, type Run, type TaskClass } from '../../src/index.ts'
import { init, kit, taskOf, toolOf } from '../support/kit.ts'
import { manualTime } from '../support/manual-timer.ts'

const policy = rules([{ when: ({ native }) => native === true, effect: 'allow' }], { id: 'vendor' })

const limited: [string, TaskClass['limits'], string | undefined][] = [
  ['no limit', {}, undefined],
  ['the highest ceiling', { ceiling: 'write_high_risk' }, undefined],
  ['a ceiling of low risk', { ceiling: 'write_low_risk' }, 'RISK_CEILING'],
  ['a ceiling of reads', { ceiling: 'read_only' }, 'RISK_CEILING'],
  ['calls left', { toolCalls: 2 }, undefined],
  ['no call left', { toolCalls: 1 }, 'BUDGET_EXCEEDED'],
  ['time left', { deadlineMs: 101 }, undefined],
  ['no time left', { deadlineMs: 100 }, 'DEADLINE_EXCEEDED'],
]

test.each(limited.flatMap((row) => [false, true].map((isChild) => [...row, isChild] as const)))(
  'UAICP-17 a vendor’s tool that a policy allows, with %s (%o): %s (in a child: %s)',
  async (_name, limits, code, isChild) => {
    const time = manualTime()
    let late = 0
    const clock = { now: () => time.now() + late }
    const { governor, world, entries } = await kit({ clock, timer: time.timer })
    const read = toolOf(world, 'read')
    const inner = taskOf({ name: 'inner', tools: [read], policy })
    const outer = { ...taskOf({ name: 'outer', tools: [read], policy }), limits }
    const refusals: unknown[] = []
    const body = async (run: Run): Promise<number> => {
      await run.call(read, {})
      // The clock is at the deadline before the timer of the deadline fires.
      late = 100
      await run.native('search').catch((error: unknown) => refusals.push(error))
      return 1
    }
    await governor.run(outer, init, isChild ? (run) => run.child(inner, {}, body) : body)
    const asked = (await entries()).filter(({ type }) => type === 'native_tool')
    if (code === undefined) {
      expect(refusals).toEqual([])
      expect(asked).toMatchObject([
        { data: { tool: 'search', allowed: true }, envelope: { outcome: 'uncertain' } },
      ])
      return
    }
    expect(refusals).toMatchObject([{ code, reasons: [{ code }] }])
    expect(asked).toMatchObject([
      {
        data: { tool: 'search', allowed: false, reasons: [{ code }] },
        envelope: { outcome: 'failure' },
      },
    ])
  },
)
