import { describe, expect, test } from 'vitest'
import { type AdmittedCall, NoEffectError } from '@skein/governance'
import { kit, toolOf, undoBy } from '../../test/governance/governed-kit.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import { answerInDoubt, effectiveRisk, failedCall, settleUnknownEffect } from './in-doubt.ts'

const context = { signal: new AbortController().signal, idempotencyKey: 'key' }
const low = { risk: 'write_low_risk' }
const high = { risk: 'write_high_risk', rollback: undoBy('tool') }
const throwing = (): never => {
  throw new Error('no answer')
}

describe.each(['with a governor', 'without'])('a call that a crash cut off, %s', (how) => {
  const settle = async (governance: object) => {
    const tool = toolOf('tool', governance)
    const made = await kit({ tools: [tool, toolOf('undo_tool', low)] })
    const call = { id: 'c', tool: 'tool', args: { n: 1 } }
    let governor = await made.open()
    const admission = await made.admit(governor, call)
    if (admission.type === 'review') {
      await made.admit(governor, call, await made.sign(admission.request))
    }
    governor = await made.open()
    const settled = await settleUnknownEffect({
      tool,
      callId: 'c',
      args: { n: 1 },
      context,
      ...(how === 'with a governor' && { governor }),
    })
    return { settled, made, governor, tool, call }
  }

  test.each([
    ['read_only', { risk: 'read_only' }, 'rerun'],
    ['idempotent', { ...low, idempotent: true }, 'rerun'],
    ['high-risk and idempotent', { ...high, idempotent: true }, 'rerun'],
    ['found by its probe', { ...low, probe: () => true }, 'done'],
    ['found by its probe, idempotent', { ...low, idempotent: true, probe: () => true }, 'done'],
    ['found to be applied', { ...high, probe: async () => 'applied' }, 'done'],
    ['not found by its probe', { ...high, probe: () => false }, 'rerun'],
    ['found to be absent', { ...low, probe: () => 'absent' }, 'rerun'],
    ['low-risk, its probe knows nothing', { ...low, probe: () => 'unknown' }, 'unknown'],
    ['low-risk, its probe fails', { ...low, probe: throwing }, 'unknown'],
    ['idempotent, its probe fails', { ...low, idempotent: true, probe: throwing }, 'rerun'],
    ['low-risk', low, 'unknown'],
    ['high-risk', high, 'ask'],
    ['high-risk, its probe fails', { ...high, probe: throwing }, 'ask'],
    ['raised to high risk', { ...low, ...high, ...low, raise: () => 'write_high_risk' }, 'ask'],
  ])('%s', async (_name, governance, expected) => {
    const { settled } = await settle(governance)
    expect(settled.type).toBe(expected)
    if (settled.type !== 'ask') return
    expect(settled.request).toMatchObject({ tool: 'tool', arguments: { n: 1 } })
  })

  if (how === 'without') return

  test('what is to run again is admitted again, with the same key and without another approval', async () => {
    for (const governance of [
      { ...high, probe: () => false },
      { ...high, idempotent: true },
    ]) {
      const { made, governor, call } = await settle(governance)
      const key = `${governor.requestId}/c@1`
      expect(await made.admit(governor, call)).toMatchObject({
        type: 'allow',
        call: { idempotency_key: key },
      })
      await governor.settle('c', { type: 'result', value: 1 }, 't')
      await made.commit(governor)
      expect(await made.verify()).toMatchObject({ ok: true })
    }
  })

  test('the world is looked at once', async () => {
    let looks = 0
    const { settled } = await settle({ ...low, probe: () => ++looks > 0 })
    expect([settled.type, looks]).toEqual(['done', 1])
  })

  test('the journal is told in the same writes', async () => {
    const { made, governor } = await settle(low)
    expect((await made.entries()).at(-1)?.type).toBe('call_started')
    await made.commit(governor)
    expect((await made.entries()).at(-1)).toMatchObject({
      type: 'call_settled',
      data: { effect: 'in_doubt' },
    })
  })

  test.each([
    ['applied', 'done', 'applied'],
    ['absent', 'rerun', 'absent'],
    ['whatever', 'unknown', 'in_doubt'],
  ])('a person answers %s', async (answer, type, effect) => {
    const { made, governor, tool } = await settle(high)
    await made.commit(governor)
    const next = await made.open()
    const found = await answerInDoubt({ tool, callId: 'c', governor: next, answer })
    expect(found.type).toBe(type)
    await made.commit(next)
    const last = (await made.entries()).findLast((entry) => entry.type === 'call_settled')
    expect(last?.data['effect']).toBe(effect)
  })
})

test('a tier never falls, and one that cannot be told is the highest', () => {
  const risks = (governance: object): string => effectiveRisk(toolOf('t', governance), {})
  expect(risks({ risk: 'read_only' })).toBe('read_only')
  expect(risks({ ...low, raise: () => 'read_only' })).toBe('write_low_risk')
  expect(risks({ risk: 'read_only', raise: () => 'write_low_risk' })).toBe('write_low_risk')
  expect(risks({ risk: 'read_only', raise: () => 'harmless' })).toBe('write_high_risk')
  expect(risks({ risk: 'read_only', raise: throwing })).toBe('write_high_risk')
})

describe('a tool that threw', () => {
  const { signal } = context
  const admitted = (risk: string): AdmittedCall =>
    ({ call: 'c', args: {}, risk, idempotency_key: 'key' }) as unknown as AdmittedCall
  const fail = (tool: ToolDefinition, error: unknown) =>
    failedCall(tool, admitted(tool.governance.risk), { error, message: 'it broke', signal })

  test('has an effect in doubt, unless it writes nothing, says so, or its probe knows', async () => {
    const effects = await Promise.all([
      fail(toolOf('t', low), new Error('it broke')),
      fail(toolOf('t'), new Error('it broke')),
      fail(toolOf('t', low), new NoEffectError('it broke')),
      fail(toolOf('t', { ...low, probe: () => false }), new Error('it broke')),
      fail(toolOf('t', { ...low, probe: () => true }), 'it broke'),
    ])
    expect(effects.map(({ effect }) => effect)).toEqual([
      'in_doubt',
      'absent',
      'absent',
      'absent',
      'applied',
    ])
    expect(effects[0]?.reasons).toEqual([
      { code: 'TOOL_ERROR', subject: 't', detail: 'it broke' },
      { code: 'TOOL_IN_DOUBT', subject: 't' },
    ])
  })

  test('a probe that does not answer before it is stopped has settled nothing', async () => {
    const controller = new AbortController()
    const tool = toolOf('t', { ...low, probe: () => new Promise(() => {}) })
    const { signal: stopping } = controller
    const failing = failedCall(tool, admitted('write_low_risk'), {
      error: new Error('x'),
      message: 'x',
      signal: stopping,
    })
    controller.abort()
    expect(await failing).toMatchObject({ effect: 'in_doubt' })
  })
})
