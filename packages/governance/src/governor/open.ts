import { type JsonValue, SkeinError } from '@skein/base'
import type { TaskClass } from '../contract/governed.ts'
import {
  CONTROL_CLASSES,
  freezeJson,
  hashText,
  type Identity,
  isAtLeast,
  tryCanonicalJson,
} from '../contract/envelope.ts'
import { hashPolicies } from '../contract/policy.ts'
import { reason, type Reason } from '../contract/reason.ts'
import type { DecidedWrite, JournalItem, RunLimits } from '../journal/events.ts'
import { openState } from '../journal/governor-state.ts'
import { findSchemaIssues, isBareUuid, isTraceId } from '../schema/validate.ts'
import { IDENTITY_SCHEMA } from '../schema/schemas.ts'
import type { GovernorCore } from './options.ts'
import { GovernedRequest, policiesOf } from './request.ts'
import type { Failure } from './missing-evidence.ts'

const DEFAULT_DEPTH = 3

/** The parameters of a new request. */
export interface OpenRequest {
  readonly identity: Identity
  readonly input: JsonValue
  /** A UUID; generated if absent. */
  readonly request_id?: string
  /** W3C trace id, 32 hex digits; generated if absent. */
  readonly trace_id?: string
  /** W3C traceparent of the distributed trace that the request is part of; stored in the log. */
  readonly traceparent?: string
  /** Trace id of the request that this one works for, if another governor has that request (UAICP §4.3). */
  readonly parent_trace_id?: string
}

/** The parameters of a request that carries out a person's decision about a write of another request. */
export interface OpenDecision extends OpenRequest {
  readonly decided?: DecidedWrite
}

/** A request after intake, its first phase, in which identity, ids and input are checked. */
export interface Opened {
  readonly request: GovernedRequest
  /**
   * Why intake refused the request. A refused request is still in state `intake`, and the caller has to
   * end it with `failSafe`.
   */
  readonly refused: Failure | undefined
}

/**
 * Opens a request (UAICP intake): checks identity, ids and input, writes the first entry and moves to
 * `plan` if everything is valid. A refused request is logged too; invalid ids are replaced by generated
 * ones. If the log cannot be written, the request is marked as broken.
 */
export async function openRequest(
  core: GovernorCore,
  task: TaskClass,
  init: OpenDecision,
  parent?: GovernedRequest,
): Promise<Opened> {
  const { request, item, input, reasons } = draftRequest(core, task, init, parent)
  core.tasks.set(task.name, task)
  try {
    await request.put(item.data.input_hash, input)
    await request.append(item)
    if (reasons.length === 0) await request.move('plan')
  } catch (error) {
    if (!request.broken) throw error
  }
  return { request, refused: reasons.length > 0 ? { reasons, missing: [] } : undefined }
}

interface Draft {
  readonly request: GovernedRequest
  /** The request's first entry. */
  readonly item: JournalItem & { readonly type: 'opened' }
  /** Canonical JSON. */
  readonly input: string
  /** Why intake refuses the request. */
  readonly reasons: readonly Reason[]
}

