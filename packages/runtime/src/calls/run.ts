import {
  type CallPorts,
  contentOf,
  type DeferRequest,
  executeTools,
  type SettledOutcome,
  type ToolAdmission,
  type ToolCall,
  type ToolContext,
  type ToolEffect,
  type ToolOutcome,
  type UserContent,
} from '@skein/ai'
import { decodeBase64, type JsonObject, linkAbort, messageOf } from '@skein/base'
import type { AdmittedCall } from '@skein/governance'
import { afterSpawn, type SpawnPlan } from '../children/spawn.ts'
import type { DrainContext, Write } from '../contract/context.ts'
import type { HookToolCall, HookToolResult } from '../definitions/hooks.ts'
import type { ResolvedSide, ResolvedTool } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { FileStat } from '../contract/thread-state.ts'
import { callIdOf, findCall, toLogged, toLoggedResult } from '../fold/calls.ts'
import { answerInDoubt, effectiveRisk } from '../governance/in-doubt.ts'
import { afterStored, hasHook, hookedWriteOf, runHooks } from '../hooks/hooks.ts'
import {
  type CallState,
  cutOf,
  type Entry,
  isWaiting,
  type KernelState,
  openCalls,
} from '../contract/state.ts'
import { boundAttachments, boundMessage, orderedCalls } from '../session/decide.ts'
import type { LogWrites } from '../model/log.ts'
import { shownAs } from '../model/view.ts'
import { isStoreError } from '../store/store.ts'
import { type ChangesWrite, statusToParent, writeOf } from '../thread/changes.ts'
import { fileExtension, findFiles } from '../thread/paths.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { admitCall, isResultNotJson, refuseReplayed, settleCall, withdrawReview } from './gate.ts'

/**
 * Runs the calls of a message that have no outcome. `executeTools` of `@skein/ai` runs them. Each call gets a
 * `RunningCall`, which has the call judged (gate), commits its start and its end (journal), and runs its hooks.
 */
export async function runCalls(
  context: DrainContext,
  side: ResolvedSide,
  entry: Entry,
): Promise<void> {
  const { environment, signal } = context
  const events = executeTools({
    calls: orderedCalls(context.state, side, entry),
    tools: context.tools(side),
    settled: await settledCalls(context, side, entry),
    mode: side.prompt.definition.parallelToolCalls ? 'parallel' : 'sequential',
    open: (call) => new RunningCall(context, side, call),
    clock: environment.clock,
    signal,
  })
  try {
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
    await askAhead(context, side, entry)
  } catch (error) {
    if (!(error instanceof CallSettledError) && !signal.aborted) throw error
  }
}

/**
 * Asks for the approval of calls that are held back only by earlier calls which wait for an approval themselves, so
 * that a person can decide about all of them together. None of them runs before its turn.
 */
