/**
 * Properties of UAICP 0.3: tasks, bodies, policies, approvers and verifiers are generated, a run is predicted from
 * the specification's text by the slow model below, and then made with a real governor. Compared are the end, the
 * path through the states, every effect on the world in its order, and the log. The envelopes of these runs are
 * then spoilt, and every spoilt one must be refused.
 *
 * Where the specification leaves a hole, the model reads it so: a body that throws is a failure that
 * a retry policy may repair, by way of `verify` (§4.1: "in execute or verify", repair "from verify"); evidence of an
 * attempt counts for this attempt only, because its writes are undone and its reads are old.
 *
 * With SKEIN_DEEP it tries twenty times as many cases.
 */
import {
  type Approvals,
  defineTaskClass,
  defineVerifier,
  governed,
  governor,
  type Identity,
  NoEffectError,
  standardPolicy,
  type Run,
} from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import { checkChunks, parseEnvelope, validateEnvelope } from '@skein/governance/schema'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedAt, isObject, type Json, runs } from './support.ts'

const identity: Identity = {
  agent_id: 'agent',
  owner_id: 'bank',
  control_class: 'human-supervised',
}

type Tool = 'look' | 'note' | 'stamp' | 'wire'
interface Op {
  readonly tool: Tool
  /** The tool throws without an effect. */
  readonly fails: boolean
  /** The body continues when the call is refused or fails. */
  readonly caught: boolean
  /** What a person says when asked. */
  readonly answer: 'approve' | 'forge' | 'deny' | 'wait'
}
interface Attempt {
  readonly ops: readonly Op[]
  readonly throws: boolean
  readonly verdicts: readonly ('pass' | 'fail' | 'skip' | 'crash' | 'prose')[]
}
interface Plan {
  readonly hasPolicy: boolean
  readonly needs: readonly { readonly source: Tool; readonly min: number }[]
  readonly repair: { readonly max: number; readonly to: 'plan' | 'execute' } | undefined
  readonly attempts: readonly Attempt[]
}

const mostly = <T>(usual: T, ...rare: T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...rare) },
  )
const op: fc.Arbitrary<Op> = fc.record({
  tool: fc.constantFrom<Tool[]>('look', 'note', 'stamp', 'wire'),
  fails: mostly(false, true),
  caught: fc.boolean(),
  answer: mostly<Op['answer']>('approve', 'forge', 'deny', 'wait'),
})
const plans: fc.Arbitrary<Plan> = fc.record({
  hasPolicy: mostly(true, false),
  needs: fc.uniqueArray(
    fc.record({
      source: fc.constantFrom<Tool[]>('look', 'note', 'wire'),
      min: fc.integer({ min: 1, max: 2 }),
    }),
    { maxLength: 2, selector: ({ source }) => source },
  ),
  repair: fc.option(
    fc.record({ max: fc.integer({ min: 0, max: 2 }), to: fc.constantFrom('plan', 'execute') }),
    { nil: undefined },
  ),
  attempts: fc.array(
    fc.record({
      ops: fc.array(op, { maxLength: 4 }),
      throws: mostly(false, true),
      verdicts: fc.tuple(
        mostly<Attempt['verdicts'][number]>('pass', 'fail', 'skip', 'crash', 'prose'),
        mostly<Attempt['verdicts'][number]>('pass', 'fail'),
      ),
    }),
    { minLength: 3, maxLength: 3 },
  ),
})

interface Predicted {
  readonly end: 'deliver' | 'fail_safe' | 'pending'
  readonly path: readonly string[]
  readonly world: readonly string[]
  readonly missing: readonly string[]
  /** The tools whose results a delivery rests on. */
  readonly evidence: readonly string[]
}

