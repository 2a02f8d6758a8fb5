import { unlessLogMoved } from '../commit/log-moved.ts'
import {
  type CallPorts,
  type DeferRequest,
  executeTools,
  type LateOutcome,
  type SettledOutcome,
  type ToolAdmission,
  type ToolCall,
  type ToolContext,
  type ToolEffect,
  type ToolOutcome,
  type UserContent,
} from '@skein/ai'
import { contentOf, TOOL_STOPPED } from '@skein/ai/engine'
import {
  argumentParserOf,
  decodeBase64,
  type JsonObject,
  linkAbort,
  messageOf,
  type RecordedArguments,
} from '@skein/base'
import type { AdmittedCall, GovernedOutcome, Risk } from '@skein/governance'
import { afterSpawn, type SpawnPlan } from '../children/spawn.ts'
import { CUT, isShutdown, isStop } from '../contract/abort-reason.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import type { HookToolCall, HookToolResult } from '../definitions/hooks.ts'
import type { ResolvedSide, ResolvedTool } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { FailureCause, RuntimeEvent } from '../contract/event.ts'
import type { FileStat } from '../contract/thread-state.ts'
import { callIdOf, findCall, toLogged, toLoggedResult } from '../state/calls.ts'
import { answerInDoubt, effectiveRisk, settleCutOff } from '../governance/in-doubt.ts'
import { afterStored, hasHook, hookedWriteOf, runHooks } from '../hooks/hooks.ts'
import {
  type CallState,
  cutOf,
  type Entry,
  isWaiting,
  type KernelState,
  openCalls,
} from '../state/kernel-state.ts'
import { boundAttachments, boundMessage, orderedCalls } from '../state/step-decision.ts'
import { failureCause } from '../contract/failure-cause.ts'
import { loggedError, rememberRedactor } from '../telemetry/logger.ts'
import type { LogWrites } from '../model/log.ts'
import { shownAs } from '../model/view.ts'
import { isStoreError } from '../store/store-error.ts'
import { type ChangesWrite, statusToParent, writeOf } from '../thread/changes.ts'
import { cutLargeText } from '../thread/large-text.ts'
import { fileExtension, findFiles } from '../thread/paths.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { admitCall, isResultNotJson, endReview, refuseReplayed, settleCall } from './gate.ts'

/**
 * Runs the calls of a message that have no outcome. `executeTools` of `@skein/ai` runs them. Each call gets a
 * `RunningCall`, which has the call judged (gate), commits its start and its end (journal), and runs its hooks.
 */
export async function runCalls(
  context: DrainContext,
  side: ResolvedSide,
  entry: Entry,
): Promise<void> {
  const { environment } = context
  const settled = await settledCalls(context, side, entry)
  const { signal, end } = cutSignal(context)
  const events = executeTools({
    calls: orderedCalls(context.state, side, entry),
    tools: context.tools(side),
    settled,
    mode: side.prompt.definition.parallelToolCalls ? 'parallel' : 'sequential',
    open: (call) => new RunningCall(context, side, call, signal),
    strategy: { stopGraceMs: environment.limits.stopGraceMs },
    clock: environment.clock,
    timers: environment.callTimers,
    signal,
  })
  try {
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
    await askAhead(context, side, entry)
  } catch (error) {
    if (!(error instanceof CallSettledError) && !signal.aborted) throw error
  } finally {
    end()
  }
  if (signal.aborted) await readCut(context)
}

/** Reads the message that has cut the running turn, unless the work on the thread was aborted. */
export async function readCut(context: DrainContext): Promise<void> {
  if (context.signal.aborted) return
  await context.commit('cut', {}) // writes what is held back for the next commit; nothing is read before
  context.dropGovernor() // it waits for the results of the reads that were dropped
  await context.catchUp()
}

/**
 * Returns a signal that aborts with the work on the thread, and when a message cuts the running turn. Calls that have not
 * started do not run then; those that run are stopped as by a person's stop.
 */
export function cutSignal({ environment, head, signal }: DrainContext): {
  readonly signal: AbortSignal
  end(): void
} {
  const controller = new AbortController()
  const unlink = linkAbort([signal], controller)
  const forget = environment.onEdit(head.id, ({ type }) => {
    if (type === 'message_queued') controller.abort(CUT)
  })
  const end = (): void => {
    unlink()
    forget()
  }
  return { signal: controller.signal, end }
}

/**
 * Asks for the approval of calls that are held back only by earlier calls which wait for an approval themselves, so
 * that a person can decide about all of them together. None of them runs before its turn.
 */
