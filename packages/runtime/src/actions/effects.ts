import {
  type ArgumentParser,
  argumentParserOf,
  type JsonValue,
  messageOf,
  parsedByMember,
} from '@skein/base'
import type { LateOutcome } from '@skein/ai'
import { isAbort } from '@skein/ai/engine'
import { type AdmittedCall, GovernanceError, type GovernedOutcome, reason } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { isShutdown, isStop } from '../contract/abort-reason.ts'
import type { Write } from '../context/write.ts'
import { RuntimeError } from '../contract/error.ts'
import type { EffectEnded, RuntimeEvent } from '../contract/event.ts'
import { attemptId, type EffectState } from '../state/kernel-state.ts'
import type {
  AgentTaskClass,
  EffectContext,
  EffectDefinition,
  ToolDefinition,
} from '../definitions/types.ts'
import {
  answerInDoubt,
  type CutOff,
  cutOffOf,
  effectiveRisk,
  failedCall,
  type InDoubt,
  settleCutOff,
  settleUnknownEffect,
} from '../governance/in-doubt.ts'
import type { SessionGovernor } from '../governance/session-governors.ts'
import { afterStored, hookedWriteOf } from '../hooks/hooks.ts'
import { TimeLimitError, within } from '../hooks/time-limit.ts'
import { isStoreError } from '../store/store.ts'
import { nextCronTime } from '../contract/cron.ts'
import { sentArguments } from '../state/calls.ts'
import { queuedTool } from '../thread/effects.ts'
import { answerToApproval } from '../calls/approval-answer.ts'

/** How many attempts a scheduled effect without `retry` has, if it may run again after a crash. */
const CRASH_ATTEMPTS = 5
const CRASH_BACKOFF_MS = 1_000
const DEFAULT_TIMEOUT_MS = 60_000

/** One run of a scheduled effect. All its attempts have the same idempotency key. */
interface EffectRun {
  readonly effect: EffectState
  /** Undefined when the scheduled effect is no longer defined. */
  readonly definition: EffectDefinition | undefined
  /** The scheduled effect described as a tool, because the governor and the recovery after a crash work with tools. */
  readonly tool: ToolDefinition
  /** The governor, which allows or denies this run; undefined when the scheduled effect is not governed. */
  readonly governor: SessionGovernor | undefined
  /** Why the run may not start: the governor refused to open it, or its arguments do not fit its schema. */
  readonly refusal?: string
  /** The arguments with which it runs: of a governed run the parsed ones, which the governor judges. */
  readonly args: JsonValue
  /** The parse phase that has made `args`; undefined if the effect parses its arguments itself. */
  readonly parser: ArgumentParser | undefined
}

/**
 * Runs a scheduled effect that is due. Its start is committed before it runs, and its changes to the thread are
 * committed together with its end. A governed effect is judged by the policy as a tool call is; if a person has to
 * approve it, it waits.
 */
export async function runEffect(context: DrainContext, effectId: string): Promise<void> {
  const effect = context.state.effects.get(effectId)
  if (!effect) return
  const { agent, epoch } = context
  const attempt = effect.attempts + 1
  const run = await openRun(context, effect)
  const gate = await admit(context, run, attempt)
  if (gate.type === 'ask')
    return ask(context, run, { kind: 'approval', request: gate.request as unknown as JsonValue })
  if (gate.type === 'deny') return endRun(context, run, { outcome: 'failed', error: gate.reason })
  const started = { type: 'effect_started', at: context.at(), effectId, attempt, epoch } as const
  try {
    await context.commit('effect_start', { events: [started], ...writesOf(run) })
  } catch (error) {
    if (!isStoreError(error, 'TOKEN_SPENT')) throw error
    const used = 'The effect was refused: APPROVAL_REPLAYED (the approval was used before).'
    const reopened = await openRun(context, effect) // its records of the approval were not committed
    return endRun(context, reopened, { outcome: 'failed', error: used })
  }
  const facade = context.facade(agent.a)
  const { definition } = run
  let end: 'done' | StoppedEffect
  try {
    if (!definition) throw new Error(`There is no effect "${effect.scheduled.name}" any more.`)
    const { name } = effect.scheduled
    const work = (limited: AbortSignal): Promise<unknown> =>
      context.runUserCode({ kind: 'effect', name, id: effectId }, () =>
        definition.run(facade.state, run.args, contextOf(context, run, attempt, limited)),
      )
    end = await runInTime(context, run, attempt, work)
  } catch (error) {
    // The work was aborted. The next work on the thread finds out what the effect has done.
    if (error instanceof AbortedError) return
    return failRun(context, run, { attempt, error, admitted: gate.call })
  } finally {
    context.hide(facade.secrets())
  }
  if (end !== 'done') return stoppedRun(context, run, { attempt, admitted: gate.call, ...end })
  const write = await hookedWriteOf(context, facade.takeChanges(), agent.a)
  await settle(run, gate.call, { type: 'result', value: null })
  const onLost = (): void => reportLate(context, run, attempt, { type: 'done', result: null })
  await endRun(context, run, { outcome: 'done', write: { ...write, onLost } })
}