/** What §4 and §5 say about a run. */
function predict(plan: Plan): Predicted {
  const path = ['intake', 'plan', 'execute']
  const world: string[] = []
  let undoable: string[] = []
  const undo = (): void => {
    for (const effect of undoable.toReversed()) {
      const [tool, id] = effect.split(':') as [Tool, string]
      if (tool === 'stamp') continue // declares no rollback
      world.push(`un${tool}:${id}`)
    }
    undoable = []
  }
  for (let attempt = 0; ; attempt++) {
    const { ops, throws, verdicts } = plan.attempts[attempt]!
    const evidence: string[] = []
    let isThrown = throws
    let isFinal = false // a person's denial is not repaired
    for (const [index, { tool, fails, caught, answer }] of ops.entries()) {
      const isWrite = tool !== 'look'
      let isRefused = isWrite && !plan.hasPolicy // 5.3: a write needs a policy that allows it
      if (tool === 'wire' && !isRefused) {
        if (answer === 'wait') return { end: 'pending', path, world, missing: [], evidence }
        isRefused = answer !== 'approve' // denied, or a token that is not genuine
        isFinal ||= answer === 'deny'
      }
      if (!isRefused && !fails) {
        evidence.push(tool)
        if (isWrite) {
          world.push(`${tool}:${attempt}.${index}`)
          undoable.push(`${tool}:${attempt}.${index}`)
        }
      } else if (!caught) {
        isThrown = true
        break
      }
    }
    const missing = plan.needs
      .filter(({ source, min }) => evidence.filter((one) => one === source).length < min)
      .map(({ source }) => source)
    path.push('verify')
    if (!isThrown && missing.length === 0 && verdicts.every((verdict) => verdict === 'pass'))
      return { end: 'deliver', path: [...path, 'deliver'], world, missing, evidence }
    undo()
    if (isFinal || attempt >= (plan.repair?.max ?? 0))
      return {
        end: 'fail_safe',
        path: [...path, 'fail_safe'],
        world,
        missing,
        evidence,
      }
    path.push(...(plan.repair?.to === 'execute' ? ['execute'] : ['plan', 'execute']))
  }
}

interface Call {
  readonly id: string
  readonly fails: boolean
}

/** The same plan with a real governor. */
async function perform(plan: Plan) {
  const world: string[] = []
  const log = memoryLog()
  const tool = (name: string) => ({
    name,
    description: name,
    parameters: { type: 'object' },
    run: async ({ id, fails }: Call): Promise<{ id: string }> => {
      if (fails) throw new NoEffectError('It did not work.')
      if (name !== 'look') world.push(`${name}:${id}`)
      return { id }
    },
  })
  const back =
    (target: string) =>
    ({ id }: Call) => ({ type: 'tool_call', target, payload: { id, fails: false } })
  const unnote = governed(tool('unnote'), { risk: 'write_low_risk' })
  const unwire = governed(tool('unwire'), { risk: 'write_low_risk' })
  const tools = {
    look: governed(tool('look'), { risk: 'read_only' }),
    note: governed(tool('note'), { risk: 'write_low_risk', rollback: back('unnote') }),
    stamp: governed(tool('stamp'), { risk: 'write_low_risk' }),
    wire: governed(tool('wire'), { risk: 'write_high_risk', rollback: back('unwire') }),
  }
  let attempt = 0
  const verifiers = [0, 1].map((index) =>
    defineVerifier({
      id: `verifier-${index}`,
      timeoutMs: 2000,
      check: () => {
        const verdict = plan.attempts[attempt]!.verdicts[index]!
        if (verdict === 'crash') throw new Error('The verifier crashed.')
        if (verdict === 'prose') return 'Looks good to me!' as never
        return [
          { check_id: 'one', result: 'pass' },
          { check_id: 'two', result: verdict },
        ] as const
      },
    }),
  )
  const task = defineTaskClass({
    name: 'task',
    tools: [...Object.values(tools), unnote, unwire],
    needs: plan.needs.map(({ source, min }) => ({ type: 'tool_result', source, min })),
    verifiers,
    ...(plan.repair && { repair: plan.repair }),
  })
  const approvals: Approvals = {
    redeem: async (tokens) =>
      tokens[0] === 'signed'
        ? {
            ok: true,
            approvers: [{ id: 'pat', issuer: 'bank', jti: crypto.randomUUID(), type: 'human' }],
          }
        : { ok: false, reason: { code: 'APPROVAL_INVALID' } },
  }
  const gov = governor({
    id: 'plan',
    audit: log,
    approvals,
    ...(plan.hasPolicy && { policy: standardPolicy }),
  })
  let asked: Op['answer'] = 'wait'
  const result = await gov.run(
    task,
    {
      identity,
      input: {},
      approve: async () =>
        asked === 'approve'
          ? { type: 'approve', tokens: ['signed'] }
          : asked === 'forge'
            ? { type: 'approve', tokens: ['scribbled'] }
            : asked === 'deny'
              ? { type: 'deny', reason: 'no' }
              : { type: 'wait' },
    },
    async (run: Run) => {
      attempt = run.attempt - 1
      const { ops, throws } = plan.attempts[attempt]!
      for (const [index, { tool, fails, caught, answer }] of ops.entries()) {
        asked = answer
        const called = run.call(tools[tool], { id: `${attempt}.${index}`, fails })
        await (caught ? called.catch(() => undefined) : called)
      }
      if (throws) throw new Error('The body gave up.')
      return 'answer'
    },
  )
  return { result, world, envelopes: log.lines.map((line) => JSON.parse(line) as Json) }
}