async function askAhead(context: DrainContext, side: ResolvedSide, entry: Entry): Promise<void> {
  const { environment, state, signal } = context
  for (const one of entry.calls) {
    if (one.outcome || isWaiting(state, one)) continue
    const running = new RunningCall(context, side, one.call, signal)
    if (!running.mayAskAhead(entry, one)) return
    const open = (): CallPorts => ({
      ...running,
      gate: { admit: (call) => running.askAhead(call) },
      review: (call, outcome) => running.review(call, outcome),
    })
    const tools = context.tools(side)
    const events = executeTools({
      calls: [one.call],
      tools,
      open,
      clock: environment.clock,
      signal,
    })
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
  }
}

/** Defers a call that may not start yet, e.g. because an earlier call waits. It stays open; nobody is asked. */
export const HELD_BACK: ToolAdmission = {
  type: 'defer',
  request: { kind: 'timer', request: null },
}

/**
 * Thrown before the tool of a call runs: its outcome was committed by the runtime itself, or the call has to be
 * judged again. The error ends the batch of calls; the next action (unit of work) of the thread runs the rest.
 */
export class CallSettledError extends Error {}

/**
 * Returns the outcomes of the calls that need not run: outcomes from the log, answers that are an outcome, and
 * `deferred` for calls that still wait. An answer to an approval is not an outcome: the call runs, and the governor
 * (which allows or denies calls) reads the answer.
 */
export async function settledCalls(
  context: DrainContext,
  side: ResolvedSide,
  { calls }: Entry,
): Promise<ReadonlyMap<string, ToolOutcome>> {
  const { state } = context
  const settled = new Map<string, ToolOutcome>()
  for (const one of calls) {
    const { call, interruptId } = one
    if (one.outcome) settled.set(call.toolCallId, one.outcome)
    const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
    if (one.outcome || !open) continue
    const { kind, request = null } = open.interrupt
    if (isWaiting(state, one)) {
      const waiting = { kind, request: request as never } // the request was JSON when the call was deferred
      settled.set(call.toolCallId, { type: 'deferred', request: waiting })
    } else if (kind !== 'approval' && open.answer) {
      const isInDoubt = kind === 'in_doubt'
      const doubt = isInDoubt ? { request } : undefined
      const answered = await answeredOutcome(context, { call, answer: open.answer, doubt })
      if (!answered) continue
      const outcome = withPictures(state, answered, open.attachments)
      const status = statusOf(context, side, { call, outcome })
      const settledBy = isInDoubt ? ({ settledBy: 'person' } as const) : {}
      await context.commit('call_end', {
        events: [{ ...endEvent(context, call, outcome), ...settledBy }, ...status],
        others: status.flatMap((changed) => statusToParent(context, changed)),
        kind: 'outcome',
      })
      settled.set(call.toolCallId, outcome)
    }
  }
  return settled
}

/**
 * Returns the event by which a successful call of the agent's status tool publishes a text about the progress
 * (Standard Agents §7.10).
 */
function statusOf(
  context: DrainContext,
  { sessionStatus }: ResolvedSide,
  { call, outcome }: { readonly call: ToolCall; readonly outcome: SettledOutcome },
): RuntimeEvent[] {
  if (sessionStatus?.name !== call.toolName || outcome.type !== 'done') return []
  const text = boundMessage({ call, outcome }, sessionStatus)
  return [{ type: 'status_changed', at: context.at(), status: 'running', text }]
}

/**
 * Converts an answer to the outcome of its call. Returns undefined when the call has to run again, because a
 * person said that it had no effect before the crash.
 */
async function answeredOutcome(
  context: DrainContext,
  {
    call,
    answer,
    doubt,
  }: {
    readonly call: ToolCall
    readonly answer: object
    /** The question whether a call that was cut off took effect. */
    readonly doubt: { readonly request: unknown } | undefined
  },
): Promise<SettledOutcome | undefined> {
  const given = answer as { type: string; value?: unknown; message?: string; reason?: string }
  if (doubt) {
    const settled = await answerInDoubt({
      tool: { name: call.toolName },
      callId: callIdOf(context.state, call.toolCallId),
      governor: await context.governor(),
      request: doubt.request,
      answer: given.value,
    })
    if (settled.type === 'rerun') return undefined
    const { message } = settled
    return settled.type === 'done'
      ? { type: 'done', result: message }
      : { type: 'unknown', message }
  }
  if (given.type === 'result') return { type: 'done', result: given.value ?? null }
  if (given.type === 'deny') return { type: 'denied', reason: given.reason ?? 'It was denied.' }
  return { type: 'error', message: given.message ?? 'It failed.' }
}