/** Thrown when the work on the thread was aborted and what the effect has done is left to the next work. */
class AbortedError extends Error {}

/** How an effect was stopped that gave no result within its grace. */
interface StoppedEffect {
  readonly how: Exclude<CutOff, 'crash' | 'cut'>
  /** Whether its code has ended, because it obeyed its signal. */
  readonly hasEnded: boolean
}

/**
 * Runs the code of a scheduled effect with its time limit. An effect that may not run again has a grace to end by itself
 * after the limit or an abort; if it does not, its outcome is unknown, and what it ends with is recorded late.
 */
async function runInTime(
  context: DrainContext,
  run: EffectRun,
  attempt: number,
  work: (limited: AbortSignal) => Promise<unknown>,
): Promise<'done' | StoppedEffect> {
  const { signal, environment } = context
  const { tool, args, definition } = run
  const mayRepeat = tool.governance.idempotent || effectiveRisk(tool, args) === 'read_only'
  let running: Promise<unknown> | undefined
  let own = signal // the signal that the effect gets
  const isObeyed = (cause: unknown): boolean => isAbort(cause, own, signal)
  try {
    const started = (limited: AbortSignal): Promise<unknown> => {
      own = limited
      return (running = work(limited))
    }
    await within(definition?.timeoutMs ?? DEFAULT_TIMEOUT_MS, started, signal)
    if (signal.aborted && mayRepeat) throw new AbortedError()
    return 'done'
  } catch (error) {
    const left = running
    const isLimit = error instanceof TimeLimitError
    if (mayRepeat || !left) throw signal.aborted ? new AbortedError() : error
    if (!isLimit && !signal.aborted) throw error
    const hasGrace = isShutdown(signal.reason) && signal.reason.hasGrace
    const isLeft = signal.aborted && !isStop(signal.reason) && !hasGrace
    const grace = isLeft ? 0 : environment.limits.stopGraceMs
    const how = isLimit ? 'time_limit' : 'stop'
    try {
      await within(grace, () => left)
      return 'done'
    } catch (late) {
      if (isObeyed(late)) {
        if (isLeft || isShutdown(signal.reason)) throw new AbortedError()
        return { how, hasEnded: true }
      }
      if (!(late instanceof TimeLimitError)) throw late
      void left.then(
        () => reportLate(context, run, attempt, { type: 'done', result: null }),
        (cause: unknown) => {
          if (isObeyed(cause)) return
          reportLate(context, run, attempt, { type: 'error', message: messageOf(cause) })
        },
      )
      if (isLeft || isShutdown(signal.reason)) throw new AbortedError()
      return { how, hasEnded: false }
    }
  }
}

function reportLate(
  context: DrainContext,
  run: EffectRun,
  attempt: number,
  outcome: LateOutcome,
): void {
  const { effectId, name } = run.effect.scheduled
  const id = callIdOf(run, attempt)
  const redactor = context.redactor()
  context.environment.late({
    threadId: context.head.id,
    turnId: '',
    toolCallId: id,
    toolName: name,
    outcome: redactor?.json(outcome) ?? outcome,
    callId: id,
    isGoverned: run.governor !== undefined,
    effect: { effectId },
  })
}

