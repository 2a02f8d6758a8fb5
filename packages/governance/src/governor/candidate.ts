import { argumentParserOf, canonicalJson, type JsonObject, type JsonValue } from '@skein/base'
import {
  freezeJson,
  hashText,
  isAtLeast,
  parseFrozen,
  type Risk,
  RISKS,
  type RollbackAction,
} from '../contract/envelope.ts'
import type { ToolCore } from '../contract/governed.ts'
import { reason, type Reason, thrownText, toLogText } from '../contract/reason.ts'
import { findRollbackIssues } from '../schema/validate.ts'
import { type CallNames, namesOf } from './call-names.ts'
import { toolContext } from './execute.ts'
import type { GovernedRequest } from './request.ts'
import { toAdmitted } from './admitted-call.ts'

/** A call that is to be made. `id` is unique within the request, and the same when the call is replayed. */
export interface CallRequest {
  readonly id: string
  readonly tool: string
  readonly args: JsonValue
  /**
   * What the model sent, if the caller has parsed the arguments: `args` is then the parsed value, and the governor does
   * not have it parsed again.
   */
  readonly sent?: JsonValue
  /** The tool that a body has passed. A tool that only has the name of one of the task's is unknown. */
  readonly given?: object
}

/** A call that `admit` is deciding about. */
export interface Candidate extends CallNames {
  readonly core: ToolCore
  /** The frozen snapshot of the arguments; `text` is its canonical JSON. */
  readonly args: JsonValue
  readonly text: string
  /** What the model sent, with its canonical JSON, if the tool has made other arguments of it. */
  readonly sent?: { readonly value: JsonValue; readonly text: string }
}

/** A call whose arguments were parsed: by its tool, or by the caller of the governor. */
export interface ParsedCall extends CallRequest {
  readonly sent: JsonValue
  /** The schema that parsed them; undefined if the caller did. */
  readonly schema?: string
}

/**
 * Copies, freezes and hashes the arguments. Policies, people and the tool all get this one copy, so
 * changes that the caller makes to its own object have no effect. For a call that cannot be judged at
 * all, returns its identifying fields and the reasons why.
 */
export function snapshot(
  request: GovernedRequest,
  { id, tool, args, given, sent, schema }: CallRequest & Partial<ParsedCall>,
): Candidate | { readonly names: CallNames; readonly reasons: readonly Reason[] } {
  const core = request.findTool(tool, given)
  // The name of an unknown tool is text that a model wrote, so it is cut to fit the log.
  const name = core ? tool : toLogText(tool)
  const base = { call: id, tool: name, risk: core?.governance.risk ?? 'write_high_risk' }
  let text: string
  try {
    text = canonicalJson(args ?? {})
  } catch (error) {
    const reasons = [reason('SCHEMA_INVALID', tool, thrownText(error))]
    return { names: { ...base, args_hash: hashText('null') }, reasons }
  }
  const sentText = sent === undefined ? undefined : canonicalJson(sent)
  const sent_hash = sentText === undefined ? undefined : hashText(sentText)
  const names = namesOf({ ...base, args_hash: hashText(text), sent_hash, schema })
  if (!core) {
    const reasons = [reason('TOOL_UNKNOWN', tool, 'it is none of the task’s tools')]
    return { names, reasons }
  }
  const frozen = parseFrozen(text)
  const parser = argumentParserOf(core.tool)
  // `raise` reads parsed arguments; `admit` has these parsed first and then takes another snapshot.
  if (parser && sent === undefined) return { ...names, text, core, args: frozen }
  // The tool recognises its own parsed arguments; this is a copy of them.
  parser?.restore(frozen as JsonObject)
  const risk = riskOf(core, frozen)
  if (!risk) return { names, reasons: [reason('RISK_UNDECLARED', tool, 'raise() failed')] }
  const differs = sentText !== undefined && sentText !== text
  const original = differs ? { value: parseFrozen(sentText), text: sentText } : undefined
  return { ...names, risk, text, core, args: frozen, sent: original }
}