/** Adds the files of a child's result that models can be shown; the text of the result already names all files. */
function withPictures(
  { files }: KernelState,
  outcome: SettledOutcome,
  attachments: readonly string[],
): SettledOutcome {
  const shown = attachments.flatMap((path) => {
    const file = files.get(path)
    return file && shownAs(file.mediaType) ? [markOf(file)] : []
  })
  if (outcome.type !== 'done' || shown.length === 0) return outcome
  return { ...outcome, result: [outcome.result, ...shown] }
}

export function endEvent(
  context: DrainContext,
  call: ToolCall,
  outcome: SettledOutcome,
  cause?: FailureCause,
): Extract<RuntimeEvent, { type: 'tool_execution_end' }> {
  return {
    type: 'tool_execution_end',
    at: context.at(),
    turnId: context.state.session?.turn?.id ?? '',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    ...toLogged(outcome),
    ...(cause && { cause }),
  }
}

/**
 * One call while it runs. It collects everything that belongs to the outcome of the call (the gate's
 * admission, changes to the thread, a child to create) and commits all of it at once. `@skein/ai` calls the
 * members of this object in this order: `gate.admit`, `journal` (start), the tool, `review`, `gate.settle`,
 * `journal` (end).
 */
export class RunningCall implements CallPorts {
  readonly drain: DrainContext
  readonly side: ResolvedSide
  /** The extra context of the tool: it gives the tool access to this object. */
  readonly context: { readonly running: RunningCall } = { running: this }
  /** The planned changes for the child that the call creates or messages. */
  plan: SpawnPlan | undefined
  /** The records of the requests that the call made to a model, if its tool is a prompt. */
  readonly requests: LogWrites[] = []
  /** The arguments that were parsed before: when a person was asked, before a crash, or while the call was held back. */
  readonly parsed: RecordedArguments | undefined
  /** Whether the call may not start yet. Then nothing about the call is committed. */
  isHeldBack = false
  readonly #tool: Extract<ResolvedTool, { kind: 'tool' }> | undefined
  #admitted: AdmittedCall | undefined
  /** The changes that the tool made in the thread. */
  #changes: FacadeChanges | undefined
  /** The changes, ready to commit: hooks have already processed the messages in them. */
  #write: ChangesWrite | undefined
  #isHidden = false
  /** Whether the code of the tool was called. */
  #hasRun = false
  /** What the code of the tool threw. */
  #thrown: FailureCause | undefined
  /** What the governor records about a call that was stopped and gave no result. */
  #cutOff: GovernedOutcome | undefined
  /** Whether a probe found out what became of a call that was stopped. */
  #isFound = false
  /** Aborts when the call has to stop. */
  readonly #signal: AbortSignal
  /** The turn of the call. */
  #turnId = ''
  /** Whether the governor was asked about the call; it is not if the arguments do not fit the tool. */
  #isJudged = false
  readonly #call: ToolCall

  constructor(drain: DrainContext, side: ResolvedSide, call: ToolCall, signal: AbortSignal) {
    const { toolName, toolCallId } = call
    this.drain = drain
    this.#signal = signal
    this.side = side
    this.#call = call
    const { call: state } = findCall(drain.state, toolCallId) ?? {}
    this.parsed = state && (state.parsed ?? heldBack.get(state))
    const found = side.prompt.tools.find(({ name }) => name === toolName)
    this.#tool = found?.kind === 'tool' && found.tool.run ? found : undefined
  }