/** Settles a scheduled effect that was stopped and gave no result. It is not started again. */
async function stoppedRun(
  context: DrainContext,
  run: EffectRun,
  {
    attempt,
    admitted,
    how,
    hasEnded,
  }: StoppedEffect & {
    readonly attempt: number
    readonly admitted: AdmittedCall | undefined
  },
): Promise<void> {
  const { stopGraceMs } = context.environment.limits
  // The signal may have aborted, but a probe changes nothing and may still look.
  const signal = context.signal.aborted ? AbortSignal.timeout(stopGraceMs) : context.signal
  const { idempotencyKey } = contextOf(context, run, attempt, signal)
  const { decision, settled } = await settleCutOff({
    how,
    hasEnded,
    tool: run.tool,
    callId: callIdOf(run, attempt),
    args: run.args,
    context: { signal, idempotencyKey },
  })
  await settle(run, admitted, settled)
  if (decision.type === 'absent')
    return endRun(context, run, {
      outcome: 'failed',
      error: decision.message,
      retryAfterMs: retryAfter(run, attempt),
    })
  // A thread that has ended does not act on an answer any more.
  if (decision.type === 'ask' && !context.state.terminated)
    return ask(context, run, { kind: 'in_doubt', request: decision.request })
  const found = decision.type === 'ask' ? unknownEnd : decision
  return endFound(context, run, found, { settledBy: 'probe', cutOff: how })
}

const unknownEnd = { type: 'unknown', message: '' } as const

/**
 * Settles a scheduled effect that was running when a process died, or uses a person's answer about it. The rules are
 * those of tool calls: ask its probe; run it again if it only reads or is idempotent; ask a person if its risk
 * is high; otherwise record that the outcome is unknown. A crash counts as an attempt.
 */
export async function settleEffect(context: DrainContext, effectId: string): Promise<void> {
  const effect = context.state.effects.get(effectId)
  if (!effect) return
  const { interruptId, scheduled, attempts } = effect
  const run = await openRun(context, effect)
  const { tool, governor, definition } = run
  const callId = callIdOf(run, attempts)
  const open = interruptId === undefined ? undefined : context.state.interrupts.get(interruptId)
  if (effect.late) return endLate(context, run, effect.late)
  if (open) {
    const answer = (open.answer as { readonly value?: unknown } | undefined)?.value
    const { request } = open.interrupt
    const cutOff = cutOffOf(request)
    const found = await answerInDoubt({ tool, callId, governor, request, answer })
    if (found.type !== 'rerun')
      return endFound(context, run, found, { settledBy: 'person', cutOff })
    // For the governor, which allows or denies runs, the next attempt is another call that needs its own approval.
    const error = `${CUT_OFF[cutOff]} while it ran. A person found that it had no effect.`
    return endRun(context, run, { outcome: 'failed', error, retryAfterMs: 0 })
  }
  const { signal } = context
  const { idempotencyKey } = contextOf(context, run, attempts, signal)
  const probing = { signal, idempotencyKey }
  const found: InDoubt = definition
    ? await settleUnknownEffect({ tool, callId, args: run.args, governor, context: probing })
    : { type: 'unknown', message: `"${scheduled.name}" was cut off by a crash and is not defined.` }
  if (found.type === 'ask') return ask(context, run, { kind: 'in_doubt', request: found.request })
  if (found.type !== 'rerun')
    return endFound(context, run, found, { settledBy: 'probe', cutOff: 'crash' })
  const { attempts: most = CRASH_ATTEMPTS, backoffMs = CRASH_BACKOFF_MS } = definition?.retry ?? {}
  const error = `The process died while it ran (attempt ${attempts} of ${most}).`
  if (attempts >= most) return endRun(context, run, { outcome: 'unknown', error })
  const retryAfterMs = backoffMs * 2 ** (attempts - 1)
  return endRun(context, run, { outcome: 'failed', error, retryAfterMs })
}

/** Ends an attempt with the result that it has reported late. */
async function endLate(
  context: DrainContext,
  run: EffectRun,
  { outcome, result }: NonNullable<EffectState['late']>,
): Promise<void> {
  const { attempts } = run.effect
  const isDone = outcome === 'success'
  const why = [reason('TOOL_ERROR', run.tool.name, 'ended late')]
  const settled: GovernedOutcome = isDone
    ? { type: 'result', value: null }
    : { type: 'error', reasons: why, effect: 'in_doubt' }
  await run.governor?.settleLate(callIdOf(run, attempts), settled, '')
  if (isDone) return endRun(context, run, { outcome: 'done', settledBy: 'result' })
  const error = String(result)
  return endRun(context, run, { outcome: 'failed', error, retryAfterMs: retryAfter(run, attempts) })
}

