import { type JsonObject, type JsonValue, SkeinError } from '@skein/base'
import {
  type AdmittedCall,
  type GovernedOutcome,
  type GovernedContext,
  type Probed,
  reason,
  type Risk,
  RISKS,
} from '@skein/governance'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { SessionGovernor } from './session-governor.ts'

/**
 * How a call was cut off: its process died, or it was stopped by its time limit, by the end of the run (a stop, a
 * termination), or by a new message that cut the turn.
 */
export type CutOff = 'crash' | 'time_limit' | 'stop' | 'cut'

/** A call that was running when its process died. */
interface CallInDoubt {
  readonly tool: ToolDefinition
  readonly callId: string
  readonly args: JsonValue
  /** The governor of the session, which records what became of the call; without it, nothing is recorded. */
  readonly governor?: Pick<SessionGovernor, 'recoverCall'>
  /** The context for the tool's probe, which is called when the governor has no record of the call. */
  readonly context: Pick<GovernedContext, 'signal' | 'idempotencyKey'>
}

/** What is done about a call that a crash interrupted. */
export type InDoubt =
  /** The effect happened; the tool's result is lost. */
  | { readonly type: 'done'; readonly message: string }
  /** The call is admitted and run again, with the same idempotency key. */
  | { readonly type: 'rerun' }
  /** The thread waits, because only a person can find out whether the effect happened. */
  | { readonly type: 'ask'; readonly request: InDoubtRequest }
  /** The model learns that the outcome is unknown. */
  | { readonly type: 'unknown'; readonly message: string }

/** The question to a person. Any answer but `applied` and `absent` leaves the outcome unknown. */
interface InDoubtRequest extends JsonObject {
  readonly type: 'in_doubt'
  readonly tool: string
  readonly arguments: JsonValue
  /** How the call was cut off; absent after a crash. */
  readonly cutOff?: Exclude<CutOff, 'crash'>
  readonly question: string
  readonly choices: readonly ['applied', 'absent', 'unknown']
}

/**
 * Decides about a call that a crash interrupted. If the tool has a probe, the probe is asked whether the
 * effect happened. A call that can be repeated safely is repeated, a person is asked about a high-risk write,
 * and otherwise the model learns that the outcome is unknown. The governor records the decision with its
 * next writes.
 */
export async function settleUnknownEffect(call: CallInDoubt): Promise<InDoubt> {
  const { tool, args } = call
  const risk = effectiveRisk(tool, args)
  switch (await findEffect(call, risk)) {
    case 'applied':
      return done(tool.name, 'crash')
    case 'absent':
      return { type: 'rerun' }
    case 'in_doubt':
      return askOrUnknown(call, 'crash')
  }
}

/**
 * Decides about a write that was stopped and gave no result within its grace. It is never run again by itself. If its code
 * still runs, even a probe that finds no effect proves nothing about the next moment. Returns the decision, and what the
 * governor records.
 */
export async function settleCutOff({
  how,
  hasEnded = false,
  tool,
  callId,
  args,
  context,
}: Omit<CallInDoubt, 'governor'> & {
  readonly how: Exclude<CutOff, 'crash'>
  /** Whether the code of the tool has ended, because it obeyed its signal. */
  readonly hasEnded?: boolean
}): Promise<{
  readonly decision: Exclude<InDoubt, { type: 'rerun' }> | AbsentEffect
  readonly settled: GovernedOutcome & { readonly type: 'error' }
}> {
  const finding = await probeTool(tool, args, { ...context, callId })
  const why = {
    time_limit: reason('TOOL_TIMEOUT', tool.name),
    stop: reason('TOOL_ERROR', tool.name, 'stopped'),
    cut: reason('TOOL_ERROR', tool.name, 'cut by a new message'),
  }[how]
  if (finding === 'absent' && hasEnded) {
    const settlement = { type: 'error', reasons: [why], effect: 'absent' } as const
    const message = `"${tool.name}" ${STOPPED[how]}, and had no effect.`
    return { decision: { type: 'absent', message }, settled: settlement }
  }
  if (finding === 'applied') {
    const settlement = { type: 'error', reasons: [why], effect: 'applied' } as const
    return { decision: done(tool.name, how), settled: settlement }
  }
  const reasons = [why, reason('TOOL_IN_DOUBT', tool.name)]
  const settlement = { type: 'error', reasons, effect: 'in_doubt' } as const
  return { decision: askOrUnknown({ tool, args }, how, hasEnded), settled: settlement }
}

