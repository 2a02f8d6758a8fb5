import {
  type CallPorts,
  type DeferRequest,
  type LateOutcome,
  type SettledOutcome,
  type ToolAdmission,
  type ToolCall,
  type ToolContext,
  type ToolEffect,
  type ToolOutcome,
} from '@skein/ai'
import { TOOL_STOPPED } from '@skein/ai/engine'
import { argumentParserOf, type JsonObject, messageOf, type RecordedArguments } from '@skein/base'
import type { AdmittedCall, Risk } from '@skein/governance'
import { afterSpawn, type SpawnPlan } from '../children/spawn.ts'
import { unlessLogMoved } from '../commit/log-moved.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import { CUT, isShutdown } from '../contract/abort-reason.ts'
import type { FailureCause, RuntimeEvent } from '../contract/event.ts'
import { failureCause } from '../contract/failure-cause.ts'
import type { HookToolCall, HookToolResult } from '../definitions/hooks.ts'
import type { ResolvedSide, ResolvedTool } from '../definitions/resolved.ts'
import { effectiveRisk } from '../governance/in-doubt.ts'
import { actsOn } from '../hooks/hook-kinds.ts'
import { afterStored, hookedWriteOf, runHooks } from '../hooks/hooks.ts'
import type { LogWrites } from '../model/log.ts'
import { callIdOf, findCall, toLoggedResult } from '../state/calls.ts'
import {
  type CallState,
  cutOf,
  type Entry,
  isWaiting,
  type KernelState,
  openCalls,
} from '../state/kernel-state.ts'
import { boundAttachments } from '../state/step-decision.ts'
import { loggedError, rememberRedactor } from '../telemetry/logger.ts'
import type { ChangesWrite } from '../thread/changes.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { statusToParent } from '../thread/parent-list.ts'
import { admitCall } from './admit-call.ts'
import { endEvent, statusEvents } from './call-events.ts'
import { type CutOffCall, decideCutOff } from './cut-off-call.ts'
import { reportLateCall } from './late-result.ts'
import { markedPaths, ResultFiles } from './result-files.ts'
import { isResultNotJson, settleCall } from './settle-call.ts'
import { endReview, refuseReplayed } from './withdraw.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import { isStoreError } from '../store/store-error.ts'

/** Defers a call that may not start yet, e.g. because an earlier call waits. It stays open; no one is asked. */
export const HELD_BACK: ToolAdmission = {
  type: 'defer',
  request: { kind: 'timer', request: null },
}

/**
 * Thrown before the tool of a call runs: its outcome was committed by the runtime itself, or the call has to be
 * judged again. The error ends the batch of calls; the next action of the thread runs the rest.
 */
export class CallSettledError extends Error {}

