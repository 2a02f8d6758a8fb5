import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hashJson } from '../../src/index.ts'
import {
  validateEnvelope,
  validateEvidence,
  validateReport,
  type ValidationIssue,
} from '../../src/schema/index.ts'
import { readEnvelope } from '../../src/audit/read-envelope.ts'
import { findRollbackIssues } from '../../src/schema/validate.ts'
import { judge, type Kind } from '../support/normative.ts'
import { smallest, without } from '../support/samples.ts'

const validators: Record<Kind, (value: unknown, level?: 'schema' | 'gate') => ValidationIssue[]> = {
  envelope: validateEnvelope,
  evidence: validateEvidence,
  report: validateReport,
}
const runs = process.env['SKEIN_DEEP'] ? 50_000 : 2_000

const id = '0190aaaa-0000-7000-8000-000000000001'
const at = '2026-01-01T00:00:00.000Z'
const valid: Record<Kind, Record<string, unknown>> = {
  envelope: {
    uaicp_version: '0.3',
    request_id: id,
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    parent_trace_id: 'p',
    state: 'execute',
    timestamp: at,
    identity: { agent_id: 'a', owner_id: 'o', user_id: 'u', control_class: 'autonomous' },
    outcome: 'pending',
    streaming: { chunk_id: 'c', is_final: false, stream_index: 0, 'uaicp:verified': false },
    rollback_action: { type: 'restore', target: 't', payload: {} },
    metadata: { 'uaicp:seq': 1 },
  },
  evidence: {
    evidence_id: 'e',
    evidence_type: 'tool_result',
    source: 's',
    collected_at: at,
    hash: hashJson({ n: 1 }),
    payload: { n: 1 },
    request_id: id,
    trace_id: 't',
    parent_trace_id: 'p',
    actor: 'tool:s',
  },
  report: {
    report_id: 'r',
    request_id: id,
    verifier_id: 'v',
    evidence_ids: ['e'],
    status: 'pass',
    checks: [{ check_id: 'c', result: 'pass', details: 'd' }],
    generated_at: at,
  },
}

/** Values that tend to be on the border of some rule. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    '',
    'x',
    0,
    -5,
    1.5,
    Number.POSITIVE_INFINITY,
    Number.NaN,
    true,
    [],
    {},
    [''],
    [1],
    'deliver',
    'pass',
    'skip',
    'custom',
    'human-directed',
    id.toUpperCase(),
    `urn:uuid:${id}`,
    `${id}0`,
    '2026-01-01T00:00:00Z',
    '2026-01-01t00:00:00.5z',
    '2026-01-01 00:00:00+01:00',
    '2026-01-01T00:00:00',
    '2026-02-29T00:00:00Z',
    '2024-02-29T00:00:00+0130',
    '2026-01-01T23:59:60Z',
    '2026-01-01T22:59:60-01:00',
    '2026-01-01T23:59:61Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:00+24:00',
    '2026-13-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '2026-01-01T00:00:00+01',
  ),
  fc.json().map((text) => JSON.parse(text) as unknown),
  fc
    .date({ noInvalidDate: true, min: new Date('0000-01-01'), max: new Date('9999-12-31') })
    .map((date) => date.toISOString()),
  fc.stringMatching(
    /^\d{4}-[01]\d-[0-3]\d[Tt ][0-2]\d:[0-6]\d:[0-6]\d(\.\d{1,3})?([Zz]|[+-][0-2]\d:?[0-6]\d)?$/,
  ),
  fc.uuid(),
)

/** A valid object with up to four changes, somewhere inside. */
function mutants(kind: Kind): fc.Arbitrary<unknown> {
  const paths = pathsOf(valid[kind])
  const change = fc.record({
    path: fc.constantFrom(...paths),
    value: odd,
    how: fc.constantFrom('set', 'drop', 'add'),
    name: fc.constantFrom('extra', 'com.example:x', '__proto__', 'constructor', 'toString'),
  })
  return fc.array(change, { maxLength: 4 }).map((changes) => {
    const made = structuredClone(valid[kind])
    for (const { path, value, how, name } of changes) apply(made, path, how, name, value)
    return made
  })
}

function pathsOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const inner = Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...path, key]))
  return path.length > 0 ? [path, ...inner] : inner
}

function apply(
  root: Record<string, unknown>,
  path: string[],
  how: string,
  name: string,
  value: unknown,
): void {
  let at: unknown = root
  for (const key of path.slice(0, -1)) at = (at as Record<string, unknown> | undefined)?.[key]
  if (typeof at !== 'object' || at === null) return
  const target = at as Record<string, unknown>
  const last = path.at(-1) ?? ''
  if (how === 'drop') delete target[last]
  else if (how === 'set') target[last] = value
  else
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
}