/** A call that was stopped before it took effect. */
interface AbsentEffect {
  readonly type: 'absent'
  readonly message: string
}

const STOPPED: Readonly<Record<Exclude<CutOff, 'crash'>, string>> = {
  time_limit: 'took longer than its time limit and was stopped',
  stop: 'was stopped while it ran',
  cut: 'was stopped by a new message while it ran',
}

/** Says how a call was cut off. */
function cutOffText(how: CutOff, hasEnded: boolean): string {
  if (how !== 'crash' && hasEnded) return STOPPED[how]
  return {
    crash: 'was running when the process died',
    time_limit: 'took longer than its time limit and did not stop',
    stop: 'was asked to stop and did not',
    cut: 'was asked to stop by a new message and did not',
  }[how]
}

function askOrUnknown(
  { tool, args }: Pick<CallInDoubt, 'tool' | 'args'>,
  how: CutOff,
  hasEnded = false,
): Extract<InDoubt, { type: 'ask' | 'unknown' }> {
  if (effectiveRisk(tool, args) !== 'write_high_risk') return unknown(tool.name, how, hasEnded)
  const question = `"${tool.name}" ${cutOffText(how, hasEnded)}. Did it take effect?`
  const choices = ['applied', 'absent', 'unknown'] as const
  const cutOff = how === 'crash' ? {} : { cutOff: how }
  const inDoubt = { tool: tool.name, arguments: args, ...cutOff, question, choices }
  return { type: 'ask', request: { type: 'in_doubt', ...inDoubt } }
}

/** Reads from a question to a person how its call was cut off. */
export function cutOffOf(request: unknown): CutOff {
  const { cutOff } = (request ?? {}) as { readonly cutOff?: unknown }
  return cutOff === 'time_limit' || cutOff === 'stop' || cutOff === 'cut' ? cutOff : 'crash'
}

/**
 * Converts a person's answer to a decision. Any answer but `applied` and `absent` leaves the outcome unknown.
 */
export async function answerInDoubt({
  tool,
  callId,
  governor,
  request,
  answer,
}: Pick<CallInDoubt, 'callId'> & {
  readonly tool: Pick<ToolDefinition, 'name'>
  readonly governor?: Pick<SessionGovernor, 'settleInDoubt'>
  /** The question, which says how the call was cut off. */
  readonly request?: unknown
  readonly answer: unknown
}): Promise<Exclude<InDoubt, { type: 'ask' }>> {
  const how = cutOffOf(request)
  if (answer !== 'applied' && answer !== 'absent') return unknown(tool.name, how)
  await governor?.settleInDoubt(callId, answer)
  return answer === 'applied' ? done(tool.name, how) : { type: 'rerun' }
}

async function findEffect(
  { tool, callId, args, governor, context }: CallInDoubt,
  risk: Risk,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  const recovery = await governor?.recoverCall(callId)
  if (recovery) return recovery
  if (risk === 'read_only') return 'absent'
  const finding = await probeTool(tool, args, { ...context, callId })
  return finding === 'in_doubt' && tool.governance.idempotent ? 'absent' : finding
}