async function askAhead(context: DrainContext, side: ResolvedSide, entry: Entry): Promise<void> {
  const { environment, state, signal } = context
  for (const one of entry.calls) {
    if (one.outcome || isWaiting(state, one)) continue
    const running = new RunningCall(context, side, one.call)
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
      const answered = await answeredOutcome(context, { call, answer: open.answer, isInDoubt })
      if (!answered) continue
      const outcome = withPictures(state, answered, open.attachments)
      const status = statusOf(context, side, { call, outcome })
      await context.commit('call_end', {
        events: [endEvent(context, call, outcome), ...status],
        others: status.flatMap((changed) => statusToParent(context, changed)),
        isProgress: true,
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
    isInDoubt,
  }: { readonly call: ToolCall; readonly answer: object; readonly isInDoubt: boolean },
): Promise<SettledOutcome | undefined> {
  const given = answer as { type: string; value?: unknown; message?: string; reason?: string }
  if (isInDoubt) {
    const settled = await answerInDoubt({
      tool: { name: call.toolName },
      callId: callIdOf(context.state, call.toolCallId),
      governor: await context.governor(),
      answer: given.value,
    })
    if (settled.type === 'rerun') return undefined
    const { message } = settled
    return settled.type === 'done' ? { type: 'done', result: message } : { type: 'error', message }
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
): RuntimeEvent {
  return {
    type: 'tool_execution_end',
    at: context.at(),
    turnId: context.state.session?.turn?.id ?? '',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    ...toLogged(outcome),
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
  /** Whether the call may not start yet. Then nothing about the call is committed. */
  isHeldBack = false
  readonly #tool: Extract<ResolvedTool, { kind: 'tool' }> | undefined
  #admitted: AdmittedCall | undefined
  /** The changes that the tool made in the thread. */
  #changes: FacadeChanges | undefined
  /** The changes, ready to commit: hooks have already processed the messages in them. */
  #write: ChangesWrite | undefined
  #isHidden = false

  constructor(drain: DrainContext, side: ResolvedSide, { toolName }: ToolCall) {
    this.drain = drain
    this.side = side
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
      const { admission, admitted } = await admitCall(this.drain, this.#tool.tool, call)
      this.#admitted = admitted
      return admission
    },
    settle: async (_call: ToolCall, outcome: SettledOutcome): Promise<void> => {
      if (!this.#tool || !this.#admitted) return
      await settleCall(this.drain, { tool: this.#tool.tool, call: this.#admitted, outcome })
    },
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
    if (effectiveRisk(this.#tool.tool, call.call.arguments) !== 'write_high_risk') return false
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
    const { signal, end } = this.#signalOf(context.signal)
    const facade = drain.facade(side, { tool, config, signal, toolCallId })
    try {
      const use = {
        ...context, // for an `agent()`, this includes the members of UAP §8.4
        state: facade.state,
        signal,
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
      end()
      // Also hides the secrets that the tool has just set, because its result or its error may contain them.
      drain.hide(facade.secrets())
      this.#changes = facade.takeChanges()
    }
  }

  /**
   * Returns the signal of the tool. A read is also told to stop when a message cuts its turn; a write runs to
   * its end, because a write that is cut off may or may not have had its effect.
   */
  #signalOf(given: AbortSignal) {
    if (this.#admitted?.risk !== 'read_only') return { signal: given, end() {} }
    const { environment, head } = this.drain
    const cut = new AbortController()
    const unlink = linkAbort([given], cut)
    const forget = environment.onEdit(head.id, ({ type }) => {
      if (type === 'message_queued')
        cut.abort(new DOMException('A new message came.', 'AbortError'))
    })
    const end = (): void => {
      unlink()
      forget()
    }
    return { signal: cut.signal, end }
  }

  /**
   * Passes the outcome of the call, and the messages that the tool wrote, to the hooks. The hooks may replace
   * or hide the outcome. They must run before `gate.settle`, because hooks commit, and the gate's records
   * must not be committed before the call's result.
   */
  async review(call: ToolCall, own: SettledOutcome): Promise<SettledOutcome> {
    const { drain, side } = this
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

  /**
   * Returns the outcome. If it is larger than `maxToolResultBytes`, returns its beginning, its end and the name of a
   * file of the thread that has the whole result. Media are not cut: the model needs them whole.
   */
  async #fit(call: ToolCall, given: SettledOutcome): Promise<SettledOutcome> {
    const { drain } = this
    const { maxToolResultBytes, maxFileBytes } = drain.environment.limits
    if (given.type === 'denied') return given
    const outcome = given.type === 'done' ? await this.#withFiles(call, given.result) : given
    const value = outcome.type === 'done' ? outcome.result : outcome.message
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    if (text.length * 3 <= maxToolResultBytes) return outcome
    const whole = Buffer.from(drain.redactor()?.text(text) ?? text)
    if (whole.length <= maxToolResultBytes || hasMedia(value)) return outcome
    const kept = whole.subarray(0, edgeOf(whole, maxFileBytes))
    const { path } = await this.#writeResult(call, kept, 'text/plain')
    const head = whole.subarray(0, edgeOf(whole, Math.floor(maxToolResultBytes * 0.6)))
    const tail = whole.subarray(edgeOf(whole, whole.length - Math.floor(maxToolResultBytes * 0.3)))
    const left = whole.length - head.length - tail.length
    const file =
      kept.length === whole.length ? 'The whole result is' : `The first ${kept.length} bytes are`
    const note = `[${left} bytes are left out here. ${file} in the file ${path} of this thread.]`
    const shown = `${head.toString()}\n\n${note}\n\n${tail.toString()}`
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
      if (this.isHeldBack) return
      if (effect.type === 'call_start') return this.#start(effect.call)
      const { call, outcome } = effect
      if (outcome.type === 'deferred') return this.#wait(call, outcome.request)
      return this.#end(call, outcome)
    },
  }

  async #start(call: ToolCall): Promise<void> {
    const { drain, side } = this
    const { toolCallId, toolName, arguments: args } = call
    const started: RuntimeEvent = {
      type: 'tool_execution_start',
      at: drain.at(),
      turnId: drain.state.session?.turn?.id ?? '',
      toolCallId,
      toolName,
      arguments: args,
      epoch: drain.epoch,
    }
    // If a grant is revoked after the governor has read it, the call must not start: this commit is refused.
    const expectsNoMail = drain.state.grants.size > 0 && !this.#onlyReads
    try {
      const write = { events: [started], isLazy: this.#onlyReads, expectsNoMail }
      await drain.commit('call_start', write)
    } catch (error) {
      if (expectsNoMail && isStoreError(error, 'LOG_MOVED')) {
        await drain.catchUp()
        throw new CallSettledError() // nothing was written: the call is judged again
      }
      if (!isStoreError(error, 'TOKEN_SPENT')) throw error
      await refuseReplayed(drain, call)
      const reason = 'The call was refused: APPROVAL_REPLAYED (the approval was used before).'
      const ended = endEvent(drain, call, { type: 'denied', reason })
      await drain.commit('call_end', { events: [ended], isProgress: true })
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
    // A deploy removed the tool while its call waited for an approval, so the governor of calls still waits for it.
    if (!this.#tool && isReviewed(drain.state, toolCallId))
      await withdrawReview(drain, call, {
        type: 'deny',
        reason: 'The tool is not defined any more.',
      })
    const own = this.#write
    const asked = this.requests.flatMap((request) => request.events)
    const made = [...(own?.events ?? []), ...(plan?.events ?? []), ...asked]
    const status = statusOf(drain, side, { call, outcome })
    const events = [...made, endEvent(drain, call, outcome), ...status]
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
      return { events: [endEvent(drain, call, told)], isProgress: true }
    }
    const values = own?.values
    const write = { events, others, blobs, head: own?.head, values, onConflict, isProgress: true }
    // The last result of a message is stored by the commit that ends the step, unless something acts on it before.
    const isLast = openCalls(drain.state).every((one) => one.call.toolCallId === toolCallId)
    const isActedOn =
      plan !== undefined ||
      side.agent !== undefined ||
      hasHook(side, 'tool_call_done', 'after_create_message', 'after_update_message')
    const joinsNext = isLast && !isActedOn ? true : undefined
    if (!(await this.#commit('call_end', call, { ...write, joinsNext }))) return
    await afterSpawn(drain, plan, side)
    if (told === outcome) await afterStored(drain, side, own?.events ?? [])
    const done = [seenCall(call), seenResult(call, told)]
    await runHooks(drain, { side, name: 'tool_call_done', args: () => done }, undefined)
  }

  /** Commits that a call has to wait (its interrupt), and the child that it waits for. */
  async #wait(call: ToolCall, request: DeferRequest): Promise<void> {
    const { drain, side, plan } = this
    const { environment, state } = drain
    const { toolCallId } = call
    // Only the runtime itself asks whether an interrupted call had its effect (`in_doubt`). A tool that defers its
    // call with this kind asks a question of its own.
    const kind = request.kind === 'in_doubt' ? 'input' : request.kind
    const isOpen = findCall(state, toolCallId)?.call.interruptId !== undefined
    if (isOpen && kind !== 'approval') return
    const ttl = kind === 'child' ? undefined : environment.limits.interruptTtlMs
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
      expiresAt:
        ttl === undefined ? undefined : new Date(environment.clock.now() + ttl).toISOString(),
    }
    const { events = [], others = [], blobs = [] } = plan ?? {}
    const write = { events: [...events, opened], others, blobs, isProgress: true }
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
      await this.drain.commit('call_end', { events: [ended], isProgress: true })
      return false
    }
  }
}

/** Whether the call waited for an approval. */
function isReviewed(state: KernelState, toolCallId: string): boolean {
  const interruptId = findCall(state, toolCallId)?.call.interruptId
  if (interruptId === undefined) return false
  return state.interrupts.get(interruptId)?.interrupt.kind === 'approval'
}

/** Returns the last position up to `index` at which UTF-8 text can be cut. */
function edgeOf(bytes: Uint8Array, index: number): number {
  let edge = Math.min(index, bytes.length)
  while (edge > 0 && edge < bytes.length && (bytes[edge]! & 0xc0) === 0x80) edge--
  return edge
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