/** How the text about an effect that was cut off begins. */
const CUT_OFF: Readonly<Record<CutOff, string>> = {
  crash: 'The process died',
  time_limit: 'Its time limit passed',
  stop: 'The thread was stopped',
  cut: 'A new message came',
}

/** Ends a run that was cut off: its outcome was found out, or stays unknown. */
function endFound(
  context: DrainContext,
  run: EffectRun,
  found: Extract<InDoubt, { type: 'done' | 'unknown' }>,
  { settledBy, cutOff }: { readonly settledBy: 'probe' | 'person'; readonly cutOff: CutOff },
): Promise<void> {
  if (found.type === 'done') return endRun(context, run, { outcome: 'done', settledBy })
  const { name } = run.effect.scheduled
  const error = `${CUT_OFF[cutOff]} while the effect "${name}" ran. Whether it took effect is unknown, and it is not run again.`
  return endRun(context, run, { outcome: 'unknown', error })
}

/** Handles a scheduled effect that threw or took too long. It is tried again as its definition says. */
async function failRun(
  context: DrainContext,
  run: EffectRun,
  failure: {
    readonly attempt: number
    readonly error: unknown
    readonly admitted: AdmittedCall | undefined
  },
): Promise<void> {
  const { attempt, error: cause, admitted } = failure
  const text = messageOf(cause)
  const error = context.redactor()?.text(text) ?? text
  if (admitted) {
    const { signal } = context
    const failed = await failedCall(run.tool, admitted, { error: cause, message: error, signal })
    await settle(run, admitted, failed)
  }
  await endRun(context, run, { outcome: 'failed', error, retryAfterMs: retryAfter(run, attempt) })
}

/** Returns how long to wait before the next attempt; undefined if there is none. */
function retryAfter({ definition }: EffectRun, attempt: number): number | undefined {
  const { retry } = definition ?? {}
  return retry && attempt < retry.attempts ? retry.backoffMs * 2 ** (attempt - 1) : undefined
}

interface Ending extends Pick<EffectEnded, 'error' | 'settledBy'> {
  readonly outcome: Exclude<EffectEnded['outcome'], 'removed'>
  /** Set when the same run is tried again. */
  readonly retryAfterMs?: number | undefined
  /** The changes that the scheduled effect made in the thread. */
  readonly write?: Write
}

/**
 * Commits the end of a run or of one attempt. After the last attempt, a scheduled effect with a cron expression
 * continues at its next time. If another writer has set a value that the effect read, its changes are not
 * stored, and the attempt has failed.
 */
async function endRun(context: DrainContext, run: EffectRun, ending: Ending): Promise<void> {
  const { outcome, error, settledBy, retryAfterMs, write = {} } = ending
  const { effectId, cron, timeZone, name } = run.effect.scheduled
  const now = context.environment.clock.now()
  const isRetry = retryAfterMs !== undefined
  // The next cron time is computed from now: after a pause the scheduled effect runs once, not once per missed time.
  const cronAt = cron === undefined ? undefined : nextCronTime(cron, now, timeZone)
  const next = isRetry ? now + retryAfterMs : cronAt
  const ended: RuntimeEvent = {
    type: 'effect_ended',
    at: context.at(),
    effectId,
    outcome,
    error,
    runAt: next === undefined ? undefined : new Date(next).toISOString(),
    isRetry: isRetry || undefined,
    settledBy,
  }
  const events = [...(write.events ?? []), ended]
  if (!isRetry) {
    if (outcome === 'done') await run.governor?.deliver(null)
    else
      await run.governor?.fail(
        outcome === 'unknown' ? 'EFFECT_UNKNOWN' : 'EFFECT_FAILED',
        error ?? '',
      )
  }
  const code = 'EFFECT_UNKNOWN'
  const message = error ?? ''
  const hint = `Check what "${name}" did. Give it a \`probe\`, or declare it \`idempotent\`, and it is settled without a person.`
  if (outcome === 'unknown')
    events.push({ type: 'error_raised', at: context.at(), code, message, hint })
  let isStored = true
  await context.commit('effect_end', {
    ...write,
    events,
    ...writesOf(run),
    // A retry after a crash is no progress, or a scheduled effect that kills every process would be repeated for ever.
    kind: isRetry && run.effect.runningEpoch !== context.epoch ? 'change' : 'outcome',
    onConflict: (conflict) => {
      isStored = false
      const failed = { ...ended, outcome: 'failed', error: messageOf(conflict) } as const
      // The governor has already written that the run is over, so a governed scheduled effect is not tried again.
      const waitMs = run.governor ? undefined : retryAfter(run, run.effect.attempts)
      const runAt = waitMs === undefined ? undefined : new Date(now + waitMs).toISOString()
      const again = runAt === undefined ? failed : { ...failed, runAt, isRetry: true }
      return { kind: 'outcome', events: [again] }
    },
  })
  if (outcome === 'unknown')
    context.environment.report(new RuntimeError(message, { code, hint }), context.head.id)
  if (isStored && write.events) await afterStored(context, context.agent.a, write.events)
}