  readonly gate = {
    /**
     * Asks the governor, which allows or denies calls, about tools with user code. The runtime's own tools are
     * always allowed, because they only plan a commit.
     */
    admit: async (call: ToolCall): Promise<ToolAdmission> => {
      if (cutOf(this.drain.state)) {
        this.isHeldBack = true // `cutTurn` ends the call
        return HELD_BACK
      }
      if (!this.#tool) return { type: 'allow' }
      this.#isJudged = true
      const { admission, admitted } = await admitCall(
        this.drain,
        this.#tool.tool,
        call,
        this.#call.arguments, // what the model sent
      )
      this.#admitted = admitted
      return admission
    },
    settle: async (_call: ToolCall, outcome: SettledOutcome): Promise<void> => {
      if (!this.#tool || !this.#admitted) return
      if (this.#cutOff) {
        const governor = await this.drain.governor()
        const turnId = this.drain.state.session?.turn?.id ?? ''
        await governor.settle(this.#admitted.call, this.#cutOff, turnId)
        return
      }
      if (outcome.type === 'unknown') return
      await settleCall(this.drain, { tool: this.#tool.tool, call: this.#admitted, outcome })
    },
  }

  /**
   * A write that runs when the call has to stop still gets its outcome, unless the lease was lost, or the process ends
   * without waiting: then its result is reported with `late`.
   */
  settlesAfter(reason: unknown): string | undefined {
    if (!this.#tool) return undefined
    const { toolName } = this.#call
    if (reason === 'terminate') return `The thread was terminated while "${toolName}" ran.`
    if (reason === 'stop') return `The user stopped the run while "${toolName}" ran.`
    if (reason === CUT) return `A new message came while "${toolName}" ran.`
    const hasGrace = isShutdown(reason) && reason.hasGrace
    return hasGrace ? `The process stopped while "${toolName}" ran.` : undefined
  }

  /** Whether the call has to stop and nobody waits for its outcome, because it did not run or may run again. */
  get #isDropped(): boolean {
    const { risk, idempotent } = this.#tool?.tool.governance ?? { risk: 'read_only' }
    const mayRun = !this.#hasRun || risk === 'read_only' || idempotent === true
    return this.#signal.aborted && mayRun
  }

  /** Has the result of a call recorded whose outcome was not waited for, or could not be stored. */
  late(call: ToolCall, outcome: LateOutcome): void {
    const { drain } = this
    if (!this.#tool || this.#admitted?.risk === 'read_only') return
    const { toolCallId, toolName } = call
    const redactor = drain.redactor()
    const told = this.#changes && isChange(this.#changes) ? withoutChanges(outcome) : outcome
    drain.environment.late({
      threadId: drain.head.id,
      turnId: this.#turnId,
      toolCallId,
      toolName,
      outcome: redactor?.json(told) ?? told,
      callId: callIdOf(drain.state, toolCallId),
      isGoverned: this.#admitted !== undefined,
    })
  }

  /**
   * Whether a person can be asked about the call although earlier calls of its message have no outcome: all of
   * these wait for an approval, and the risk of the call is high, so it surely needs one.
   */
  mayAskAhead({ calls }: Entry, call: CallState): boolean {
    const { state } = this.drain
    const earlier = calls.slice(0, calls.indexOf(call)).filter(({ outcome }) => !outcome)
    const isNew = call.interruptId === undefined && call.startedEpoch === undefined
    if (!this.#tool || !isNew || earlier.length === 0) return false
    if (riskOf(this.#tool.tool, call) !== 'write_high_risk') return false
    return earlier.every((one) => {
      const open = state.interrupts.get(one.interruptId ?? '')
      return open?.interrupt.kind === 'approval' && isWaiting(state, one)
    })
  }

  /** Asks the governor about a call that may not start yet. If the call needs no approval, it goes on waiting. */
  async askAhead(call: ToolCall): Promise<ToolAdmission> {
    const admission = await this.gate.admit(call)
    if (admission.type !== 'allow') return admission
    this.isHeldBack = true
    this.drain.dropGovernor() // the call is judged again when it may start
    return HELD_BACK
  }

  /** Runs the code of a tool with the state of the thread, and keeps the changes that the tool made there. */
  async run(args: JsonObject, context: ToolContext): Promise<unknown> {
    const { drain, side } = this
    const { tool, config, name } = this.#tool!
    const { toolCallId } = context
    const { signal } = context
    this.#hasRun = true
    const facade = drain.facade(side, { tool, config, signal, toolCallId })
    try {
      const use = {
        ...context, // for an `agent()`, this includes the members of UAP §8.4
        state: facade.state,
        toolCallId,
        toolName: name,
        idempotencyKey: this.#admitted?.idempotency_key ?? callIdOf(drain.state, toolCallId),
        options: config?.options,
      }
      const result = await drain.runUserCode({ kind: 'tool', name, id: toolCallId }, () =>
        tool.run!(args, use),
      )
      // A tool may return files, and a tool that ends the session may name files. If one of these files does not
      // exist, the call fails.
      const call = { toolCallId, toolName: name, arguments: args }
      const paths = [side.sessionStop, side.sessionFail].flatMap((binding) =>
        binding?.name === name ? boundAttachments({ call }, binding) : [],
      )
      for (const path of [...paths, ...[result].flat().flatMap((item) => markedPath(item) ?? [])])
        if (!facade.state.statFile(path))
          throw new Error(`There is no file ${path} in this thread.`)
      return result
    } finally {
      // Also hides the secrets that the tool has just set, because its result or its error may contain them.
      drain.hide(facade.secrets())
      this.#changes = facade.takeChanges()
    }
  }

  /**
   * Passes the outcome of the call, and the messages that the tool wrote, to the hooks. The hooks may replace
   * or hide the outcome. They must run before `gate.settle`, because hooks commit, and the gate's records
   * must not be committed before the call's result.
   */
  async review(call: ToolCall, own: SettledOutcome): Promise<ToolOutcome> {
    const { drain, side } = this
    if (own.type === 'error') this.#noteThrown(call, own.cause)
    const isStopped = own.type === 'error' && own.code === TOOL_STOPPED && !this.#onlyReads
    if (own.type === 'unknown' || isStopped)
      return this.#doubt(call, own.type !== 'unknown' || own.hasEnded)
    const seen = seenCall(call)
    const before = seenResult(call, own)
    const name = own.type === 'done' ? 'after_tool_call_success' : 'after_tool_call_failure'
    const args = (result: HookToolResult) => [seen, result]
    const judged = await runHooks(
      drain,
      {
        side,
        name,
        args,
        fold: (result, answer) => {
          if (answer === null) this.#isHidden = true
          return answer ?? result
        },
      },
      before,
    )
    const store = { side, name: 'before_store_tool_result', args } as const
    const stored = await runHooks(drain, { ...store, fold: (_, answer) => answer }, judged)
    // The changes of a tool that threw are dropped. A tool whose result is not JSON has run to its end, so
    // its changes are kept.
    const hasRun = own.type === 'done' || isResultNotJson(own)
    if (hasRun && this.#changes) this.#write = await hookedWriteOf(drain, this.#changes, side)
    if (stored === before) return this.#fit(call, own)
    const { result, isError } = stored
    if (!isError) return this.#fit(call, { type: 'done', result })
    const message = typeof result === 'string' ? result : JSON.stringify(result)
    return this.#fit(call, { type: 'error', message })
  }

  /** Logs what the code of the tool threw, and keeps it for operators. The model is only told the message. */
  #noteThrown({ toolCallId, toolName }: ToolCall, error: unknown): void {
    const { drain } = this
    if (!this.#hasRun || error === undefined || drain.signal.aborted) return
    rememberRedactor(error, (text) => drain.redactor()?.text(text) ?? text)
    const { logger } = drain.environment
    const { id: threadId, tenant } = drain.head
    const place = { threadId, tenant, agent: drain.state.agent, toolName, toolCallId }
    logger?.error({ ...place, err: loggedError(error) }, 'tool failed')
    this.#thrown = failureCause(error)
  }

  /**
   * Decides about a call that was stopped, and gave no result within its grace. Hooks are not called, as after a crash:
   * they may not replace what nobody knows.
   */
  async #doubt(call: ToolCall, hasEnded: boolean | undefined): Promise<ToolOutcome> {
    const { drain } = this
    const { state, head, environment } = drain
    const { reason, aborted } = this.#signal
    // The next process decides what became of the call, as after a crash.
    if (isShutdown(reason)) throw new CallSettledError()
    // The signal may have aborted, but a probe changes nothing and may still look.
    const signal = aborted ? AbortSignal.timeout(environment.limits.stopGraceMs) : this.#signal
    const callId = callIdOf(state, call.toolCallId)
    const idempotencyKey = this.#admitted?.idempotency_key ?? `${head.id}/${callId}`
    const { tool } = this.#tool! // only tools with user code have a time limit
    const context = { signal, idempotencyKey }
    const { decision, settled } = await settleCutOff({
      how: reason === CUT ? 'cut' : isStop(reason) ? 'stop' : 'time_limit',
      hasEnded,
      tool,
      callId,
      args: call.arguments,
      context,
    })
    this.#cutOff = settled
    switch (decision.type) {
      case 'done':
        this.#isFound = true
        return { type: 'done', result: decision.message }
      case 'absent':
        this.#isFound = true
        return { type: 'error', message: decision.message }
      case 'unknown':
        return decision
      case 'ask':
        return { type: 'deferred', request: { kind: 'in_doubt', request: decision.request } }
    }
  }

  /**
   * Returns the outcome. If it is larger than `maxToolResultBytes`, returns its beginning, its end and the name of a
   * file of the thread that has the whole result. Media are not cut: the model needs them whole.
   */
  async #fit(call: ToolCall, given: SettledOutcome): Promise<SettledOutcome> {
    const { drain } = this
    if (given.type === 'denied' || given.type === 'unknown') return given
    const outcome = given.type === 'done' ? await this.#withFiles(call, given.result) : given
    const value = outcome.type === 'done' ? outcome.result : outcome.message
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const { limits } = drain.environment
    if (text.length * 3 <= limits.maxToolResultBytes) return outcome
    const cut = cutLargeText(drain.redactor()?.text(text) ?? text, limits)
    if (!cut || hasMedia(value)) return outcome
    const { path } = await this.#writeResult(call, cut.kept, 'text/plain')
    const shown = cut.shown(path)
    if (outcome.type === 'done') return { type: 'done', result: shown }
    return { type: 'error', message: shown }
  }

  /**
   * Stores media in a tool's result as files of the thread. In the result, media and marked file paths become
   * references, so that the log contains no bytes. Models that can read the type of a file are shown the file.
   */
  async #withFiles(
    call: ToolCall,
    result: unknown,
  ): Promise<Extract<SettledOutcome, { type: 'done' | 'error' }>> {
    const { drain } = this
    const items: readonly unknown[] = [result].flat()
    const contents = contentOf(result).map(bytesOf)
    if (!items.some((item) => markedPath(item) !== undefined) && !contents.some(Boolean))
      return { type: 'done', result }
    const { maxFileBytes } = drain.environment.limits
    try {
      const stored: unknown[] = []
      for (const [place, item] of items.entries()) {
        const path = markedPath(item)
        const content = contents[place]
        if (path !== undefined)
          stored.push(markOf(findFiles(drain, [path], this.#write?.events)[0]!))
        else if (!content) stored.push(item)
        else if (content.bytes.length <= maxFileBytes)
          stored.push(markOf(await this.#writeResult(call, content.bytes, content.mediaType)))
        else {
          const size = `${content.bytes.length} bytes, and a file may have ${maxFileBytes}`
          const text = `[A file of the type ${content.mediaType} is left out: it has ${size}.]`
          stored.push({ type: 'text', text })
        }
      }
      return { type: 'done', result: Array.isArray(result) ? stored : stored[0] }
    } catch (error) {
      // A hook named a file that does not exist.
      return { type: 'error', message: messageOf(error) }
    }
  }

  /** Writes a file of the thread under the name of the call; the file is stored together with the outcome. */
  async #writeResult(call: ToolCall, bytes: Uint8Array, mediaType: string): Promise<FileStat> {
    const { drain, side } = this
    const own = this.#write
    const facade = drain.facade(side, { toolCallId: call.toolCallId })
    const isTaken = (path: string): boolean =>
      facade.state.statFile(path) !== undefined ||
      own?.events.some((event) => event.type === 'file_written' && event.path === path) === true
    const path = resultPath(call.toolCallId, fileExtension(mediaType), isTaken)
    const file = await facade.state.writeFile(path, bytes, { mediaType })
    const { events, others, blobs } = await writeOf(drain, facade.takeChanges())
    this.#write = {
      ...own,
      events: [...(own?.events ?? []), ...events],
      others: [...(own?.others ?? []), ...others],
      blobs: [...(own?.blobs ?? []), ...blobs],
    }
    return file
  }

  /** Commits before the call runs that it is about to run (the intent), and afterwards its outcome. */
  readonly journal = {
    commit: async (effect: ToolEffect): Promise<void> => {
      const { call, parsed } = effect
      if (this.isHeldBack) {
        const { call: state } = findCall(this.drain.state, call.toolCallId) ?? {}
        if (state && parsed) heldBack.set(state, parsed)
        return
      }
      if (effect.type === 'call_start') return this.#start(call, parsed)
      const { outcome } = effect
      if (outcome.type === 'deferred') return this.#wait(call, outcome.request, parsed)
      return this.#end(call, outcome)
    },
  }

  async #start(call: ToolCall, parsed: RecordedArguments | undefined): Promise<void> {
    const { drain, side } = this
    const { toolCallId, toolName, arguments: args } = call
    const started: Extract<RuntimeEvent, { type: 'tool_execution_start' }> = {
      type: 'tool_execution_start',
      at: drain.at(),
      turnId: drain.state.session?.turn?.id ?? '',
      toolCallId,
      toolName,
      arguments: args,
      schema: parsed?.schema,
      epoch: drain.epoch,
    }
    // If a grant is revoked after the governor has read it, the call must not start: this commit is refused.
    // The same holds for a write if the thread was stopped, terminated or cut before this commit.
    const expectsNoMail = !this.#onlyReads
    this.#turnId = started.turnId
    try {
      const kind = this.#onlyReads ? 'begin' : 'change'
      const write: Write = { kind, events: [started], expectsNoMail }
      const isStarted = await unlessLogMoved(drain, () => drain.commit('call_start', write))
      if (!isStarted) throw new CallSettledError() // nothing was written: the call is judged again
    } catch (error) {
      if (!isStoreError(error, 'TOKEN_SPENT')) throw error
      await refuseReplayed(drain, call)
      const reason = 'The call was refused: APPROVAL_REPLAYED (the approval was used before).'
      const ended = endEvent(drain, call, { type: 'denied', reason })
      await drain.commit('call_end', { kind: 'outcome', events: [ended] })
      throw new CallSettledError()
    }
    const seen = seenCall(call)
    await runHooks(drain, { side, name: 'tool_call_started', args: () => [seen] }, undefined)
  }

  /**
   * Whether the tool only reads, whatever its arguments are. If a failure of the machine then loses the record that
   * the call started, it simply runs again. The start of any other call is synced to disk before the call runs.
   */
  get #onlyReads(): boolean {
    const { risk, raise } = this.#tool?.tool.governance ?? {}
    return risk === 'read_only' && raise === undefined
  }

  /** Commits the outcome together with the changes, the child and the status text that belong to it. */
  async #end(call: ToolCall, outcome: SettledOutcome): Promise<void> {
    const { drain, side, plan } = this
    const { toolCallId } = call
    // A deploy changed or removed the tool while its call waited for an approval, so the governor of calls still waits.
    if (!this.#isJudged && isReviewed(drain.state, toolCallId))
      await endReview(
        drain,
        call,
        this.#tool
          ? 'The tool takes no such arguments any more.'
          : 'The tool is not defined any more.',
      )
    const own = this.#write
    const asked = this.requests.flatMap((request) => request.events)
    const made = [...(own?.events ?? []), ...(plan?.events ?? []), ...asked]
    const status = statusOf(drain, side, { call, outcome })
    const settledBy = this.#isFound ? ({ settledBy: 'probe' } as const) : {}
    const ended = { ...endEvent(drain, call, outcome, this.#thrown), ...settledBy }
    const events = [...made, ended, ...status]
    const listed = status.flatMap((changed) => statusToParent(drain, changed))
    const others = [...(plan?.others ?? []), ...(own?.others ?? []), ...listed]
    if (this.#isHidden) events.push({ type: 'tool_call_hidden', at: drain.at(), toolCallId })
    const frames = this.requests.flatMap((request) => request.blobs)
    const blobs = [...(own?.blobs ?? []), ...(plan?.blobs ?? []), ...frames]
    let told = outcome
    const onConflict = (error: unknown): Write => {
      // The tool has run, so the model is told so; running the tool again could repeat its side effects.
      const message = `The tool ran, but its changes to the thread were not stored. ${messageOf(error)}`
      told = { type: 'error', message }
      return { kind: 'outcome', events: [endEvent(drain, call, told)] }
    }
    const values = own?.values
    const onLost = (): void => {
      const isOwn = outcome.type === 'done' || outcome.type === 'error'
      if (isOwn && !this.#isFound) this.late(call, outcome)
    }
    const stored = { events, others, blobs, head: own?.head, values }
    const write: Write = { ...stored, onConflict, onLost, kind: 'outcome' }
    // The last result of a message is stored by the commit that ends the step, unless something acts on it before.
    const isLast = openCalls(drain.state).every((one) => one.call.toolCallId === toolCallId)
    const isActedOn =
      plan !== undefined ||
      side.agent !== undefined ||
      hasHook(side, 'tool_call_done', 'after_create_message', 'after_update_message')
    const joinsNext = isLast && !isActedOn ? true : undefined
    // Hooks may have taken long, and the work on the thread may have ended the call meanwhile.
    if (this.#isDropped) throw this.#signal.reason
    if (!(await this.#commit('call_end', call, { ...write, joinsNext }))) return
    await afterSpawn(drain, plan, side)
    if (told === outcome) await afterStored(drain, side, own?.events ?? [])
    const done = [seenCall(call), seenResult(call, told)]
    await runHooks(drain, { side, name: 'tool_call_done', args: () => done }, undefined)
  }

  /** Commits that a call has to wait (its interrupt), and the child that it waits for. */
  async #wait(
    call: ToolCall,
    request: DeferRequest,
    parsed: RecordedArguments | undefined,
  ): Promise<void> {
    const { drain, side, plan } = this
    const { environment, state } = drain
    const { toolCallId } = call
    // Only the runtime itself asks whether an interrupted call had its effect (`in_doubt`). A tool that defers its
    // call with this kind asks a question of its own.
    const isDoubt = request.kind === 'in_doubt' && this.#cutOff !== undefined
    const kind = request.kind === 'in_doubt' && !isDoubt ? 'input' : request.kind
    const isOpen = findCall(state, toolCallId)?.call.interruptId !== undefined
    if (isOpen && kind !== 'approval' && !isDoubt) return
    const ttl = kind === 'child' || isDoubt ? undefined : environment.limits.interruptTtlMs
    const opened: RuntimeEvent = {
      type: 'interrupt_opened',
      at: drain.at(),
      turnId: state.session?.turn?.id ?? '',
      interrupt: {
        id: plan?.interruptId ?? environment.ids(),
        toolCallId,
        kind,
        request: request.request,
      },
      parsed,
      expiresAt:
        ttl === undefined ? undefined : new Date(environment.clock.now() + ttl).toISOString(),
    }
    const { events = [], others = [], blobs = [] } = plan ?? {}
    const write: Write = { kind: 'outcome', events: [...events, opened], others, blobs }
    if (await this.#commit('call_waits', call, write)) await afterSpawn(drain, plan, side)
  }

  /**
   * Commits the end or the wait of the call and returns true. If the child that the call messages was
   * terminated meanwhile, nothing is sent: the call ends with an error, and the function returns false.
   */
  async #commit(point: string, call: ToolCall, write: Write): Promise<boolean> {
    try {
      await this.drain.commit(point, write)
      return true
    } catch (error) {
      if (!this.plan || !isStoreError(error, 'THREAD_TERMINATED')) throw error
      const message = 'The subagent was terminated and takes no more messages.'
      const ended = endEvent(this.drain, call, { type: 'error', message })
      await this.drain.commit('call_end', { kind: 'outcome', events: [ended] })
      return false
    }
  }
}

/** Whether a tool has changed anything in its thread, or in a value of its user. */
function isChange({ events, values, toParent, stopSession, terminates }: FacadeChanges): boolean {
  const changes = events.length + toParent.length
  return changes > 0 || values.user !== undefined || stopSession !== undefined || terminates
}

/** Adds to a late result that what the tool changed in its thread is lost: changes are stored with results in time only. */
function withoutChanges(outcome: LateOutcome): LateOutcome {
  if (outcome.type !== 'done') return outcome // the changes of a tool that failed are never stored
  const { result } = outcome
  const words = typeof result === 'string' ? result : JSON.stringify(result ?? null)
  return {
    type: 'done',
    result: `${words}\n\n[What the tool changed in the thread was not stored.]`,
  }
}

/**
 * The parsed arguments of calls that were parsed but may not start yet, so that a tool parses the arguments of a call
 * once. If the process ends, they are parsed again.
 */
const heldBack = new WeakMap<CallState, RecordedArguments>()

/** Returns the risk of a call. The declared risk counts as long as nothing has parsed the arguments that could raise it. */
function riskOf(tool: ToolDefinition, { call, parsed }: CallState): Risk {
  if (argumentParserOf(tool) && !parsed) return tool.governance.risk
  return effectiveRisk(tool, parsed?.arguments ?? call.arguments)
}

/** Whether the call waited for an approval. */
function isReviewed(state: KernelState, toolCallId: string): boolean {
  const interruptId = findCall(state, toolCallId)?.call.interruptId
  if (interruptId === undefined) return false
  return state.interrupts.get(interruptId)?.interrupt.kind === 'approval'
}

/** Returns a free path for the result of a call. The model chose the call's id, which may be no valid file name. */
function resultPath(
  toolCallId: string,
  extension: string,
  isTaken: (path: string) => boolean,
): string {
  const name = toolCallId.replace(/[^\w-]/g, '_').slice(0, 80) || 'call'
  for (let count = 1; ; count++) {
    const path = `/results/${name}${count === 1 ? '' : `-${count}`}${extension}`
    if (!isTaken(path)) return path
  }
}

/** Returns the path in `{ $file: '/chart.png' }`, by which a tool returns a file of the thread. */
function markedPath(item: unknown): string | undefined {
  const { $file } = (item ?? {}) as { readonly $file?: unknown }
  return typeof $file === 'string' && Object.keys(item as object).length === 1 ? $file : undefined
}

/** Returns the reference to a file that the log stores in a result; `fileIn` reads it. */
function markOf({ path, mediaType, sizeBytes, hash }: FileStat): JsonObject {
  return { $file: { path, mediaType, sizeBytes, hash } }
}

/** Returns the bytes of a media block; undefined for texts, and for media that are only an address. */
function bytesOf(
  block: UserContent,
): { readonly bytes: Uint8Array; readonly mediaType: string } | undefined {
  if (block.type === 'text') return undefined
  const { mimeType: mediaType } = block
  if ('data' in block)
    return block.data instanceof Uint8Array ? { bytes: block.data, mediaType } : undefined
  const { source } = block
  if (source.type === 'bytes') return { bytes: source.data, mediaType }
  if (source.type !== 'base64') return undefined
  try {
    return { bytes: decodeBase64(source.data), mediaType }
  } catch {
    return undefined // it only looks like media
  }
}

function hasMedia(result: unknown): boolean {
  return contentOf(result).some(({ type }) => type !== 'text')
}

/** Converts a call to the form that hooks receive. */
function seenCall({ toolCallId, toolName, arguments: args }: ToolCall): HookToolCall {
  return { toolCallId, toolName, arguments: args }
}

function seenResult(call: ToolCall, outcome: SettledOutcome): HookToolResult {
  const { result, isError = false } = toLoggedResult({ call, outcome })
  return { result, isError }
}