/** Builds a new request and its first entry, but writes nothing. */
export function draftRequest(
  core: GovernorCore,
  task: TaskClass,
  init: OpenDecision,
  parent?: GovernedRequest,
): Draft {
  const { request_id, trace_id, traceparent, parent_trace_id } = init
  const input = tryCanonicalJson(init.input)
  const wrongIdentity = findIdentityReasons(init.identity, parent)
  const reasons = [...wrongIdentity]
  const hasId = request_id !== undefined && isBareUuid(request_id)
  const hasTraceId = trace_id !== undefined && isTraceId(trace_id)
  if (request_id !== undefined && !hasId)
    reasons.push(reason('SCHEMA_INVALID', 'request_id', 'it is not a bare lower-case UUID'))
  if (trace_id !== undefined && !hasTraceId)
    reasons.push(reason('SCHEMA_INVALID', 'trace_id', 'it is not a W3C trace id'))
  if (parent_trace_id !== undefined && !isTraceId(parent_trace_id))
    reasons.push(reason('SCHEMA_INVALID', 'parent_trace_id', 'it is not a W3C trace id'))
  if (input === undefined) reasons.push(reason('SCHEMA_INVALID', 'input', 'it is not JSON'))

  const input_hash = hashText(input ?? 'null')
  const item = {
    type: 'opened',
    data: {
      governor: core.id,
      task: task.name,
      input_hash,
      policy_hash: hashPolicies(policiesOf(core, task, parent)),
      depth: parent ? parent.state.opened.depth + 1 : 0,
      limits: limitsOf(core, task, parent?.state.opened.limits),
      parent: parent?.state.request_id,
      traceparent,
      decided: init.decided,
    },
    request_id: hasId ? request_id : newUuid(core),
    // A W3C trace id has 32 hex digits, as many as a UUID.
    trace_id: hasTraceId ? trace_id : newUuid(core).replaceAll('-', ''),
    parent_trace_id:
      parent?.state.trace_id ??
      (parent_trace_id !== undefined && isTraceId(parent_trace_id) ? parent_trace_id : undefined),
    seq: 0,
    attempt: 1,
    state: 'intake',
    outcome: 'pending',
    actor: { type: 'system', id: core.id },
    at: core.clock.now(),
  } satisfies JournalItem
  // An invalid identity is replaced in the log by an unknown agent with the least freedom.
  const identity: Identity =
    wrongIdentity.length === 0
      ? structuredClone(init.identity)
      : { agent_id: 'unknown', owner_id: core.id, control_class: 'human-directed' }
  const request = new GovernedRequest(core, task, openState(item, freezeJson(identity)), parent)
  return { request, item, input: input ?? 'null', reasons }
}

/**
 * Computes the limits of a run. Deadline, depth and ceiling of a child are never wider than those of its
 * parent (UAICP §4.3).
 */
function limitsOf(core: GovernorCore, { limits = {} }: TaskClass, outer?: RunLimits): RunLimits {
  const { deadlineMs, toolCalls, depth = DEFAULT_DEPTH, ceiling = 'write_high_risk' } = limits
  const own = deadlineMs === undefined ? undefined : core.clock.now() + deadlineMs
  const deadline = Math.min(own ?? Infinity, outer?.deadline ?? Infinity)
  return {
    deadline: deadline === Infinity ? undefined : deadline,
    tool_calls: toolCalls,
    depth: outer ? Math.min(depth, outer.depth - 1) : depth,
    ceiling: outer && isAtLeast(ceiling, outer.ceiling) ? outer.ceiling : ceiling,
  }
}

/** Returns a new id from the governor's id source and throws if it is not a UUID. */
export function newUuid(core: GovernorCore): string {
  const id = core.ids()
  if (isBareUuid(id)) return id
  throw new SkeinError(`The governor's id source gave "${id}", which is not a UUID.`, {
    code: 'GOVERNANCE_IDS_INVALID',
    hint: 'Use randomIds() of @skein/base.',
  })
}

/** Returns the reasons why this identity is not valid, either by itself or for a child of `parent`. */
function findIdentityReasons(identity: Identity, parent?: GovernedRequest): Reason[] {
  if (tryCanonicalJson(identity) === undefined) {
    return [reason('IDENTITY_INVALID', '/identity', 'it is not JSON')]
  }
  const [issue] = findSchemaIssues(IDENTITY_SCHEMA, identity, '/identity')
  if (issue) return [reason('IDENTITY_INVALID', issue.path, issue.message)]
  const outer = parent?.state.identity
  if (!outer) return []
  if (outer.owner_id !== identity.owner_id) {
    return [reason('IDENTITY_INVALID', '/identity/owner_id', 'a child acts for its parent’s owner')]
  }
  const strictness = CONTROL_CLASSES.indexOf(identity.control_class)
  if (strictness < CONTROL_CLASSES.indexOf(outer.control_class)) {
    return [reason('CONTROL_CLASS_BLOCKED', identity.control_class, 'a child has no more freedom')]
  }
  return []
}