/** Commits the question to a person; the scheduled effect waits for the answer. */
async function ask(
  context: DrainContext,
  run: EffectRun,
  { kind, request }: { readonly kind: 'approval' | 'in_doubt'; readonly request: JsonValue },
): Promise<void> {
  const { clock, ids, limits } = context.environment
  const { effectId } = run.effect.scheduled
  // Only approvals expire. The question whether the scheduled effect happened stays open until somebody answers it.
  const expires = kind === 'approval' ? clock.now() + limits.interruptTtlMs : undefined
  const opened: RuntimeEvent = {
    type: 'interrupt_opened',
    at: context.at(),
    turnId: '',
    effectId,
    interrupt: { id: ids(), toolCallId: effectId, kind, request },
    expiresAt: expires === undefined ? undefined : new Date(expires).toISOString(),
  }
  await context.commit('effect_waits', { events: [opened], ...writesOf(run), kind: 'outcome' })
}

type Gate =
  | { readonly type: 'allow'; readonly call: AdmittedCall | undefined }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'ask'; readonly request: object }

/** Asks the governor whether the scheduled effect may run. Effects that are not governed always may. */
async function admit(context: DrainContext, run: EffectRun, attempt: number): Promise<Gate> {
  const { governor, effect, refusal } = run
  if (refusal !== undefined) return { type: 'deny', reason: refusal }
  if (!governor) return { type: 'allow', call: undefined }
  const { effectId, name, args: given } = effect.scheduled
  const { args } = run
  const { interruptId } = effect
  const open = interruptId === undefined ? undefined : context.state.interrupts.get(interruptId)
  const named = { id: callIdOf(run, attempt), toolCallId: effectId, tool: name, args, turnId: '' }
  const sent = sentArguments(given, args)
  const call = sent === undefined ? named : { ...named, sent }
  const admission = await governor.admit(call, open && answerToApproval(open))
  switch (admission.type) {
    case 'allow':
      return { type: 'allow', call: admission.call }
    case 'review':
      return { type: 'ask', request: admission.request }
    case 'replay':
      return { type: 'deny', reason: 'The effect ran before.' }
    case 'deny': {
      const reasons = admission.reasons.map(({ code, detail }) =>
        detail === undefined ? code : `${code} (${detail})`,
      )
      return { type: 'deny', reason: `The effect was refused: ${reasons.join(', ')}.` }
    }
  }
}

async function settle(
  { governor }: EffectRun,
  admitted: AdmittedCall | undefined,
  outcome: GovernedOutcome,
): Promise<void> {
  if (governor && admitted) await governor.settle(admitted.call, outcome, '')
}

/** Returns the audit lines of the run, without the governor's events, which are only about calls of a session. */
function writesOf({ governor }: EffectRun): Pick<Write, 'governance'> {
  return governor ? { governance: { ...governor.takeWrites(), events: [] } } : {}
}

/** The rules (task class) for scheduled effects: they need no evidence, and a person may undo an effect by hand. */
const EFFECT_TASK: AgentTaskClass = {
  name: 'effect',
  needs: [],
  verifiers: [],
  acceptInDoubt: true,
  allowManualRollback: true,
}