test('a run takes the path, has the effects and ends as the specification says', async () => {
  const ends = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const predicted = predict(plan)
      const { result, world, envelopes } = await perform(plan)
      const end = result.outcome === 'pending' ? 'pending' : result.state
      ends.set(end, (ends.get(end) ?? 0) + 1)
      expect({ end, world, path: pathOf(envelopes) }).toEqual({
        end: predicted.end,
        world: predicted.world,
        path: predicted.path,
      })
      if (result.state === 'fail_safe') {
        // §7: uncertain, with reason codes; the missing evidence by name.
        expect(result.outcome).toBe('uncertain')
        expect(result.reasons.length).toBeGreaterThan(0)
        expect(result.missing.map(({ source }) => source)).toEqual(predicted.missing)
        if (predicted.missing.length > 0)
          expect(result.reasons.map(({ code }) => code)).toContain('EVIDENCE_MISSING')
      }
      if (result.state === 'deliver') {
        const results = result.evidence.filter((one) => one.evidence_type === 'tool_result')
        expect(results.map(({ source }) => source)).toEqual(predicted.evidence)
        expect(result.reports).toHaveLength(2)
        expect(result.reports.every(({ status }) => status === 'pass')).toBe(true)
      }
      checkLog(envelopes, predicted.world)
    }),
    runs(450),
  )
  for (const end of ['deliver', 'fail_safe', 'pending'])
    expect(ends.get(end), end).toBeGreaterThan(5)
})

/** §5.4, and §5.3 for writes of high risk: the rollback is in the log before the effect. */
function checkLog(envelopes: readonly Json[], world: readonly string[]): void {
  let last = ''
  for (const envelope of envelopes) {
    expect(modelIssues(envelope)).toEqual([])
    expect(validateEnvelope(envelope)).toEqual([])
    expect(envelope['request_id']).toBe(envelopes[0]!['request_id'])
    expect(envelope['trace_id']).toBe(envelopes[0]!['trace_id'])
    expect(envelope['identity']).toMatchObject(identity)
    expect(String(envelope['timestamp']) >= last).toBe(true)
    last = String(envelope['timestamp'])
  }
  const wires = world
    .filter((effect) => effect.startsWith('wire:'))
    .map((effect) => effect.slice(5))
  const declared = envelopes
    .filter((envelope) => (envelope['metadata'] as Json)['uaicp:event'] === 'call_started')
    .map((envelope) => envelope['rollback_action'] as Json | undefined)
    .filter((action) => action?.['target'] === 'unwire')
    .map((action) => (action!['payload'] as Json)['id'])
  for (const id of wires) expect(declared).toContain(id)
}

/** The states of the log, each once in a row. */
function pathOf(envelopes: readonly Json[]): string[] {
  const states = envelopes.map(({ state }) => String(state))
  return states.filter((state, index) => state !== states[index - 1])
}

const STATES = ['intake', 'plan', 'execute', 'verify', 'deliver', 'fail_safe']

/** What the text says about an envelope: §3 states, §4.2 streaming, §5.3 rollback, §5.4 audit. */
function modelIssues(envelope: Json): string[] {
  const issues: string[] = []
  const need = (isRight: boolean, what: string): void => void (isRight || issues.push(what))
  const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
  need(typeof envelope['uaicp_version'] === 'string', 'uaicp_version')
  need(
    /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(String(envelope['request_id'])),
    'request_id',
  )
  need(isText(envelope['trace_id']), 'trace_id')
  need(STATES.includes(envelope['state'] as string), 'state')
  need(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(
      String(envelope['timestamp']),
    ) && !Number.isNaN(Date.parse(String(envelope['timestamp']))),
    'timestamp',
  )
  const who = envelope['identity']
  need(isObject(who) && isText(who['agent_id']) && isText(who['owner_id']), 'identity')
  need(
    isObject(who) &&
      ['autonomous', 'human-supervised', 'human-directed'].includes(who['control_class'] as string),
    'control_class',
  )
  need(
    ['success', 'failure', 'uncertain', 'pending'].includes(envelope['outcome'] as string),
    'outcome',
  )
  for (const block of ['streaming', 'rollback_action', 'metadata'])
    need(!(block in envelope) || isObject(envelope[block]), block)
  need(!('parent_trace_id' in envelope) || isText(envelope['parent_trace_id']), 'parent_trace_id')
  return issues
}

