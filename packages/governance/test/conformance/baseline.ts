import { isDeepStrictEqual } from 'node:util'
import {
  EVIDENCE_TYPES,
  GovernanceError,
  hashJson,
  type Action,
  type Policy,
} from '../../src/index.ts'
import { STATES } from '../../src/contract/envelope.ts'
import {
  ENVELOPE_SCHEMA,
  validateEnvelope,
  validateEvidence,
  validateReport,
  type ValidationIssue,
} from '../../src/schema/index.ts'
import { init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'
import { smallest, without } from '../support/samples.ts'

/** One of the twelve baseline checks. */
export interface BaselineCheck {
  readonly id: string
  readonly category: 'state-machine' | 'evidence-gating' | 'verification' | 'policy-gate' | 'audit'
  readonly title: string
  readonly result: 'pass' | 'fail'
}

type Look = () => boolean | Promise<boolean>

const accepts =
  (validate: (value: unknown) => ValidationIssue[], value: unknown): Look =>
  () =>
    validate(value).length === 0

const refuses =
  (validate: (value: unknown) => ValidationIssue[], value: unknown): Look =>
  () =>
    validate(value).length > 0

/** What a policy is asked about one call of a tool that writes, and what became of the run. */
async function judged(
  effect: 'allow' | 'review',
): Promise<{ actions: Action[]; code: string | undefined; outcome: string; done: number }> {
  const { governor, world } = await kit()
  const actions: Action[] = []
  const policy: Policy = {
    id: 'watcher',
    hash: hashJson('watcher'),
    decide: (action) => {
      actions.push(action)
      return { effect }
    },
  }
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const task = taskOf({ tools: [write, toolOf(world, 'undo_write')], policy })
  let code: string | undefined
  const result = await governor.run(task, init, async (run) => {
    try {
      return (await run.call(write, { amount: 1 })).result
    } catch (error) {
      if (error instanceof GovernanceError) code = error.code
      throw error
    }
  })
  return { actions, code, outcome: result.outcome, done: world.count('write') }
}

const required = ENVELOPE_SCHEMA.required ?? []

/**
 * The checks of the specification's own list, re-expressed against this package: where it looks for
 * words of an adapter document, we look for what carries the same meaning in our types.
 */
const looks: readonly [BaselineCheck['category'], string, Look][] = [
  [
    'state-machine',
    'the state enum is the six names in order',
    () => STATES.join() === 'intake,plan,execute,verify,deliver,fail_safe',
  ],
  ['state-machine', 'state is required', () => required.includes('state')],
  ['state-machine', 'a valid envelope is accepted', accepts(validateEnvelope, smallest.envelope)],
  [
    'state-machine',
    'an envelope without a state is refused',
    refuses(validateEnvelope, without('envelope', 'state')),
  ],
  ['evidence-gating', 'valid evidence is accepted', accepts(validateEvidence, smallest.evidence)],
  [
    'evidence-gating',
    'evidence without a source is refused',
    refuses(validateEvidence, without('evidence', 'source')),
  ],
  [
    'evidence-gating',
    'tool_result is a type of evidence',
    () => EVIDENCE_TYPES.includes('tool_result'),
  ],
  ['verification', 'a valid report is accepted', accepts(validateReport, smallest.report)],
  [
    'verification',
    'a report without checks is refused',
    refuses(validateReport, without('report', 'checks')),
  ],
  [
    'policy-gate',
    'a policy is asked about an action: tool, risk, arguments, identity, rollback',
    async () => {
      const { actions, done } = await judged('allow')
      const [action] = actions
      return (
        done === 1 &&
        action?.tool === 'write' &&
        action.risk === 'write_low_risk' &&
        isDeepStrictEqual(action.args, { amount: 1 }) &&
        isDeepStrictEqual(action.identity, init.identity) &&
        action.rollback?.target === 'undo_write'
      )
    },
  ],
  [
    'policy-gate',
    'there is a third answer, review: the call has no effect and says APPROVAL_REQUIRED',
    async () => {
      const { code, outcome, done } = await judged('review')
      return code === 'APPROVAL_REQUIRED' && outcome === 'pending' && done === 0
    },
  ],
  [
    'audit',
    'the envelope requires request_id, trace_id, timestamp, identity and outcome',
    () =>
      ['request_id', 'trace_id', 'timestamp', 'identity', 'outcome'].every((name) =>
        required.includes(name),
      ),
  ],
]

/** Looks at all twelve. */
export function baselineChecks(): Promise<BaselineCheck[]> {
  return Promise.all(
    looks.map(async ([category, title, look], index) => ({
      id: `baseline-${`${index + 1}`.padStart(2, '0')}`,
      category,
      title,
      result: (await look()) ? ('pass' as const) : ('fail' as const),
    })),
  )
}
