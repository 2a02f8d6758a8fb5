import { SkeinError } from '@skein/base'

/**
 * The codes that say why something was refused or failed. They are stable, so programs may compare them.
 */
export const REASON_CODES = [
  // Codes that the adapter contract of UAICP defines.
  'EVIDENCE_MISSING',
  'VERIFICATION_FAILED',
  'POLICY_BLOCKED',
  'APPROVAL_REQUIRED',
  'IDENTITY_INVALID',
  'TOOL_TIMEOUT',
  'ROLLBACK_REQUIRED',
  'CONTROL_CLASS_BLOCKED',
  'TRUST_TIER_BLOCKED',
  'MISSING_ACTION_OR_RESOURCE',
  // Evidence and verification.
  'EVIDENCE_INVALID',
  'EVIDENCE_STALE',
  'VERIFIER_MISSING',
  'VERIFIER_ERROR',
  'VERIFIER_TIMEOUT',
  'VERIFIER_INCONSISTENT',
  // Approval.
  'APPROVAL_INVALID',
  'APPROVAL_EXPIRED',
  'APPROVAL_NOT_YET_VALID',
  'APPROVAL_REPLAYED',
  'APPROVAL_SCOPE',
  'APPROVAL_SELF',
  'APPROVAL_REVOKED',
  'APPROVAL_DENIED',
  // Tools and effects.
  'RISK_UNDECLARED',
  'RISK_CEILING',
  'POLICY_ERROR',
  'TOOL_UNKNOWN',
  'TOOL_UNGOVERNED',
  'TOOL_ERROR',
  'TOOL_IN_DOUBT',
  'ROLLBACK_FAILED',
  // The run.
  'RUN_ERROR',
  'REPAIR_EXHAUSTED',
  'CHILD_FAIL_SAFE',
  'DEPTH_EXCEEDED',
  'DEADLINE_EXCEEDED',
  'BUDGET_EXCEEDED',
  'CANCELLED',
  'AUDIT_UNAVAILABLE',
  'STATE_CONFLICT',
  'SCHEMA_INVALID',
  'VERSION_UNSUPPORTED',
] as const

/** One of `REASON_CODES`. */
export type ReasonCode = (typeof REASON_CODES)[number]

/**
 * Why something was refused or failed: a code, the name of what was refused or failed, and an explanation
 * for people. It is written to the log, so it must not contain secrets.
 */
export interface Reason {
  readonly code: ReasonCode
  /** The tool, kind of evidence, verifier, child or token id that the reason is about. */
  readonly subject?: string
  readonly detail?: string
}

/**
 * The error that is thrown when governance refuses something. `reasons` says why; `code` is the code of
 * the first reason.
 */
export class GovernanceError extends SkeinError {
  readonly reasons: readonly Reason[]

  constructor(message: string, reasons: readonly [Reason, ...Reason[]], options: ErrorHint = {}) {
    super(message, { ...options, code: reasons[0].code })
    this.reasons = reasons
  }
}

interface ErrorHint {
  readonly hint?: string
  readonly cause?: unknown
}

/**
 * Creates the error for a call, child run or native tool that was refused or failed. `text` is the whole detail, of
 * which the first reason may hold only the beginning.
 */
export function refusal(name: string, reasons: readonly Reason[], text?: string): GovernanceError {
  const [first = reason('POLICY_BLOCKED', name), ...rest] = reasons
  const explanation = text ?? first.detail
  const detail = explanation === undefined ? '' : `: ${explanation}`
  return new GovernanceError(`"${name}" did not succeed (${first.code}${detail}).`, [
    first,
    ...rest,
  ])
}

const MAX_TEXT = 500

/**
 * Creates a reason. Absent members are left out, and the texts are made safe for the log: well formed and
 * of limited length.
 */
export function reason(code: ReasonCode, subject?: string, detail?: string): Reason {
  return {
    code,
    ...(subject !== undefined && { subject: toLogText(subject) }),
    ...(detail !== undefined && { detail: toLogText(detail) }),
  }
}

/** Makes a text from outside safe for the log: cuts it to 500 characters and replaces broken UTF-16. */
export function toLogText(text: string): string {
  const short = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
  return short.replace(/[\ud800-\udfff]/gu, '\u{FFFD}')
}

/** Returns the message of a thrown error, or any other thrown value as text. */
export function thrownText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * The error that a tool throws if it failed before it changed anything. After any other error of a tool that
 * writes, the write is in doubt, unless the tool's probe can determine whether it happened.
 */
export class NoEffectError extends SkeinError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, { ...options, code: 'NO_EFFECT' })
  }
}

/** Creates the error of a wrong definition. It lists all problems together. */
export function invalidDefinition(
  kind: string,
  name: string,
  problems: readonly string[],
): SkeinError {
  return new SkeinError(`The ${kind} "${name}" is not well defined: ${problems.join('; ')}.`, {
    code: 'GOVERNANCE_DEFINITION_INVALID',
  })
}