const envelopes: fc.Arbitrary<Json> = fc
  .record(
    {
      uaicp_version: fc.constantFrom('0.3', '0.3.0'),
      request_id: fc.uuid(),
      trace_id: fc.constantFrom('4bf92f3577b34da6a3ce929d0e0e4736', 'any-trace'),
      state: fc.constantFrom(...STATES),
      timestamp: fc.constantFrom('2026-02-28T10:00:00Z', '2026-02-28T10:00:00.125+02:00'),
      identity: fc.record(
        {
          agent_id: fc.constant('a'),
          owner_id: fc.constant('o'),
          control_class: fc.constantFrom('autonomous', 'human-supervised', 'human-directed'),
          'x:role': fc.constant('teller'),
        },
        { requiredKeys: ['agent_id', 'owner_id', 'control_class'] },
      ),
      outcome: fc.constantFrom('success', 'failure', 'uncertain', 'pending'),
      parent_trace_id: fc.constant('parent'),
      metadata: fc.dictionary(fc.constantFrom('x:note', 'y:more'), fc.jsonValue({ maxDepth: 1 })),
      rollback_action: fc.constantFrom<Json[]>(
        { type: 'tool_call', target: 'unwire', payload: { id: '1' } },
        { type: 'manual', target: 'desk', payload: 'call them' },
      ),
      streaming: fc.constantFrom<Json[]>({ chunk_id: 'c', is_final: false, stream_index: 0 }),
    },
    {
      requiredKeys: [
        'uaicp_version',
        'request_id',
        'trace_id',
        'state',
        'timestamp',
        'identity',
        'outcome',
      ],
    },
  )
  .map((envelope) => ({ ...envelope }))

test('a spoilt envelope is refused exactly where the model refuses it', () => {
  const refused = new Set<string>()
  const wrong = [7, '', null, [], 'nonsense', { x: 1 }, '2026-02-30T99:00:00Z']
  fc.assert(
    fc.property(envelopes, fc.nat(), fc.nat(), fc.boolean(), (envelope, field, value, drops) => {
      expect(validateEnvelope(envelope)).toEqual([])
      expect(parseEnvelope(envelope)).toEqual(envelope)
      const places = [
        ...Object.keys(envelope).map((key) => ({ path: [] as string[], key })),
        ...['agent_id', 'owner_id', 'control_class'].map((key) => ({ path: ['identity'], key })),
      ]
      const { path, key } = places[field % places.length]!
      const spoilt = changedAt(envelope, path, (place) => {
        if (drops) delete place[key]
        else place[key] = wrong[value % wrong.length]
      })
      const issues = modelIssues(spoilt)
      if (issues.length > 0) refused.add(key)
      const found = validateEnvelope(spoilt)
      const why = JSON.stringify({ spoilt: spoilt[key], key, issues, found })
      expect(found.length > 0, why).toBe(issues.length > 0)
      if (issues.length > 0)
        expect(() => parseEnvelope(spoilt)).toThrow(
          expect.objectContaining({ name: 'GovernanceError' }),
        )
    }),
    runs(800),
  )
  for (const key of [
    'request_id',
    'trace_id',
    'state',
    'timestamp',
    'identity',
    'outcome',
    'control_class',
  ])
    expect(refused, key).toContain(key)
})

test('chunks are in order exactly when their indexes count up and only the last is final', () => {
  const chunk = fc.record({
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    index: fc.nat({ max: 3 }),
    final: fc.boolean(),
  })
  const anyChunks = fc.array(chunk, { maxLength: 4 })
  const rightChunks = fc.integer({ min: 1, max: 4 }).map((size) =>
    Array.from({ length: size }, (_, index) => ({
      id: 'abcd'[index]!,
      index,
      final: index === size - 1,
    })),
  )
  fc.assert(
    fc.property(fc.oneof(anyChunks, rightChunks), (chunks) => {
      const isRight = chunks.every(
        ({ index, final }, place) => index === place && final === (place === chunks.length - 1),
      )
      const faults = checkChunks(
        chunks.map(({ id, index, final }) => ({
          streaming: { chunk_id: id, stream_index: index, is_final: final },
        })),
      )
      if (chunks.length > 0)
        expect(faults.length === 0, JSON.stringify({ chunks, faults })).toBe(isRight)
    }),
    runs(300),
  )
})