/**
 * Returns the higher of the declared risk and the risk that `raise` returns; undefined when `raise`
 * throws or returns something that is not a risk.
 */
function riskOf({ governance: { raise, risk } }: ToolCore, args: JsonValue): Risk | undefined {
  if (!raise) return risk
  try {
    const higher = raise(args) ?? risk
    if (!RISKS.includes(higher)) return undefined
    return isAtLeast(higher, risk) ? higher : risk
  } catch {
    // The risk of the call is unknown, so the caller refuses it.
    return undefined
  }
}

/** Returns the reasons why the limits of the request, or of a parent request, do not allow the call. */
export function findLimitReasons(request: GovernedRequest, { tool, risk }: CallNames): Reason[] {
  const { state, core, stopped } = request
  if (stopped) return [stopped]
  const { deadline, ceiling } = state.opened.limits
  if (deadline !== undefined && core.clock.now() >= deadline) return [reason('DEADLINE_EXCEEDED')]
  if (!isAtLeast(ceiling, risk))
    return [reason('RISK_CEILING', tool, `${risk} is above ${ceiling}`)]
  for (let at: GovernedRequest | undefined = request; at; at = at.parent) {
    const limit = at.state.opened.limits.tool_calls
    if (limit !== undefined && callsOf(at) >= limit) {
      return [reason('BUDGET_EXCEEDED', tool, `${limit} calls of ${at.task.name}`)]
    }
  }
  return []
}

/** Counts the calls that were made or are running, in the request and in its children. */
export function callsOf({ state, running, children }: GovernedRequest): number {
  let count = state.callCount
  // `callCount` counts a write as soon as the journal says that it is about to run, but no read that is still
  // running.
  for (const id of running.keys()) if (state.calls.get(id)?.status !== 'started') count += 1
  // The calls of a child whose end is recorded are already included in `callCount`.
  for (const [id, child] of children) {
    if (!state.children.get(id)?.settled) count += callsOf(child)
  }
  return count
}

/**
 * Returns the rollback action that the tool declares for this call, or the reasons why it cannot be used;
 * undefined when none is declared and none is needed. A call that people reviewed keeps the rollback
 * action that they were shown.
 */
export async function declareRollback(
  request: GovernedRequest,
  made: Candidate,
): Promise<RollbackAction | undefined | Reason[]> {
  const { state, task, core } = request
  // Other arguments under the same id are another action, with a rollback of its own.
  const earlierReview = state.reviews.get(made.call)
  if (earlierReview?.rollback && earlierReview.args_hash === made.args_hash)
    return earlierReview.rollback
  const refuse = (why: string): Reason[] => [reason('ROLLBACK_REQUIRED', made.tool, why)]
  const { rollback } = made.core.governance
  if (!rollback) return made.risk === 'write_high_risk' ? refuse('none declared') : undefined
  if (rollback === 'impossible')
    return Object.freeze({ type: rollback, target: made.tool, payload: 'This cannot be undone.' })
  try {
    const call = toAdmitted(request, { ...made, attempt: state.attempt }, made.args)
    const context = toolContext(request, call)
    const declaration =
      typeof rollback === 'function'
        ? await rollback(made.args, context)
        : {
            type: 'tool_call',
            target: rollback.tool,
            payload: (await rollback.args?.(made.args, context)) ?? made.args,
          }
    const action = freezeJson(JSON.parse(canonicalJson(declaration)) as RollbackAction)
    const [issue] = findRollbackIssues(action)
    if (issue) return refuse(`${issue.path} ${issue.message}`)
    const { type, target } = action
    if (type === 'manual') {
      return task.allowManualRollback ? action : refuse('the task allows no manual rollback')
    }
    if (type === 'tool_call') {
      return request.findTool(target) ? action : refuse(`there is no tool "${target}"`)
    }
    return Object.hasOwn(core.undoers, type)
      ? action
      : refuse(`nothing inverts actions of type "${type}"`)
  } catch (error) {
    return refuse(thrownText(error))
  }
}