describe.each(['envelope', 'evidence', 'report'] as const)('%s', (kind) => {
  test('UAICP-30 our validator and Ajv on the normative schema agree on valid and damaged objects', () => {
    const seen = { valid: 0, invalid: 0 }
    fc.assert(
      fc.property(mutants(kind), (value) => {
        const expected = judge[kind](value)
        seen[expected ? 'valid' : 'invalid'] += 1
        const issues = validators[kind](value)
        if (expected !== (issues.length === 0)) {
          throw new Error(
            `Ajv ${expected}, ours ${JSON.stringify(issues)}: ${JSON.stringify(value)}`,
          )
        }
      }),
      { seed: 4, numRuns: runs },
    )
    expect(seen.valid).toBeGreaterThan(runs / 20)
    expect(seen.invalid).toBeGreaterThan(runs / 4)
  })

  test('UAICP-30 anything else at all is judged alike, too', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(validators[kind](value).length === 0).toBe(judge[kind](value))
      }),
      { seed: 5, numRuns: runs / 4 },
    )
  })

  test('the sample is valid at both levels', () => {
    expect(validators[kind](valid[kind], 'gate')).toEqual([])
  })
})

test('UAICP-28 dates and times on every border are judged as Ajv judges them', () => {
  const days =
    '2026-01-01 2026-01-00 2026-00-01 2026-13-01 2026-12-31 2026-12-32 2026-04-30 2026-04-31 ' +
    '2026-02-28 2026-02-29 2024-02-29 1900-02-29 2000-02-29'
  const times =
    '00:00:00 00:00:60 00:59:60 12:00:00 12:59:60 22:59:60 23:58:60 23:59:59 23:59:60 23:59:61 ' +
    '23:60:00 24:00:00'
  const zones = 'Z z +00:00 -00:00 +01:00 -01:00 +0100 +01 +00:59 +00:60 +23:59 -23:59 +24:00'
  const seen = { true: 0, false: 0 }
  for (const day of days.split(' ')) {
    for (const time of times.split(' ')) {
      for (const zone of ['', ...zones.split(' ')]) {
        const envelope = { ...valid.envelope, timestamp: `${day}T${time}${zone}` }
        const isValid = judge.envelope(envelope)
        seen[`${isValid}`]++
        if ((validateEnvelope(envelope).length === 0) !== isValid)
          expect.fail(`${envelope.timestamp}: Ajv says ${isValid}`)
      }
    }
  }
  expect(seen.true).toBeGreaterThan(200)
  expect(seen.false).toBeGreaterThan(300)
})

test('UAICP-30 each item of a list is checked, and named by its place', () => {
  const good = { check_id: 'c', result: 'pass' }
  const report = {
    ...valid.report,
    evidence_ids: ['e', 'f', 1],
    checks: [good, { ...good, check_id: '' }, { ...good, result: 'maybe' }, 'x'],
  }
  expect(validateReport(report).map(({ path, rule }) => `${path} ${rule}`)).toEqual([
    '/evidence_ids/2 type',
    '/checks/1/check_id minLength',
    '/checks/2/result enum',
    '/checks/3 type',
  ])
})

test('UAICP-30 a line of a log is read exactly if its envelope is valid', () => {
  const isRead = (value: unknown): boolean => {
    const text = JSON.stringify(value)
    const isValid = validateEnvelope(JSON.parse(text)).length === 0
    expect(readEnvelope(new TextEncoder().encode(text)) !== undefined, text).toBe(isValid)
    return isValid
  }
  fc.assert(
    fc.property(mutants('envelope'), (value) => {
      const { streaming: _, ...rest } = value as Record<string, unknown>
      isRead(value)
      isRead(rest)
    }),
    { seed: 6, numRuns: runs / 4 },
  )
  // Without the member `streaming` an envelope is of the usual kind, which is checked on a shorter path.
  const { streaming: _streaming, ...usual } = valid.envelope
  const identity = usual['identity'] as object
  expect(isRead(usual)).toBe(true)
  for (const name of ['agent_id', 'owner_id', 'user_id', 'control_class']) {
    for (const value of ['', 'x', 5, null, {}])
      isRead({ ...usual, identity: { ...identity, [name]: value } })
    expect(isRead({ ...usual, identity: { ...identity, [name]: '' } })).toBe(false)
  }
  for (const name of Object.keys(usual))
    for (const value of ['', 'x', 5, null, {}, []]) isRead({ ...usual, [name]: value })
})