/**
 * One call while it runs. It collects everything that belongs to the outcome of the call (the gate's
 * admission, changes to the thread, a child to create) and commits all of it in one commit. `@skein/ai` calls the
 * members of this object in the order in which they are written here: `gate.admit`, `journal` (start), the tool
 * (`run`), `review`, `gate.settle`, `journal` (end or wait).
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
  readonly #call: ToolCall
  /** The tool, if it has code of the user. */
  readonly #tool: Extract<ResolvedTool, { kind: 'tool' }> | undefined
  /** Aborts when the call has to stop. */
  readonly #signal: AbortSignal
  /** Whether the governor was asked about the call; it is not if the arguments do not fit the tool. */
  #isJudged = false
  #admitted: AdmittedCall | undefined
  /** The turn of the call. */
  #turnId = ''
  /** Whether the code of the tool was called. */
  #hasRun = false
  /** The changes that the tool made in the thread. */
  #changes: FacadeChanges | undefined
  /** What the code of the tool threw. */
  #thrown: FailureCause | undefined
  /** What became of the call if it was stopped and gave no result. */
  #cutOff: CutOffCall | undefined
  /** Whether a hook hides the call from models. */
  #isHidden = false
  /** The changes, ready to commit: hooks have already processed the messages in them. */
  #write: ChangesWrite | undefined

  constructor(drain: DrainContext, side: ResolvedSide, call: ToolCall, signal: AbortSignal) {
    const { toolName, toolCallId } = call
    this.drain = drain
    this.side = side
    this.#call = call
    this.#signal = signal
    const { call: state } = findCall(drain.state, toolCallId) ?? {}
    this.parsed = state && (state.parsed ?? parsedWhileHeld.get(state))
    const tool = side.prompt.tools.find(({ name }) => name === toolName)
    this.#tool = tool?.kind === 'tool' && tool.tool.run ? tool : undefined
  }

  /** Judges the call before it runs, and records its outcome with the governor. */
  readonly gate = {
    admit: (call: ToolCall): Promise<ToolAdmission> => this.#admit(call),
    settle: (_call: ToolCall, outcome: SettledOutcome): Promise<void> => this.#settle(outcome),
  }

  /** Commits before the call runs that it is about to run (the intent), and afterwards its outcome. */
  readonly journal = {
    commit: async (effect: ToolEffect): Promise<void> => {
      const { call, parsed } = effect
      if (this.isHeldBack) {
        const { call: state } = findCall(this.drain.state, call.toolCallId) ?? {}
        if (state && parsed) parsedWhileHeld.set(state, parsed)
        return
      }
      if (effect.type === 'call_start') return this.#start(call, parsed)
      const { outcome } = effect
      if (outcome.type === 'deferred') return this.#wait(call, outcome.request, parsed)
      return this.#end(call, outcome)
    },
  }

  // 1. The gate judges the call.

  /**
   * Asks the governor about tools with user code. The runtime's own tools are
   * always allowed, because they only plan a commit.
   */
  async #admit(call: ToolCall): Promise<ToolAdmission> {
    if (cutOf(this.drain.state)) {
      this.isHeldBack = true // `cutTurn` ends the call
      return HELD_BACK
    }
    if (!this.#tool) return { type: 'allow' }
    this.#isJudged = true
    const original = this.#call.arguments // what the model sent
    const { admission, admitted } = await admitCall(this.drain, this.#tool.tool, call, original)
    this.#admitted = admitted
    return admission
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

  /** Asks the governor about a call that may not start yet. If the call needs no approval, it keeps waiting. */
  async askAhead(call: ToolCall): Promise<ToolAdmission> {
    const admission = await this.gate.admit(call)
    if (admission.type !== 'allow') return admission
    this.isHeldBack = true
    this.drain.dropGovernor() // the call is judged again when it may start
    return HELD_BACK
  }

  // 2. Its start is committed.

  async #start(call: ToolCall, parsed: RecordedArguments | undefined): Promise<void> {
    const { drain, side } = this
    const { toolCallId, toolName, arguments: args } = call
    const startEvent: Extract<RuntimeEvent, { type: 'tool_execution_start' }> = {
      type: 'tool_execution_start',
      at: drain.at(),
      turnId: drain.state.session?.turn?.id ?? '',
      toolCallId,
      toolName,
      arguments: args,
      schema: parsed?.schema,
      epoch: drain.epoch,
    }
    this.#turnId = startEvent.turnId
    const write: Write = {
      kind: this.#onlyReads ? 'begin' : 'change',
      events: [startEvent],
      // If a grant is revoked after the governor has read it, the call must not start: this commit is refused.
      // The same holds for a write if the thread was stopped, terminated or cut before this commit.
      requiresUnchangedLog: !this.#onlyReads,
    }
    try {
      const isStarted = await unlessLogMoved(drain, () => drain.commit('call_start', write))
      if (!isStarted) throw new CallSettledError() // nothing was written: the call is judged again
    } catch (error) {
      if (!isStoreError(error, 'TOKEN_SPENT')) throw error
      await refuseReplayed(drain, call)
      const reason = 'The call was refused: APPROVAL_REPLAYED (the approval was used before).'
      const denial = endEvent(drain, call, { type: 'denied', reason })
      await drain.commit('call_end', { kind: 'outcome', events: [denial] })
      throw new CallSettledError()
    }
    const hookCall = toHookCall(call)
    await runHooks(drain, { side, name: 'tool_call_started', args: () => [hookCall] }, undefined)
  }

  /**
   * Whether the tool only reads, whatever its arguments are. If a failure of the machine then loses the record that
   * the call started, it simply runs again. The start of any other call is synced to disk before the call runs.
   */
  get #onlyReads(): boolean {
    const { risk, raise } = this.#tool?.tool.governance ?? {}
    return risk === 'read_only' && raise === undefined
  }

  // 3. The tool runs.

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
      const attachments = [side.sessionStop, side.sessionFail].flatMap((binding) =>
        binding?.name === name ? boundAttachments({ call }, binding) : [],
      )
      for (const path of [...attachments, ...markedPaths(result)])
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

  // 4. Hooks review the outcome, and it gets the size and the form of a result.

  /**
   * Passes the outcome of the call, and the messages that the tool wrote, to the hooks. The hooks may replace
   * or hide the outcome. They must run before `gate.settle`, because hooks commit, and the gate's records
   * must not be committed before the call's result.
   */
  async review(call: ToolCall, own: SettledOutcome): Promise<ToolOutcome> {
    const { drain } = this
    if (own.type === 'error') this.#noteThrown(call, own.cause)
    const isStopped = own.type === 'error' && own.code === TOOL_STOPPED && !this.#onlyReads
    if (own.type === 'unknown' || isStopped)
      return this.#decideCutOff(call, own.type !== 'unknown' || own.hasEnded)
    const outcome = await this.#passHooks(call, own)
    const { toolCallId } = call
    const files = new ResultFiles({ drain, side: this.side, toolCallId }, this.#write)
    const result = await files.fit(outcome)
    this.#write = files.write
    return result
  }

  async #passHooks(call: ToolCall, own: SettledOutcome): Promise<SettledOutcome> {
    const { drain, side } = this
    const hookCall = toHookCall(call)
    const before = toHookResult(call, own)
    const args = (result: HookToolResult) => [hookCall, result]
    const name = own.type === 'done' ? 'after_tool_call_success' : 'after_tool_call_failure'
    const fold = (result: HookToolResult, answer: HookToolResult | null): HookToolResult => {
      if (answer === null) this.#isHidden = true
      return answer ?? result
    }
    const after = await runHooks(drain, { side, name, args, fold }, before)
    const store = { side, name: 'before_store_tool_result', args } as const
    const toStore = await runHooks(drain, { ...store, fold: (_, answer) => answer }, after)
    // The changes of a tool that threw are dropped. A tool whose result is not JSON has run to its end, so
    // its changes are kept.
    const hasEnded = own.type === 'done' || isResultNotJson(own)
    if (hasEnded && this.#changes) this.#write = await hookedWriteOf(drain, this.#changes, side)
    if (toStore === before) return own
    const { result, isError } = toStore
    if (!isError) return { type: 'done', result }
    return { type: 'error', message: typeof result === 'string' ? result : JSON.stringify(result) }
  }

  /** Logs what the code of the tool threw, and keeps it for operators. The model gets only the message. */
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

  /** Decides what became of a stopped call. Hooks are not called: they may not replace an outcome that is unknown. */
  async #decideCutOff(call: ToolCall, hasEnded: boolean | undefined): Promise<ToolOutcome> {
    // The next process decides what became of the call, as after a crash.
    if (isShutdown(this.#signal.reason)) throw new CallSettledError()
    this.#cutOff = await decideCutOff(this.drain, {
      call,
      tool: this.#tool!.tool, // only tools with user code have a time limit
      signal: this.#signal,
      hasEnded,
      idempotencyKey: this.#admitted?.idempotency_key,
    })
    return this.#cutOff.outcome
  }

  // 5. The governor records the outcome.

  async #settle(outcome: SettledOutcome): Promise<void> {
    if (!this.#tool || !this.#admitted) return
    if (this.#cutOff) {
      const governor = await this.drain.governor()
      const turnId = this.drain.state.session?.turn?.id ?? ''
      await governor.settle(this.#admitted.call, this.#cutOff.record, turnId)
      return
    }
    if (outcome.type === 'unknown') return
    await settleCall(this.drain, { tool: this.#tool.tool, call: this.#admitted, outcome })
  }

  // 6. The outcome is committed, or that the call waits.

  /** Commits the outcome together with the changes, the child and the status text that belong to it. */
  async #end(call: ToolCall, outcome: SettledOutcome): Promise<void> {
    const { drain, side, plan } = this
    const { toolCallId } = call
    // A deploy changed or removed the tool while its call waited for an approval, so the governor still waits.
    if (!this.#isJudged && isReviewed(drain.state, toolCallId))
      await endReview(
        drain,
        call,
        this.#tool
          ? 'The tool takes no such arguments any more.'
          : 'The tool is not defined any more.',
      )
    const isProbed = this.#cutOff?.isProbed === true
    let loggedOutcome = outcome
    const write: Write = {
      ...this.#writeOfEnd(call, outcome, isProbed),
      onConflict: (error) => {
        // The model learns that the tool has run; running the tool again could repeat its side effects.
        const message = `The tool ran, but its changes to the thread were not stored. ${messageOf(error)}`
        loggedOutcome = { type: 'error', message }
        return { kind: 'outcome', events: [endEvent(drain, call, loggedOutcome)] }
      },
      onLost: () => {
        const isOwn = outcome.type === 'done' || outcome.type === 'error'
        if (isOwn && !isProbed) this.late(call, outcome)
      },
      joinsNext: this.#joinsNext(call),
    }
    // Hooks may have taken long, and the work on the thread may have ended the call meanwhile.
    if (this.#isDropped) throw this.#signal.reason
    if (!(await this.#commit('call_end', call, write))) return
    await afterSpawn(drain, plan, side)
    if (loggedOutcome === outcome) await afterStored(drain, side, this.#write?.events ?? [])
    const args = [toHookCall(call), toHookResult(call, loggedOutcome)]
    await runHooks(drain, { side, name: 'tool_call_done', args: () => args }, undefined)
  }

  /** Returns everything that the end of the call writes. */
  #writeOfEnd(call: ToolCall, outcome: SettledOutcome, isProbed: boolean): Write {
    const { drain, plan } = this
    const own = this.#write
    const requests = this.requests.flatMap(({ events }) => events)
    const frames = this.requests.flatMap(({ blobs }) => blobs)
    const settledBy = isProbed ? ({ settledBy: 'probe' } as const) : {}
    const end = { ...endEvent(drain, call, outcome, this.#thrown), ...settledBy }
    const status = statusEvents(drain, this.side, { call, outcome })
    const { toolCallId } = call
    const hidden = { type: 'tool_call_hidden', at: drain.at(), toolCallId } as const
    return {
      kind: 'outcome',
      events: [
        ...(own?.events ?? []),
        ...(plan?.events ?? []),
        ...requests,
        end,
        ...status,
        ...(this.#isHidden ? [hidden] : []),
      ],
      others: [
        ...(plan?.others ?? []),
        ...(own?.others ?? []),
        ...status.flatMap((event) => statusToParent(drain, event)),
      ],
      blobs: [...(own?.blobs ?? []), ...(plan?.blobs ?? []), ...frames],
      head: own?.head,
      values: own?.values,
    }
  }

  /** The last result of a message is stored by the commit that ends the step, unless something acts on it before. */
  #joinsNext({ toolCallId }: ToolCall): true | undefined {
    const { drain, side, plan } = this
    const isLast = openCalls(drain.state).every(({ call }) => call.toolCallId === toolCallId)
    const isActedOn = plan !== undefined || side.agent !== undefined || actsOn('result', side.hooks)
    return isLast && !isActedOn ? true : undefined
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
    const question: RuntimeEvent = {
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
    const write: Write = { kind: 'outcome', events: [...events, question], others, blobs }
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
      const end = endEvent(this.drain, call, { type: 'error', message })
      await this.drain.commit('call_end', { kind: 'outcome', events: [end] })
      return false
    }
  }

  /** Whether the call has to stop and nothing waits for its outcome, because it did not run or may run again. */
  get #isDropped(): boolean {
    const { risk, idempotent } = this.#tool?.tool.governance ?? { risk: 'read_only' }
    const isHarmless = !this.#hasRun || risk === 'read_only' || idempotent === true
    return this.#signal.aborted && isHarmless
  }

  /** Has the result of a call recorded whose outcome was not waited for, or could not be stored. */
  late(call: ToolCall, outcome: LateOutcome): void {
    if (!this.#tool || this.#admitted?.risk === 'read_only') return
    reportLateCall(this.drain, {
      call,
      outcome,
      turnId: this.#turnId,
      changes: this.#changes,
      isGoverned: this.#admitted !== undefined,
    })
  }
}

/**
 * The parsed arguments of calls that were parsed but may not start yet, so that a tool parses the arguments of a call
 * once. If the process ends, they are parsed again.
 */
const parsedWhileHeld = new WeakMap<CallState, RecordedArguments>()

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

/** Converts a call to the form that hooks receive. */
function toHookCall({ toolCallId, toolName, arguments: args }: ToolCall): HookToolCall {
  return { toolCallId, toolName, arguments: args }
}

function toHookResult(call: ToolCall, outcome: SettledOutcome): HookToolResult {
  const { result, isError = false } = toLoggedResult({ call, outcome })
  return { result, isError }
}
