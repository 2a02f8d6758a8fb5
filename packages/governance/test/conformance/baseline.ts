import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  EVIDENCE_TYPES,
  STATES,
  validateEnvelope,
  validateEvidence,
  validateReport,
  type Issue,
} from '../../src/index.ts'
import { ENVELOPE_SCHEMA } from '../../src/schema/schemas.ts'
import { fixture, normativeFolder } from '../support/normative.ts'

/** One of the twelve baseline checks. */
export interface BaselineCheck {
  readonly id: string
  readonly category: 'state-machine' | 'evidence-gating' | 'verification' | 'policy-gate' | 'audit'
  readonly title: string
  readonly result: 'pass' | 'fail' | 'skip'
}

type Look = () => boolean | undefined

const policySource = readFileSync(join(import.meta.dirname, '../../src/contract/policy.ts'), 'utf8')
const reasonSource = readFileSync(join(import.meta.dirname, '../../src/contract/reason.ts'), 'utf8')

/** Undefined where the specification's fixtures are not at hand. */
function verdict(validate: (value: unknown) => Issue[], name: string, isValid: boolean): Look {
  return () => (normativeFolder ? (validate(fixture(name)).length === 0) === isValid : undefined)
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
  [
    'state-machine',
    'the valid envelope fixture is accepted',
    verdict(validateEnvelope, 'message-envelope.valid.json', true),
  ],
  [
    'state-machine',
    'the invalid envelope fixture is refused',
    verdict(validateEnvelope, 'message-envelope.invalid-missing-state.json', false),
  ],
  [
    'evidence-gating',
    'the valid evidence fixture is accepted',
    verdict(validateEvidence, 'evidence-object.valid.json', true),
  ],
  [
    'evidence-gating',
    'the invalid evidence fixture is refused',
    verdict(validateEvidence, 'evidence-object.invalid-missing-source.json', false),
  ],
  [
    'evidence-gating',
    'tool_result is a type of evidence',
    () => EVIDENCE_TYPES.includes('tool_result'),
  ],
  [
    'verification',
    'the valid report fixture is accepted',
    verdict(validateReport, 'verification-report.valid.json', true),
  ],
  [
    'verification',
    'the invalid report fixture is refused',
    verdict(validateReport, 'verification-report.invalid-missing-checks.json', false),
  ],
  [
    'policy-gate',
    'a policy is asked about an action: tool, risk, arguments, identity, rollback',
    () =>
      ['tool', 'risk', 'args', 'identity', 'rollback?'].every((name) =>
        policySource.includes(`readonly ${name}:`),
      ),
  ],
  [
    'policy-gate',
    'there is a third answer, review, and the code APPROVAL_REQUIRED',
    () => policySource.includes("'review'") && reasonSource.includes("'APPROVAL_REQUIRED'"),
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
export function baselineChecks(): BaselineCheck[] {
  return looks.map(([category, title, look], index) => {
    const found = look()
    const result = found === undefined ? 'skip' : found ? 'pass' : 'fail'
    return { id: `baseline-${`${index + 1}`.padStart(2, '0')}`, category, title, result }
  })
}
