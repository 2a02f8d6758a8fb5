import { canonicalJson, randomIds, seededRandom } from '@skein/base'
import { describe, expect, test } from 'vitest'
import {
  defineVerifier,
  governor as makeGovernor,
  hashJson,
  rules,
  standardPolicy,
  UAICP_VERSION,
  type Envelope,
  type Result,
  type Run,
  type VerificationReport,
} from '../../src/index.ts'
import { hashPolicies } from '../../src/contract/policy.ts'
import { isSupportedVersion, type Hash } from '../../src/contract/envelope.ts'
import { EVIDENCE_SCHEMA } from '../../src/schema/schemas.ts'
import {
  parseEnvelope,
  validateEnvelope,
  validateEvidence,
  validateReport,
} from '../../src/schema/index.ts'
import {
  codesOf,
  identity,
  init,
  kit,
  taskOf,
  toolOf,
  undoBy,
  World,
  type Kit,
} from '../support/kit.ts'
import { assertValid } from '../support/normative.ts'

/** A run in which everything happens: reads, writes, approval, refusal, a child, repair, undo. */
async function busyRun(made: Kit, onChunk?: (chunk: Envelope) => void): Promise<Result<unknown>> {
  const { world } = made
  const read = toolOf(world, 'read', { run: ({ n }) => ({ n: n ?? null }) })
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const unhigh = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  const bare = toolOf(world, 'bare', { risk: 'write_high_risk' })
  const fails = (): never => {
    throw new Error('no')
  }
  const broken = toolOf(world, 'broken', { run: fails })
  const bill = toolOf(world, 'bill', {
    evidence: () => ({ type: 'custom', subtype: 'com.example:bill', payload: { sum: 3 } }),
  })
  const inner = taskOf({ name: 'inner', tools: [read] })
  const task = taskOf({
    tools: [read, write, undo, high, unhigh, bare, broken, bill],
    needs: [
      { type: 'tool_result', source: 'read' },
      { type: 'approval_token', source: 'high' },
    ],
    verifiers: [
      defineVerifier({
        id: 'v',
        timeoutMs: 100,
        check: (evidence) => [{ check_id: 'c', result: evidence.length > 3 ? 'pass' : 'fail' }],
      }),
    ],
    repair: { max: 1 },
  })
  const body = async (run: Run): Promise<string> => {
    await run.plan({ steps: 3 })
    await run.step('think', () => 'thought')
    run.chunk('working')
    await Promise.all([run.call(read, { n: 1 }), run.call(read, { n: 2 })])
    await run.call(write, { n: run.attempt })
    await run.call(bare, {}).catch(() => undefined)
    if (run.attempt === 1) return 'too early'
    await run.call(broken, {}).catch(() => undefined)
    await run.call(bill, {})
    await run.child(
      inner,
      { input: { part: 1 } },
      async (child) => (await child.call(read, { n: 3 })).result,
    )
    await run.call(high, { n: 1 })
    return 'done'
  }
  return made.governor.run(
    task,
    { ...init, approve: made.yes, traceparent: '00-x-y-01', onChunk },
    body,
  )
}

test('UAICP-27 every transition and invocation has ids, time, identity and outcome; none is missing', async () => {
  const made = await kit()
  expect((await busyRun(made)).state).toBe('deliver')
  const entries = await made.entries()
  for (const { envelope } of entries) {
    for (const key of ['request_id', 'trace_id', 'timestamp', 'identity', 'outcome'] as const) {
      expect(envelope[key]).toBeTruthy()
    }
  }
  const settled = entries.filter(({ type }) => type === 'call_settled')
  const inverted = made.world.done.filter((one) => one.startsWith('undo_')).length
  // The tool that fails is not among those that are done.
  expect(settled).toHaveLength(made.world.done.length - inverted + 1)
  expect(entries.filter(({ type }) => type === 'undo_settled')).toHaveLength(inverted)
  const refused = entries.filter(({ type }) => type === 'call_refused')
  expect(refused.map(({ envelope }) => envelope.outcome)).toEqual(['failure', 'failure'])
  expect(settled.map(({ data, envelope }) => [data['tool'], envelope.outcome])).toEqual([
    ['read', 'success'],
    ['read', 'success'],
    ['write', 'success'],
    ['read', 'success'],
    ['read', 'success'],
    ['write', 'success'],
    ['broken', 'failure'],
    ['bill', 'success'],
    ['read', 'success'],
    ['high', 'success'],
  ])
  for (const { type, envelope } of entries) {
    const actor = envelope.identity['uaicp:actor'] as { type: string }
    if (/^call_|^child_|^review_requested$/.test(type)) expect(actor.type).toBe('agent')
    if (/^transition|^opened|^verified|^delivered|^undo_/.test(type))
      expect(actor.type).toBe('system')
  }
  const states = entries.filter(({ type }) => /transition|opened|delivered|failed_safe/.test(type))
  expect(states.length).toBeGreaterThan(8)
})

