import { expect, test } from 'vitest'
import {
  defineVerifier,
  type Evidence,
  type TaskClass,
  type VerificationReport,
} from '../../src/index.ts'
import { init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'

test('UAICP-06 the log says of each verifier whether it is mechanical, which it is unless it says otherwise', async () => {
  const { governor, entries } = await kit()
  const says = (id: string, mechanical?: boolean) =>
    defineVerifier({
      id,
      timeoutMs: 1000,
      check: () => [{ check_id: 'c', result: 'pass' }],
      ...(mechanical !== undefined && { mechanical }),
    })
  const verifiers = [says('silent'), says('yes', true), says('no', false)]
  const task = taskOf({ tools: [], verifiers, acceptModelGraded: true })
  expect((await governor.run(task, init, async () => 1)).state).toBe('deliver')
  const verified = (await entries()).filter(({ type }) => type === 'verified')
  expect(verified.map(({ data }) => [data['verifier'], data['mechanical']])).toEqual([
    ['silent', true],
    ['yes', true],
    ['no', false],
  ])
})

/** A task whose first attempt fails, and which needs an approval in its second. */
async function repaired(isNamed: boolean) {
  const made = await kit()
  const { world, yes } = made
  const read = toolOf(world, 'read')
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const seen: (readonly Evidence[])[] = []
  const check: TaskClass['verifiers'][number]['check'] = (evidence, { candidate }) => {
    seen.push(evidence)
    return [{ check_id: 'is second', result: candidate === 2 ? 'pass' : 'fail' }]
  }
  const task = taskOf({
    tools: [read, high, toolOf(world, 'undo_high')],
    verifiers: [defineVerifier({ id: 'second', timeoutMs: 1000, check })],
    repair: { max: 1 },
  })
  const result = await made.governor.run(task, { ...init, approve: yes }, async (run) => {
    await run.call(read, { n: 1 }, isNamed ? { id: 'look' } : {})
    await run.call(read, { n: run.attempt })
    if (run.attempt === 2) await run.call(high, {})
    return run.attempt
  })
  if (result.state !== 'deliver') throw new Error(result.state)
  return { ...made, task, result, seen }
}

test.each([
  [true, 4],
  [false, 4],
])(
  'UAICP-07 a report names what its verifier saw, of its attempt alone, with the approvals (named: %s)',
  async (isNamed, count) => {
    const { result, seen, entries } = await repaired(isNamed)
    const idsOf = (list: readonly Evidence[] = []) => list.map(({ evidence_id }) => evidence_id)
    expect(seen.map((list) => list.length)).toEqual([2, count])
    expect(result.reports.map(({ evidence_ids }) => evidence_ids)).toEqual([idsOf(seen[1])])
    expect(idsOf(result.evidence)).toEqual(idsOf(seen[1]))
    const verified = (await entries()).filter(({ type }) => type === 'verified')
    expect(verified.map(({ data }) => data['evidence'])).toEqual(seen.map(idsOf))
    expect(seen[1]?.map(({ evidence_type }) => evidence_type).sort()).toEqual([
      'approval_token',
      'tool_result',
      'tool_result',
      'tool_result',
    ])
  },
)

test('UAICP-07 a delivered result that is read again is the same, with the reports of its last attempt alone', async () => {
  const { result, restart, task } = await repaired(false)
  expect(result.reports.map(({ status }: VerificationReport) => status)).toEqual(['pass'])
  const again = await restart().resume(result.receipt.request_id, task, async () => 9)
  expect(again).toEqual(result)
})

test('UAICP-04 the evidence of a run is a list that nobody else can change', async () => {
  const { governor, world } = await kit()
  const read = toolOf(world, 'read')
  const forged = { evidence_id: 'x', evidence_type: 'tool_result', source: 'ledger' } as never
  const result = await governor.run(taskOf({ tools: [read] }), init, async (run) => {
    const before = run.evidence
    expect(() => (before as Evidence[]).push(forged)).toThrow(TypeError)
    const { evidence } = await run.call(read, {})
    expect(before).toEqual([])
    expect(run.evidence).toEqual([evidence])
    expect(() => ((run.evidence as Evidence[])[0] = forged)).toThrow(TypeError)
    expect(() => Object.assign(run.evidence[0]!, { source: 'ledger' })).toThrow(TypeError)
    expect(run.evidence).toEqual([evidence])
    return 1
  })
  expect(result).toMatchObject({ state: 'deliver', evidence: [{ source: 'read' }] })
})
