import { canonicalJson, deepFreeze, type JsonValue, SkeinError } from '@skein/base'
import type { TaskClass } from '../contract/define-task-class.ts'
import { CONTROL_CLASSES, hashText, type Identity, RISKS } from '../contract/envelope.ts'
import { findSchemaIssues, isBareUuid, isTraceId } from '../schema/check-schema.ts'
import type { GovernorCore } from './options.ts'
import type { JournalItem, OpenedData, RunLimits } from '../journal/events.ts'
import { reason, type Reason } from '../contract/reason.ts'
import { openState } from '../journal/reduce.ts'
import { hashPolicies } from './decide.ts'
import { GovernedRequest, policiesOf } from './request.ts'
import { ENVELOPE_SCHEMA } from '../schema/schemas.ts'

const DEFAULT_DEPTH = 3

export interface OpenRequest {
  readonly identity: Identity
  readonly input: JsonValue
  readonly request_id?: string | undefined
  readonly trace_id?: string | undefined
  readonly traceparent?: string | undefined
}

export interface Opened {
  readonly request: GovernedRequest
  /** Why intake refused it; the request then stands in `intake` and has to fail safe. */
  readonly refused: readonly Reason[]
}

/**
 * Intake: checks who asks and what, writes the first entry and goes on to `plan` unless refused. A
 * log that cannot be written leaves the request broken.
 */
export async function openRequest(
  core: GovernorCore,
  task: TaskClass,
  init: OpenRequest,
  parent?: GovernedRequest,
): Promise<Opened> {
  const input = toCanonical(init.input)
  const refused = [...findIdentityReasons(init.identity, parent), ...findIdReasons(init)]
  if (input === undefined) refused.push(reason('SCHEMA_INVALID', 'input', 'it is not JSON'))
  const { request, item } = createRequest(core, task, init, parent, hashText(input ?? 'null'))
  core.tasks.set(task.name, task)
  try {
    await request.put(request.state.opened.input_hash, input ?? 'null')
    await request.append(item)
    if (refused.length === 0) await request.move('plan')
  } catch (error) {
    if (!request.broken) throw error
  }
  return { request, refused }
}

function createRequest(
  core: GovernorCore,
  task: TaskClass,
  init: OpenRequest,
  parent: GovernedRequest | undefined,
  input_hash: OpenedData['input_hash'],
): { readonly request: GovernedRequest; readonly item: JournalItem } {
  const isValid = findIdentityReasons(init.identity, parent).length === 0
  const data: OpenedData = {
    governor: core.id,
    task: task.name,
    input_hash,
    policy_hash: hashPolicies(policiesOf(core, task, parent)),
    depth: parent ? parent.state.opened.depth + 1 : 0,
    limits: limitsOf(core, task, parent),
    parent: parent?.state.request_id,
    traceparent: init.traceparent,
  }
  const { request_id, trace_id } = init
  const item = {
    type: 'opened',
    data,
    request_id: request_id !== undefined && isBareUuid(request_id) ? request_id : newUuid(core),
    // A W3C trace id has 32 hex digits, as many as a UUID.
    trace_id:
      trace_id !== undefined && isTraceId(trace_id) ? trace_id : newUuid(core).replaceAll('-', ''),
    parent_trace_id: parent?.state.trace_id,
    seq: 0,
    attempt: 1,
    state: 'intake',
    outcome: 'pending',
    actor: { type: 'system', id: core.id },
    at: core.clock.now(),
  } satisfies JournalItem
  const identity = isValid ? structuredClone(init.identity) : unknownIdentity(core)
  const state = openState(item, deepFreeze(identity))
  return { request: new GovernedRequest(core, task, state, parent), item }
}

/** A child has the narrower of both bounds, in everything (UAICP §4.3). */
function limitsOf(core: GovernorCore, task: TaskClass, parent?: GovernedRequest): RunLimits {
  const {
    deadlineMs,
    toolCalls,
    depth = DEFAULT_DEPTH,
    ceiling = 'write_high_risk',
  } = task.limits ?? {}
  const outer = parent?.state.opened.limits
  const deadline = least(
    deadlineMs === undefined ? undefined : core.clock.now() + deadlineMs,
    outer?.deadline,
  )
  return {
    deadline,
    tool_calls: toolCalls,
    depth: outer ? Math.min(depth, outer.depth - 1) : depth,
    ceiling:
      outer && RISKS.indexOf(outer.ceiling) < RISKS.indexOf(ceiling) ? outer.ceiling : ceiling,
  }
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b)
}

/** A new id of the governor's source, which has to give UUIDs. */
export function newUuid(core: GovernorCore): string {
  const id = core.ids()
  if (isBareUuid(id)) return id
  throw new SkeinError(`The governor's id source gave "${id}", which is not a UUID.`, {
    code: 'GOVERNANCE_IDS_INVALID',
    hint: 'Use randomIds() of @skein/base.',
  })
}

function toCanonical(value: unknown): string | undefined {
  try {
    return canonicalJson(value)
  } catch {
    // Intake answers with a reason; what JSON cannot say is never guessed at.
    return undefined
  }
}

function findIdReasons({ request_id, trace_id }: OpenRequest): Reason[] {
  const reasons: Reason[] = []
  if (request_id !== undefined && !isBareUuid(request_id)) {
    reasons.push(reason('SCHEMA_INVALID', 'request_id', 'it is not a bare lower-case UUID'))
  }
  if (trace_id !== undefined && !isTraceId(trace_id)) {
    reasons.push(reason('SCHEMA_INVALID', 'trace_id', 'it is not a W3C trace id'))
  }
  return reasons
}

function findIdentityReasons(identity: Identity, parent?: GovernedRequest): Reason[] {
  if (toCanonical(identity) === undefined) {
    return [reason('IDENTITY_INVALID', '/identity', 'it is not JSON')]
  }
  const schema = ENVELOPE_SCHEMA.properties?.['identity']
  const [issue] = schema ? findSchemaIssues(schema, identity, '/identity') : []
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

/** Stands in the log for an identity that is none: nobody known, nothing allowed. */
function unknownIdentity(core: GovernorCore): Identity {
  return { agent_id: 'unknown', owner_id: core.id, control_class: 'human-directed' }
}