function done(tool: string, how: CutOff): InDoubt & { readonly type: 'done' } {
  const messages = {
    crash: 'was cut off by a crash after it had taken effect. What it answered is lost',
    time_limit:
      'took effect, but it took longer than its time limit. What it answered is not known',
    stop: 'took effect, but a person stopped the run. What it answered is not known',
    cut: 'took effect, but a new message cut the turn. What it answered is not known',
  }[how]
  return { type: 'done', message: `"${tool}" ${messages}; do not call it again for this.` }
}

function unknown(
  tool: string,
  how: CutOff,
  hasEnded = false,
): InDoubt & { readonly type: 'unknown' } {
  const history = how === 'crash' ? 'was cut off by a crash' : cutOffText(how, hasEnded)
  const rest = 'Whether it took effect is unknown; find out before you call it again.'
  return { type: 'unknown', message: `"${tool}" ${history}. ${rest}` }
}

/**
 * Returns the outcome that the governor records for a tool that threw or was aborted. A write that failed may
 * still have had its effect, unless it threw `NoEffectError`, rejected its arguments, or its probe finds no
 * effect. `message` goes into the audit log and must not contain secrets.
 */
export async function failedCall(
  tool: ToolDefinition,
  { call, args, risk, idempotency_key: idempotencyKey }: AdmittedCall,
  {
    error,
    message,
    signal,
  }: { readonly error: unknown; readonly message: string; readonly signal: AbortSignal },
): Promise<GovernedOutcome & { readonly type: 'error' }> {
  const why = reason('TOOL_ERROR', tool.name, message)
  const isClean = risk === 'read_only' || (SkeinError.is(error) && CLEAN.has(error.code))
  if (isClean) return { type: 'error', reasons: [why], effect: 'absent' }
  const effect = await probeTool(tool, args, { signal, idempotencyKey, callId: call })
  const doubt = effect === 'in_doubt' ? [reason('TOOL_IN_DOUBT', tool.name)] : []
  return { type: 'error', reasons: [why, ...doubt], effect }
}

/** Error codes of a tool that failed before it changed anything. */
const CLEAN: ReadonlySet<string> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])

/** The time limit of a probe. After it, it is not known whether the call had its effect: it stays in doubt. */
const PROBE_TIMEOUT_MS = 30_000

/**
 * Returns the risk of a call with these arguments. If `raise` throws or returns an invalid value, the highest
 * risk is returned.
 */
export function effectiveRisk({ governance }: ToolDefinition, args: JsonValue): Risk {
  const { risk } = governance
  const raise = governance.raise as ((args: JsonValue) => Risk) | undefined
  try {
    const level = RISKS.indexOf(raise?.(args) ?? risk)
    return level < 0 ? 'write_high_risk' : RISKS[Math.max(level, RISKS.indexOf(risk))]!
  } catch {
    return 'write_high_risk'
  }
}

/**
 * Asks the tool's probe whether the effect happened. Without a probe or a clear answer, the outcome of the
 * call stays unknown.
 */
async function probeTool(
  { governance }: ToolDefinition,
  args: JsonValue,
  context: Pick<GovernedContext, 'signal' | 'idempotencyKey' | 'callId'>,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  // The cast is safe, because the arguments were checked when the call was made.
  const probe = governance.probe as
    | ((args: JsonValue, context: GovernedContext) => Probed | boolean | Promise<Probed | boolean>)
    | undefined
  if (!probe) return 'in_doubt'
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)])
    const answer = probe(args, {
      ...context,
      signal,
      requestId: '',
      traceId: '',
      chunk: () => {
        throw new Error('A probe does not stream.')
      },
    })
    const finding = await Promise.race([answer, aborted(signal)])
    if (finding === true || finding === 'applied') return 'applied'
    return finding === false || finding === 'absent' ? 'absent' : 'in_doubt'
  } catch {
    return 'in_doubt' // a probe that fails proves nothing
  }
}

function aborted(signal: AbortSignal): Promise<'unknown'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('unknown')
    else signal.addEventListener('abort', () => resolve('unknown'), { once: true })
  })
}