describe('gate level: schema-valid is not enough', () => {
  const cases: [string, Kind, object][] = [
    ['an empty hash', 'evidence', { hash: '' }],
    ['a hash of something else', 'evidence', { hash: hashJson({ n: 2 }) }],
    ['a placeholder hash', 'evidence', { hash: 'sha256:abc' }],
    ['no payload', 'evidence', { payload: undefined }],
    ['a time with a space', 'evidence', { collected_at: '2026-01-01 00:00:00Z' }],
    ['custom without subtype', 'evidence', { evidence_type: 'custom' }],
    ['an extension without prefix', 'evidence', { note: 'x' }],
    ['status partial', 'report', { status: 'partial' }],
    ['no checks', 'report', { checks: [] }],
    ['a failing check under pass', 'report', { checks: [{ check_id: 'c', result: 'fail' }] }],
    ['a skipped check', 'report', { checks: [{ check_id: 'c', result: 'skip' }] }],
    ['no verifier', 'report', { verifier_id: undefined }],
    ['no evidence ids', 'report', { evidence_ids: undefined }],
    ['another version', 'envelope', { uaicp_version: '1.0' }],
    ['an all-zero trace id', 'envelope', { trace_id: '0'.repeat(32) }],
    ['an upper-case id', 'envelope', { request_id: id.toUpperCase() }],
    ['deliver with failure', 'envelope', { state: 'deliver', outcome: 'failure' }],
    ['an empty rollback', 'envelope', { rollback_action: {} }],
    ['an empty streaming block', 'envelope', { streaming: {} }],
    [
      'a negative index',
      'envelope',
      { streaming: { chunk_id: 'c', is_final: false, stream_index: -1, 'uaicp:verified': false } },
    ],
    [
      'an unmarked early chunk',
      'envelope',
      { streaming: { chunk_id: 'c', is_final: false, stream_index: 0 } },
    ],
  ]
  test.each(cases)('%s', (_name, kind, change) => {
    const value = { ...valid[kind], ...change }
    expect(validators[kind](value)).toEqual([])
    expect(validators[kind](value, 'gate').length).toBeGreaterThan(0)
  })
})

test('UAICP-30 the gate names each member that is wrong, and no other', () => {
  const chunk = { chunk_id: 'c', is_final: false, stream_index: 0, 'uaicp:verified': false }
  const back = { type: 'tool_call', target: 't', payload: {} }
  const checks = [
    { check_id: 'a', result: 'pass' },
    { check_id: 'b', result: 'skip' },
    { check_id: 'c', result: 'fail' },
  ]
  const cases: [Kind, object, string[]][] = [
    ['evidence', { hash: 'sha256:abc' }, ['/hash']],
    ['evidence', { payload: undefined }, ['/hash']],
    ['evidence', { collected_at: '2026-01-01 00:00:00Z' }, ['/collected_at']],
    ['evidence', { evidence_type: 'custom' }, ['/uaicp:subtype']],
    ['evidence', { evidence_type: 'custom', 'uaicp:subtype': 'rate' }, ['/uaicp:subtype']],
    ['evidence', { evidence_type: 'custom', 'uaicp:subtype': 'a:b' }, []],
    ['evidence', { note: 'x', 'a:b': 'y', toString: 'z' }, ['/note', '/toString']],
    ['report', { status: 'partial' }, ['/status']],
    ['report', { checks: [] }, ['/checks']],
    ['report', { checks }, ['/checks/1/result', '/checks/2/result']],
    ['report', { verifier_id: undefined }, ['/verifier_id']],
    ['report', { evidence_ids: undefined }, ['/evidence_ids']],
    ['report', { evidence_ids: [] }, []],
    ['report', { generated_at: '2026-01-01T00:00:00+0100' }, ['/generated_at']],
    ['report', { note: 'x', 'a:b': 'y' }, ['/note']],
    ['envelope', { uaicp_version: '1.0' }, ['/uaicp_version']],
    ['envelope', { trace_id: '0' }, ['/trace_id']],
    ['envelope', { request_id: `urn:uuid:${id}` }, ['/request_id']],
    ['envelope', { timestamp: '2026-01-01t00:00:00z' }, ['/timestamp']],
    ['envelope', { state: 'deliver', outcome: 'pending' }, ['/outcome']],
    ['envelope', { state: 'fail_safe', outcome: 'uncertain' }, []],
    ['envelope', { streaming: chunk }, []],
    ['envelope', { streaming: { ...chunk, chunk_id: '' } }, ['/streaming/chunk_id']],
    ['envelope', { streaming: { ...chunk, is_final: undefined } }, ['/streaming/is_final']],
    ['envelope', { streaming: { ...chunk, stream_index: undefined } }, ['/streaming/stream_index']],
    [
      'envelope',
      { streaming: { ...chunk, 'uaicp:verified': true } },
      ['/streaming/uaicp:verified'],
    ],
    [
      'envelope',
      { state: 'deliver', outcome: 'success', streaming: { ...chunk, 'uaicp:verified': true } },
      [],
    ],
    ['envelope', { rollback_action: back }, []],
    ['envelope', { rollback_action: { ...back, payload: 'by hand' } }, []],
    ['envelope', { rollback_action: { ...back, type: '' } }, ['/rollback_action/type']],
    ['envelope', { rollback_action: { ...back, target: undefined } }, ['/rollback_action/target']],
    [
      'envelope',
      { rollback_action: { ...back, payload: undefined } },
      ['/rollback_action/payload'],
    ],
  ]
  for (const [kind, change, paths] of cases) {
    const found = validators[kind]({ ...valid[kind], ...change }, 'gate')
    expect(
      found.map(({ path }) => path),
      JSON.stringify(change),
    ).toEqual(paths)
  }
})

