import { expect, test } from 'vitest'
import { defineVerifier } from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'

const low = 'write_low_risk' as const

/** Runs a body with a child, chunks, a write and a repair, over a log that fails from its `fails`-th entry on. */
async function runUntil(fails: number, isAsync: boolean, isGood: boolean) {
  const made = await kit()
  const { world, log } = made
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const tools = [read, write, toolOf(world, 'undo_write', { risk: low })]
  const verifiers = [
    defineVerifier({
      id: 'second',
      timeoutMs: 1000,
      check: (_evidence, { candidate }) => [
        { check_id: 'is second', result: candidate === 2 ? 'pass' : 'fail' },
      ],
    }),
  ]
  let count = 0
  const governor = made.restart({
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (++count <= fails) return log.append(entry, options)
        if (!isAsync) throw new Error('gone')
        return Promise.reject(new Error('gone'))
      },
    },
  })
  const result = await governor.run(
    taskOf({ tools, verifiers, repair: { max: 1 } }),
    init,
    async (run) => {
      run.chunk(`attempt ${run.attempt}`)
      await run.step('think', () => 1)
      await run.call(write, { n: run.attempt })
      await run.child(taskOf({ name: 'inner', tools }), {}, async (child) => {
        await child.call(read, {})
        return 1
      })
      return isGood ? run.attempt : 0
    },
  )
  return { result, count }
}

test.each([
  ['throws', 'delivers', false, true],
  ['throws', 'fails', false, false],
  ['rejects', 'delivers', true, true],
  ['rejects', 'fails', true, false],
])(
  'UAICP-01 whichever entry the log %s at, a run that otherwise %s ends with a result that says so',
  async (_how, _end, isAsync, isGood) => {
    const whole = await runUntil(Infinity, isAsync, isGood)
    expect(whole.result.state).toBe(isGood ? 'deliver' : 'fail_safe')
    expect(whole.count).toBeGreaterThan(20)
    for (let fails = 0; fails < whole.count; fails++) {
      const { result } = await runUntil(fails, isAsync, isGood)
      expect(result, `entry ${fails}`).toMatchObject({ state: 'fail_safe', outcome: 'uncertain' })
      expect(codesOf(result), `entry ${fails}`).toContain('AUDIT_UNAVAILABLE')
    }
  },
)

test.each(['a text', '', 0, false, null, undefined, { code: 'X' }, Symbol('s'), 7n])(
  'UAICP-01 a body that throws %o fails safe like one that throws an error',
  async (thrown) => {
    const { governor, entries } = await kit()
    const result = await governor.run(taskOf({ tools: [] }), init, async () => {
      throw thrown
    })
    const reasons = [{ code: 'RUN_ERROR', detail: String(thrown) }]
    expect(result).toMatchObject({ state: 'fail_safe', reasons })
    expect((await entries()).at(-1)).toMatchObject({ type: 'failed_safe', data: { reasons } })
  },
)