test('UAICP-28 UUIDs, W3C trace ids and RFC 3339 times in every line', async () => {
  const made = await kit()
  await busyRun(made)
  for (const { envelope } of await made.entries()) {
    expect(envelope.request_id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(envelope.trace_id).toMatch(/^(?!0+$)[0-9a-f]{32}$/)
    if (envelope.parent_trace_id) expect(envelope.parent_trace_id).toMatch(/^[0-9a-f]{32}$/)
    expect(envelope.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }
})

test.each([
  ['request_id', 'W-1'],
  ['request_id', '00000000-0000-4000-8000-00000000000G'],
  ['trace_id', '0'.repeat(32)],
  ['trace_id', 'trace-1001'],
])('UAICP-28 a %s of another form (%s) is refused at intake', async (key, value) => {
  const { governor } = await kit()
  const result = await governor.run(taskOf({ tools: [] }), { ...init, [key]: value }, async () => 1)
  expect(result).toMatchObject({
    reasons: [{ code: 'SCHEMA_INVALID', subject: key }],
    missing: [],
    undo: [],
  })
})

test('UAICP-28 ids that are given are those of the run; all that is wrong with a request is said at once', async () => {
  const { governor, entries, payloads } = await kit()
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
  const seen: unknown[] = []
  await governor.run(taskOf({ tools: [] }), { ...init, request_id, trace_id }, async (run) => {
    seen.push(run.request_id, run.trace_id, run.parent_trace_id)
    return 1
  })
  expect(seen).toEqual([request_id, trace_id, undefined])
  const wrong = { identity: { ...identity, owner_id: '' }, request_id: 'x', trace_id: 'y' }
  const result = await governor.run(
    taskOf({ tools: [] }),
    { ...wrong, input: { n: 1n } as never },
    async () => 1,
  )
  if (result.state !== 'fail_safe') throw new Error(result.state)
  expect(result.reasons.map(({ code, subject }) => [code, subject])).toEqual([
    ['IDENTITY_INVALID', '/identity/owner_id'],
    ['SCHEMA_INVALID', 'request_id'],
    ['SCHEMA_INVALID', 'trace_id'],
    ['SCHEMA_INVALID', 'input'],
  ])
  // The log gets ids of its own, and an agent that nobody knows, with the least freedom.
  const refused = await entries(result.receipt.request_id)
  expect(refused.map(({ type }) => type)).toEqual(['opened', 'transition', 'failed_safe'])
  const [opened] = refused
  expect(opened?.envelope.identity).toMatchObject({
    agent_id: 'unknown',
    owner_id: 'governor.test',
    control_class: 'human-directed',
  })
  expect(opened?.data['input_hash']).toBe(hashJson(null))
  expect(await payloads.get(hashJson(null))).toBe('null')
  const notJson = { ...identity, 'app:n': 1n as never }
  const odd = await governor.run(
    taskOf({ tools: [] }),
    { ...init, identity: notJson },
    async () => 1,
  )
  expect(odd).toMatchObject({ reasons: [{ code: 'IDENTITY_INVALID', subject: '/identity' }] })
})

test('UAICP-27 the first entry of a run says who governs it, by which policies and within which limits', async () => {
  const policy = rules([{ when: () => true, effect: 'allow' }], { id: 'own' })
  const { governor, entries, time } = await kit()
  const inner = taskOf({ name: 'inner', tools: [], policy, limits: { toolCalls: 5 } })
  const outer = taskOf({
    name: 'outer',
    tools: [],
    limits: { deadlineMs: 100, depth: 2, ceiling: 'write_low_risk', toolCalls: 9 },
  })
  const given = { ...init, traceparent: '00-x-y-01' }
  await governor.run(outer, given, (run) => run.child(inner, { input: { part: 1 } }, async () => 1))
  const [first, second] = (await entries()).filter(({ type }) => type === 'opened')
  const deadline = time.now() + 100
  const limits = { deadline, tool_calls: 9, depth: 2, ceiling: 'write_low_risk' }
  expect(first?.data).toEqual({
    governor: 'governor.test',
    task: 'outer',
    input_hash: hashJson(init.input),
    policy_hash: hashPolicies([standardPolicy]),
    depth: 0,
    limits,
    traceparent: '00-x-y-01',
  })
  expect(first?.envelope).toMatchObject({ outcome: 'pending', state: 'intake' })
  expect(first?.envelope.identity).toEqual({
    ...identity,
    'uaicp:actor': { type: 'system', id: 'governor.test' },
  })
  expect(second?.data).toEqual({
    governor: 'governor.test',
    task: 'inner',
    input_hash: hashJson({ part: 1 }),
    policy_hash: hashPolicies([standardPolicy, policy]),
    depth: 1,
    limits: { ...limits, tool_calls: 5, depth: 1 },
    parent: first?.envelope.request_id,
  })
})

test('UAICP-29 every entry names its actor; approvals are never the acting agent’s', async () => {
  const made = await kit()
  await busyRun(made)
  const actors = (await made.entries()).map(({ type, envelope }) => ({
    type,
    actor: envelope.identity['uaicp:actor'] as { type: string; id: string },
  }))
  for (const { actor } of actors) expect(['system', 'agent', 'human']).toContain(actor.type)
  const of = (type: string): string[] =>
    actors.filter((one) => one.type === type).map(({ actor }) => `${actor.type}:${actor.id}`)
  expect(new Set(of('transition'))).toEqual(new Set(['system:governor.test']))
  expect(new Set(of('call_settled'))).toEqual(new Set(['agent:agent-1']))
  expect(of('review_answered')).toEqual(['human:pat'])
})

test('UAICP-30 every line, evidence object and report is valid against the schemas', async () => {
  const made = await kit()
  const chunks: Envelope[] = []
  const result = await busyRun(made, (chunk) => chunks.push(chunk))
  if (result.state !== 'deliver') throw new Error('not delivered')
  expect(chunks.length).toBeGreaterThan(1)
  for (const { envelope } of await made.entries()) assertValid('envelope', envelope)
  for (const { envelope } of await made.entries())
    expect(validateEnvelope(envelope, 'gate')).toEqual([])
  for (const chunk of chunks) assertValid('envelope', chunk)
  for (const evidence of result.evidence) {
    assertValid('evidence', evidence)
    expect(validateEvidence(evidence, 'gate')).toEqual([])
  }
  expect(result.evidence.map((one) => one.evidence_type)).toContain('approval_token')
  for (const report of result.reports) {
    assertValid('report', report)
    expect(validateReport(report, 'gate')).toEqual([])
  }
  // Also the report of the attempt that failed.
  const verified = (await made.entries()).filter(({ type }) => type === 'verified')
  expect(verified).toHaveLength(2)
  for (const { data } of verified) {
    const text = (await made.payloads.get(data['report_hash'] as Hash)) ?? ''
    assertValid('report', JSON.parse(text) as VerificationReport)
  }
})

test('UAICP-31 extensions are namespaced, and without them the objects are still valid', async () => {
  const made = await kit()
  const result = await busyRun(made)
  const strip = (value: object): object =>
    Object.fromEntries(Object.entries(value).filter(([key]) => !key.includes(':')))
  const known = new Set(['agent_id', 'owner_id', 'user_id', 'control_class'])
  for (const { envelope } of await made.entries()) {
    for (const key of Object.keys(envelope.metadata ?? {})) expect(key).toMatch(/^uaicp:[a-z_]+$/)
    for (const key of Object.keys(envelope.identity)) {
      expect(known.has(key) || key.startsWith('uaicp:')).toBe(true)
    }
    assertValid('envelope', { ...envelope, metadata: {}, identity: strip(envelope.identity) })
  }
  if (result.state !== 'deliver') throw new Error('not delivered')
  const required = new Set(Object.keys(EVIDENCE_SCHEMA.properties ?? {}))
  for (const evidence of result.evidence) {
    assertValid('evidence', strip(evidence))
    expect(Object.keys(evidence).filter((key) => !key.includes(':') && !required.has(key))).toEqual(
      [],
    )
  }
  expect(result.evidence.filter((one) => one['uaicp:subtype'] === 'com.example:bill')).toHaveLength(
    1,
  )
})

test('the line of every event is its canonical JSON', async () => {
  const made = await kit()
  await busyRun(made)
  for await (const { line, envelope } of made.log.read()) expect(line).toBe(canonicalJson(envelope))
})

test('no payload is in the log, only its hash', async () => {
  const made = await kit()
  const { world } = made
  const secret = 'canary-4711'
  const read = toolOf(world, 'read', { run: () => secret })
  const task = taskOf({ tools: [read] })
  const result = await made.governor.run(task, { ...init, input: { secret } }, async (run) => {
    run.chunk(secret)
    await run.plan({ secret })
    await run.step('s', () => secret)
    return (await run.call(read, { secret })).result
  })
  expect(result).toMatchObject({ state: 'deliver', value: secret })
  expect((await made.lines()).join('\n')).not.toContain(secret)
})

describe('UAICP-03', () => {
  test('UAICP-03 the same inputs, clock and ids give the same bytes, however tasks interleave', async () => {
    const texts = new Set<string>()
    const repetitions = process.env['SKEIN_DEEP'] ? 100 : 10
    for (let i = 0; i < repetitions; i++) {
      const random = seededRandom(i)
      const made = await kit({}, 7)
      const jitter = async (): Promise<void> => {
        for (let n = Math.floor(random() * 5); n > 0; n--) await Promise.resolve()
      }
      const { payloads } = made
      const shuffled = {
        put: async (hash: Hash, text: string) => {
          await jitter()
          await payloads.put(hash, text)
        },
        get: async (hash: Hash) => {
          await jitter()
          return payloads.get(hash)
        },
      }
      const again = makeGovernor({
        ...made.options,
        ids: randomIds({ random: seededRandom(7) }),
        payloads: shuffled,
      })
      // Tokens are signed anew each time; their ids alone may differ, so none is asked for here.
      const world = new World()
      const read = toolOf(world, 'read', { run: jitter })
      const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
      const tools = [read, write, toolOf(world, 'undo_write', { risk: 'write_low_risk' })]
      const check = async () => {
        await jitter()
        return [{ check_id: 'c', result: 'pass' as const }]
      }
      const verifiers = ['a', 'b', 'c'].map((id) => defineVerifier({ id, timeoutMs: 50, check }))
      const needs = [{ type: 'tool_result' as const, source: 'read', min: 3 }]
      const task = taskOf({ tools, verifiers, needs, repair: { max: 1 } })
      await again.run(task, init, async (run) => {
        await run.call(write, { n: run.attempt })
        for (let n = 0; n <= run.attempt; n++) await run.call(read, { n })
        return run.attempt
      })
      texts.add((await made.lines()).join('\n'))
    }
    expect(texts.size).toBe(1)
  })

  test('UAICP-03 nobody outside can set the state', async () => {
    const { governor, world } = await kit()
    const read = toolOf(world, 'read')
    const opened = await governor.open(taskOf({ tools: [read] }), init)
    const id = opened.type === 'opened' ? opened.request_id : ''
    expect(Object.keys(governor)).toEqual([])
    const state = await governor.state(id)
    Object.assign(state ?? {}, { state: 'deliver', calls: new Map() })
    expect((await governor.state(id))?.state).toBe('plan')
  })
})

describe('UAICP-36', () => {
  test('UAICP-36 0.2 and 0.3 are read, other versions refused, 0.3 is written', async () => {
    const { governor, entries } = await kit()
    await governor.run(taskOf({ tools: [] }), init, async () => 1)
    const [first] = await entries()
    const envelope = first?.envelope as Envelope
    expect(envelope.uaicp_version).toBe(UAICP_VERSION)
    expect(UAICP_VERSION).toBe('0.3')
    for (const uaicp_version of ['0.2', '0.2.9', '0.3', '0.3.0', '0.3.1']) {
      expect(parseEnvelope({ ...envelope, uaicp_version })).toMatchObject({ uaicp_version })
    }
    const others = ['', '0', '0.1', '0.4', '1.0', '2.0.0', '0.3.x', '00.3', 'v0.3', '0.30', '0.20']
    for (const uaicp_version of [...others, '0.33.1', '0.3.01', '0.3.0.0', '0.3 ', '10.3']) {
      expect(isSupportedVersion(uaicp_version)).toBe(false)
      expect(() => parseEnvelope({ ...envelope, uaicp_version })).toThrow(
        expect.objectContaining({ code: 'VERSION_UNSUPPORTED' }),
      )
    }
  })

  test('UAICP-36 unknown namespaced members survive, unknown bare ones are refused', async () => {
    const { entries, governor } = await kit()
    await governor.run(taskOf({ tools: [] }), init, async () => 1)
    const envelope = (await entries())[0]?.envelope as Envelope
    const metadata = { ...envelope.metadata, 'com.example:note': { kept: true } }
    expect(parseEnvelope({ ...envelope, metadata }).metadata).toEqual(metadata)
    expect(() => parseEnvelope({ ...envelope, extra: 1 })).toThrow(
      expect.objectContaining({ code: 'SCHEMA_INVALID' }),
    )
    const upper = `urn:uuid:${envelope.request_id.toUpperCase()}`
    const given = { ...envelope, request_id: upper, metadata: { 'com.example:note': { n: 1 } } }
    const parsed = parseEnvelope(given)
    expect(parsed.request_id).toBe(envelope.request_id)
    // What was parsed is frozen, and what was given is left alone.
    const note = (one: Envelope): unknown => one.metadata?.['com.example:note']
    expect([Object.isFrozen(parsed), Object.isFrozen(note(parsed))]).toEqual([true, true])
    expect([Object.isFrozen(given), Object.isFrozen(note(given))]).toEqual([false, false])
    expect(given.request_id).toBe(upper)
  })
})

test('UAICP-32 a run that fails is marked uncertain, in its result and in its last entry', async () => {
  const made = await kit()
  const task = taskOf({ tools: [], needs: [{ type: 'test_report' }] })
  const result = await made.governor.run(task, init, async () => ({ claim: 'all is well' }))
  expect(result).toMatchObject({ state: 'fail_safe', outcome: 'uncertain' })
  expect(JSON.stringify(result)).not.toContain('all is well')
  const last = (await made.entries()).at(-1)
  expect(last).toMatchObject({
    type: 'failed_safe',
    envelope: { state: 'fail_safe', outcome: 'uncertain' },
  })
})

test('UAICP-33 every missing need is named by type and source, with a reason code', async () => {
  const made = await kit()
  const tools = ['a', 'b'].map((name) => toolOf(made.world, name))
  const needs = [
    { type: 'tool_result', source: 'a', min: 2 },
    { type: 'tool_result', source: 'b' },
    { type: 'custom', subtype: 'com.example:invoice' },
  ] as const
  const result = await made.governor.run(taskOf({ tools, needs }), init, async (run) => {
    await run.call(tools[0]!, {})
    return 1
  })
  expect(result).toMatchObject({
    missing: [
      { type: 'tool_result', source: 'a', min: 2, found: 1 },
      { type: 'tool_result', source: 'b', min: 1, found: 0 },
      { type: 'custom', subtype: 'com.example:invoice', min: 1, found: 0 },
    ],
  })
  expect(
    result.state === 'fail_safe' && result.reasons.map(({ code, subject }) => `${code} ${subject}`),
  ).toEqual([
    'EVIDENCE_MISSING tool_result:a',
    'EVIDENCE_MISSING tool_result:b',
    'EVIDENCE_MISSING custom:com.example:invoice',
  ])
  const last = (await made.entries()).at(-1)
  expect(last?.data['missing']).toHaveLength(3)
})

test('a request id that is taken is a conflict and leaves the first alone', async () => {
  const made = await kit()
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const task = taskOf({ tools: [] })
  const first = await made.governor.run(task, { ...init, request_id }, async () => 1)
  const second = await made.governor.run(task, { identity, input: {}, request_id }, async () => 2)
  expect(first.state).toBe('deliver')
  expect(codesOf(second)).toEqual(['STATE_CONFLICT'])
  expect(await made.governor.resume(request_id, task, async () => 3)).toMatchObject({ value: 1 })
})