test('UAICP-30 the smallest objects are valid, and one without a required member says which', () => {
  const cases: [Kind, string][] = [
    ['envelope', 'state'],
    ['evidence', 'source'],
    ['report', 'checks'],
  ]
  for (const [kind, member] of cases) {
    expect(validators[kind](smallest[kind])).toEqual([])
    expect(judge[kind](smallest[kind])).toBe(true)
    expect(validators[kind](without(kind, member))).toEqual([
      { path: `/${member}`, rule: 'required', message: 'is missing' },
    ])
  }
})

test('UAICP-30 each issue of the gate names its rule; an object that the schema refuses is not looked at further', () => {
  const chunk = { chunk_id: 'c', is_final: false, stream_index: 0, 'uaicp:verified': false }
  const cases: [Kind, object, string][] = [
    ['envelope', { uaicp_version: '1.0' }, 'version'],
    ['envelope', { request_id: id.toUpperCase() }, 'uuid'],
    ['envelope', { trace_id: '00' }, 'trace'],
    ['envelope', { timestamp: '2026-01-01 00:00:00Z' }, 'date-time'],
    ['envelope', { state: 'deliver', outcome: 'failure' }, 'outcome'],
    ['envelope', { streaming: { ...chunk, chunk_id: undefined } }, 'streaming'],
    ['envelope', { streaming: { ...chunk, is_final: undefined } }, 'streaming'],
    ['envelope', { streaming: { ...chunk, stream_index: -1 } }, 'streaming'],
    ['envelope', { streaming: { ...chunk, 'uaicp:verified': undefined } }, 'unverified'],
    ['envelope', { rollback_action: { target: 't', payload: {} } }, 'rollback'],
    ['evidence', { hash: 'x' }, 'hash'],
    ['evidence', { evidence_type: 'custom' }, 'subtype'],
    ['evidence', { note: 1 }, 'namespace'],
    ['report', { verifier_id: undefined }, 'verifier'],
    ['report', { evidence_ids: undefined }, 'evidence'],
    ['report', { status: 'fail' }, 'status'],
    ['report', { checks: [] }, 'checks'],
  ]
  for (const [kind, change, rule] of cases)
    expect(
      validators[kind]({ ...valid[kind], ...change }, 'gate').map((issue) => issue.rule),
      JSON.stringify(change),
    ).toEqual([rule])
  const broken = { ...valid.envelope, state: 'gone', uaicp_version: '1.0' }
  expect(validators.envelope(broken, 'gate')).toEqual([
    { path: '/state', rule: 'enum', message: expect.stringContaining('intake') as string },
  ])
  expect(validators.evidence({ ...valid.evidence, source: '', hash: 'x' }, 'gate')).toMatchObject([
    { path: '/source', rule: 'minLength' },
  ])
  expect(
    validators.report({ ...valid.report, report_id: 5, status: 'fail' }, 'gate'),
  ).toMatchObject([{ path: '/report_id', rule: 'type', message: 'must be string' }])
  for (const action of ['x', null, []])
    expect(findRollbackIssues(action)).toEqual([
      { path: '/rollback_action', rule: 'rollback', message: 'must be an object' },
    ])
})