/**
 * Collects what a run of a scheduled effect needs. An effect is governed if it declares a risk, or if its agent has
 * rules for its tasks (a task class): each run is then a request of its own in the audit log.
 */
async function openRun(context: DrainContext, effect: EffectState): Promise<EffectRun> {
  const { environment, head, agent } = context
  const { name, args: given } = effect.scheduled
  const queued = queuedTool(environment.registry, name)
  const definition = queued ? effectOf(queued) : environment.registry.effects.get(name)
  const isGoverned = definition?.risk !== undefined || agent.definition.taskClass !== undefined
  const parsing = queued ?? (isGoverned ? definition : undefined)
  const parser = parsing && argumentParserOf(parsing)
  const tool = queued ? { ...queued, name } : asTool(context, { effect, parser }, definition)
  const unparsed = { effect, definition, tool, governor: undefined, args: given, parser }
  let args = given
  try {
    args = parser ? await parser.parse(given) : given
  } catch (error) {
    return { ...unparsed, refusal: messageOf(error) }
  }
  const run = { ...unparsed, args }
  if (!definition || !isGoverned) return run
  try {
    const governor = await environment.governors.open({
      threadId: head.id,
      rootId: head.rootId,
      tenant: head.tenant,
      owner: head.owner,
      agent: { ...agent, definition: { ...agent.definition, taskClass: EFFECT_TASK } },
      sessionId: callIdOf(run, 0),
      input: args,
      tools: [tool],
      commit: (writes) => context.commit('undo', { governance: { ...writes, events: [] } }),
    })
    return { ...run, governor }
  } catch (error) {
    if (!(error instanceof GovernanceError)) throw error
    return { ...run, refusal: error.message }
  }
}

/** Returns a scheduled effect that runs a tool queued with `queueTool`. Its result becomes a hidden message. */
function effectOf(tool: ToolDefinition): EffectDefinition {
  const { name, governance, timeoutMs } = tool
  return {
    kind: 'effect',
    name,
    risk: governance.risk,
    timeoutMs,
    async run(state, args, { signal, effectId, idempotencyKey }) {
      const names = { toolCallId: effectId, toolName: name, idempotencyKey }
      const result = await tool.run?.(args, { state, signal, ...names })
      const text = typeof result === 'string' ? result : JSON.stringify(result ?? null)
      state.injectMessage({ content: `[Result of ${name}]\n${text}`, isSilent: true })
    },
  }
}

function asTool(
  context: DrainContext,
  { effect, parser }: Pick<EffectRun, 'effect' | 'parser'>,
  definition: EffectDefinition | undefined,
): ToolDefinition {
  const { name } = effect.scheduled
  const { description = name, risk = 'write_low_risk', probe, timeoutMs } = definition ?? {}
  // `retry` is about attempts that failed. Whether one of which nobody knows what it did may be repeated is declared.
  const { idempotent = false } = definition ?? {}
  const look =
    probe &&
    ((args: JsonValue, { signal }: { readonly signal: AbortSignal }) =>
      probe(args, contextOf(context, { effect, parser }, effect.attempts, signal)))
  const payload = 'Undo by hand what the effect did.'
  const rollback = () => ({ type: 'manual', target: name, payload })
  return {
    kind: 'tool',
    name,
    description,
    parameters: {},
    // The casts are safe: the governor passes the arguments of the scheduled effect, which are any JSON.
    governance: {
      risk,
      idempotent,
      timeoutMs,
      probe: look,
      rollback,
    } as ToolDefinition['governance'],
  }
}

function contextOf(
  { head }: DrainContext,
  { effect: { scheduled, run }, parser }: Pick<EffectRun, 'effect' | 'parser'>,
  attempt: number,
  signal: AbortSignal,
): EffectContext {
  const { effectId } = scheduled
  const idempotencyKey = `${head.id}/${effectId}/${run}`
  return { ...parsedByMember(parser), signal, effectId, attempt, idempotencyKey }
}

/** The id of an attempt for the governor, which judges it. Each attempt is another call, with its own approval. */
function callIdOf(
  { effect: { scheduled, run } }: Pick<EffectRun, 'effect'>,
  attempt: number,
): string {
  return attemptId(scheduled.effectId, run, attempt)
}
