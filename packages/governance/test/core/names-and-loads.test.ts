import { expect, test } from 'vitest'
import { hashJson } from '../../src/index.ts'
import { parseEnvelope, validateEvidence, validateReport } from '../../src/schema/index.ts'
import { codesOf, identity, init, kit, taskOf, toolOf } from '../support/kit.ts'
import { smallest } from '../support/samples.ts'

const sound = {
  evidence: { ...smallest.evidence, hash: hashJson(smallest.evidence['payload']) },
  report: { ...smallest.report, verifier_id: 'v', evidence_ids: ['e'] },
}

test.each<[string, boolean]>([
  ['a:b', true],
  ['com.example:a:b', true],
  [':b', false],
  ['a:', false],
  [':', false],
  ['a b:c', false],
  ['a:b c', false],
  ['plain', false],
])('UAICP-31 an extension named "%s" passes the gate: %s', (name, isNamespaced) => {
  const issues = isNamespaced ? [] : [{ path: `/${name}`, rule: 'namespace' }]
  expect(validateEvidence({ ...sound.evidence, [name]: 1 }, 'gate')).toMatchObject(issues)
  expect(validateReport({ ...sound.report, [name]: 1 }, 'gate')).toMatchObject(issues)
  expect(validateEvidence({ ...sound.evidence, [name]: 1 }, 'gate')).toHaveLength(issues.length)
  expect(validateReport({ ...sound.report, [name]: 1 }, 'gate')).toHaveLength(issues.length)
})

test.each(['', 'urn:uuid:', 'URN:UUID:', 'Urn:Uuid:'])(
  'UAICP-36 a request id with the prefix "%s", in either case, is read as the bare id',
  (prefix) => {
    const id = String(smallest.envelope['request_id'])
    for (const text of [id, id.toUpperCase()]) {
      const read = parseEnvelope({ ...smallest.envelope, request_id: prefix + text })
      expect(read.request_id).toBe(id)
    }
  },
)

test('UAICP-31 namespaced members of an identity are the same in every entry, also after a restart', async () => {
  const { governor, restart, entries, world } = await kit()
  const own = { ...identity, 'com.example:team': { name: 'ops', floors: [1, 2] } }
  const task = taskOf({ tools: [toolOf(world, 'read')] })
  const opened = await governor.open(task, { ...init, identity: own })
  const id = opened.type === 'opened' ? opened.request_id : ''
  const next = restart({ tasks: [task] })
  expect((await next.state(id))?.identity).toEqual(own)
  await next.admit(id, { id: 'r', tool: 'read', args: {} })
  await next.settle(id, 'r', { type: 'result', value: 1 })
  await next.deliver(id, 1)
  const found = (await entries()).map(({ envelope }) => {
    const { 'uaicp:actor': _actor, ...rest } = envelope.identity
    return rest
  })
  expect(found.length).toBeGreaterThan(4)
  for (const one of found) expect(one).toEqual(own)
})

test('UAICP-19 evidence without a subtype meets no need for one', async () => {
  const { governor, world } = await kit()
  const read = toolOf(world, 'read')
  const subtype = 'com.example:rate'
  const task = taskOf({ tools: [read], needs: [{ type: 'tool_result', subtype }] })
  const result = await governor.run(task, init, async (run) => (await run.call(read, {})).result)
  expect(result).toMatchObject({
    state: 'fail_safe',
    missing: [{ type: 'tool_result', subtype, min: 1, found: 0 }],
  })
})

test('UAICP-22 a read that fails leaves no doubt, in the log, in its error and for a repair', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read', {
    run: ({ n }) => {
      if (n === 1) throw new Error('down')
      return 2
    },
  })
  const task = taskOf({ tools: [read], repair: { max: 1 } })
  const why: unknown[] = []
  const result = await governor.run(task, init, async (run) => {
    why.push(...run.why)
    return (await run.call(read, { n: run.attempt })).result
  })
  expect(codesOf(result)).toEqual([])
  expect(result).toMatchObject({ state: 'deliver', value: 2 })
  const reasons = [{ code: 'TOOL_ERROR', subject: 'read', detail: 'down' }]
  expect(why).toEqual(reasons)
  const [first] = (await entries()).filter(({ type }) => type === 'call_settled')
  expect(first).toMatchObject({
    data: { effect: 'none', reasons },
    envelope: { outcome: 'failure' },
  })
})

test('UAICP-25 a call that is asked for again with other arguments has the rollback of those', async () => {
  const { governor, world } = await kit()
  const high = toolOf(world, 'high', {
    risk: 'write_high_risk',
    rollback: ({ n }) => ({ type: 'tool_call', target: 'undo_high', payload: { n: n as number } }),
  })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const opened = await governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  for (const n of [1, 2, 1]) {
    const asked = await governor.admit(id, { id: 'w', tool: 'high', args: { n } })
    if (asked.type !== 'review') throw new Error(asked.type)
    expect(asked.request.action).toMatchObject({ args: { n }, rollback: { payload: { n } } })
  }
})
