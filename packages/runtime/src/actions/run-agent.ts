import type { GenerateResult } from '@skein/agents'
import {
  type CallPorts,
  isAssistantMessage,
  type LLMRequest,
  type Message,
  messageFromJSON,
  messageToJSON,
  type Middleware,
  type StreamEvent,
  type TokenUsage,
  type Tool,
  type ToolCall,
  type ToolOutcome,
} from '@skein/ai'
import { deriveTool } from '@skein/ai/engine'
import { messageEvents } from '@skein/ai/middleware'
import { canonicalJson, messageOf, sha256Hex, SkeinError } from '@skein/base'
import { endEvent } from '../calls/call-events.ts'
import { cutSignal, readCut } from '../calls/cut-signal.ts'
import { CallSettledError, HELD_BACK, RunningCall } from '../calls/running-call.ts'
import { settledCalls } from '../calls/settled-calls.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { RuntimeError } from '../contract/error.ts'
import type { InferenceRecorded } from '../contract/event.ts'
import { compactIfLong } from '../model/compact.ts'
import { infer } from '../model/infer.ts'
import { answerableView } from '../model/request-messages.ts'
import { viewOf } from '../model/view.ts'
import { type CallState, cutOf, type Entry, isWaiting, openCalls } from '../state/kernel-state.ts'
import type { Redactor } from '../secrets/vault.ts'
import { endByTool, limitOf } from '../state/step-decision.ts'
import { isWrite, mustFollow } from '../state/calls-to-run.ts'
import { endStep } from './end-step.ts'
import { endSession } from '../session/end-session.ts'

/**
 * Continues the turn of a side of the conversation that is an `agent()` of `@skein/agents`.
 *
 * The agent's strategy is ordinary code whose progress cannot be stored, so it is made durable by running
 * it again. It starts with the conversation as it was at the start of the turn, and its requests are
 * answered from the log as long as the log has an answer. The first inference that is not in the log is
 * sent to the model and committed like every inference of the runtime; the first call without an outcome runs
 * like every call: a policy judges it, and it is recorded. When the thread has to wait (for an approval, for a
 * vendor, because another action is due), this run of the strategy is dropped; later it is repeated.
 */
export async function runStrategy(context: DrainContext, side: ResolvedSide): Promise<void> {
  const { state } = context
  const turn = state.session!.turn! // `next` returns `run_agent` only within a turn
  const seq = state.seq
  if (turn.inferences.length === 0) {
    await compactIfLong(context, side)
    await answerableView(context, side) // adds a note if there is no message to answer
  }
  const lastAnswer = turn.step?.entry === undefined ? undefined : state.entries[turn.step.entry]
  const outcomes = lastAnswer
    ? await settledCalls(context, side, lastAnswer)
    : new Map<string, ToolOutcome>()
  const end = await new StrategyReplay(context, side, outcomes).run()
  if (end.type === 'cut') return readCut(context)
  if (context.signal.aborted || end.type === 'left' || cutOf(state)) return
  if (end.type === 'failed') {
    const isOurs = end.error instanceof RuntimeError && end.error.code === 'AGENT_DIVERGED'
    const reason = isOurs ? 'agent_diverged' : 'agent_error'
    const hint = SkeinError.is(end.error) ? end.error.hint : undefined
    return endSession(context, { outcome: 'failed', reason, message: messageOf(end.error), hint })
  }
  const open = openCalls(state)
  // A call that waited may have got its answer while another call of this run was still running. If the log
  // has any new event, `next` decides again whether the thread parks or the strategy is run again.
  if (state.seq !== seq && open.some(({ interruptId }) => interruptId !== undefined)) return
  if (open.some((call) => isWaiting(state, call))) {
    const message = `The agent of ${side.label} did nothing with an answer that its call waited for.`
    return endSession(context, { outcome: 'failed', reason: 'agent_error', message })
  }
  if (open.length > 0) {
    // The strategy stopped early, e.g. at one of its limits. The open calls get a result, because vendors
    // refuse a history with calls that have none.
    const message = 'The agent ended its turn without running this call.'
    const events = open.map(({ call }) => endEvent(context, call, { type: 'error', message }))
    await context.commit('call_end', { kind: 'outcome', events })
  }
  const session = state.session! // the session is still open here; it ends below
  const { limits } = context.environment
  const entry = state.entries[session.turn?.step?.entry ?? -1]
  const facts = { state, session, agent: context.agent, side, limits }
  const { text } = end.result.turn.response
  const decision = entry && endByTool({ ...facts, entry })
  await endStep(context, side, decision ?? { type: 'yield', reason: 'response', text })
}

/**
 * How a run of the strategy ended. `left` means that the run was dropped, because the thread has to
 * wait or something else has to be done for it first.
 */
type RunEnd =
  | { readonly type: 'done'; readonly result: GenerateResult }
  | { readonly type: 'failed'; readonly error: unknown }
  | { readonly type: 'left' }
  /** A new message has cut the turn. */
  | { readonly type: 'cut' }

/** Loaded by the first thread that needs it, and kept. */
let agents: Promise<typeof import('@skein/agents')> | undefined

/** Runs the strategy once, from the start of the turn. */
class StrategyReplay {
  readonly #context: DrainContext
  readonly #side: ResolvedSide
  readonly #settled: ReadonlyMap<string, ToolOutcome>
  readonly #history: readonly Message[]
  /** Recorded inferences that this run of the strategy has not requested yet. */
  readonly #unserved: InferenceRecorded[]
  /** Answers of models, as entries of the conversation, that this run has returned to the strategy, in order. */
  readonly #served: Entry[] = []
  readonly #base: number
  readonly #controller = new AbortController()
  #leave!: (end: RunEnd) => void
  /**
   * An error of the runtime itself that was thrown inside the run; it ends the work on the thread like an
   * error of any other action.
   */
  #fault: { readonly error: unknown } | undefined
  /** Calls of this run that were started and have neither ended nor begun to wait. */
  readonly #running = new Set<CallState>()
  /** The running calls that the gate has judged. */
  readonly #admitted = new Set<CallState>()
  /** Calls that were not started, because an earlier call of the same message waits for a person or a child. */
  readonly #held = new Set<CallState>()
  /** Functions that resume the calls that wait until a running call has ended. */
  readonly #followers: (() => void)[] = []
  /** Aborts with the work on the thread, and when a message cuts the turn. */
  readonly #cut: ReturnType<typeof cutSignal>
  /** A promise that settles when the latest request to the model has ended; the next request waits for it. */
  #asking: Promise<unknown> = Promise.resolve()

  constructor(
    context: DrainContext,
    side: ResolvedSide,
    settled: ReadonlyMap<string, ToolOutcome>,
  ) {
    const { state } = context
    const { inferences } = state.session!.turn! // a strategy runs only within a turn
    this.#context = context
    this.#cut = cutSignal(context)
    this.#side = side
    this.#settled = settled
    this.#unserved = [...inferences]
    this.#base = inferences[0]?.history ?? state.entries.length
    this.#history = viewOf(state, side.side, side.prompt, this.#base)
  }

  async run(): Promise<RunEnd> {
    const { signal, environment } = this.#context
    const { ids, clock } = environment
    const { agent: defineAgent, AgentState } = await (agents ??= import('@skein/agents'))
    const earlyEnd = new Promise<RunEnd>((resolve) => (this.#leave = resolve))
    const { llmMiddleware: own = [], ...options } = this.#side.agent!
    const runner = defineAgent({
      ...options,
      tools: this.#tools(),
      // The agent's own middleware wraps only the requests that are really sent (in `infer`), not the
      // answers that come from the log. So only its hooks for tool calls are added here.
      llmMiddleware: [
        { name: 'journal', wrapInference: (request) => this.#infer(request) },
        ...own.map(({ name, onToolCall, onToolResult }): Middleware => {
          return { name, onToolCall, onToolResult }
        }),
      ],
      open: (call) => this.#open(call),
      toolStrategy: {
        ...options.toolStrategy,
        stopGraceMs: environment.limits.stopGraceMs,
      },
      checkpoints: undefined, // not needed, because every answer is in the log
      sessionId: this.#context.head.id,
      ids,
      clock,
    })
    const state = AgentState.initial({ ids }).withMessages(this.#history.slice(0, -1))
    const run = runner
      .generate(this.#history.at(-1)!, state, {
        signal: AbortSignal.any([this.#cut.signal, this.#controller.signal]),
      })
      .then(
        (result): RunEnd => ({ type: 'done', result }),
        (error: unknown): RunEnd => ({ type: 'failed', error }),
      )
    const end = await Promise.race([run, earlyEnd])
    this.#controller.abort()
    await Promise.all([run, this.#asking])
    this.#cut.end()
    if (this.#cut.signal.aborted && !signal.aborted) return { type: 'cut' }
    if (this.#fault) {
      if (this.#fault.error instanceof CallSettledError || signal.aborted) return { type: 'left' }
      throw this.#fault.error
    }
    if (end.type === 'done' && this.#unserved.length > 0)
      return { type: 'failed', error: this.#diverged('ended before it asked') }
    return end
  }

  /**
   * Returns the tools of the `agent()`, with the order (`sequential`, `dependsOn`) that it declared for them.
   */
  #tools(): readonly Tool[] {
    const { agent } = this.#side
    return this.#context.tools(this.#side).map((tool) => {
      const { sequential, dependsOn } = agent!.tools.find(({ name }) => name === tool.name) ?? {}
      return deriveTool(tool, { sequential, dependsOn })
    })
  }

  async *#infer(request: LLMRequest): AsyncGenerator<readonly StreamEvent[]> {
    const digest = this.#digest(request)
    const place = this.#unserved.findIndex((one) => one.request === digest)
    if (place >= 0) {
      const [known] = this.#unserved.splice(place, 1)
      yield this.#serve(known!)
      return
    }
    if (this.#unserved.length > 0) {
      const error = this.#diverged('asked something else where')
      yield await this.#end({ type: 'failed', error })
      return
    }
    const asking = this.#asking.then(() => this.#ask(request, digest))
    this.#asking = asking
    const inference = await asking
    yield inference ? this.#serve(inference) : await this.#end({ type: 'left' })
  }

  /**
   * Ends the run from inside a request of the strategy. The returned promise never settles, so the
   * strategy does not continue; the run is aborted immediately.
   */
  #end(end: RunEnd): Promise<never> {
    this.#leave(end)
    return new Promise(() => {})
  }

  /**
   * Asks the model and commits the answer. Returns undefined if no answer was committed, because the
   * work on the thread was aborted or failed, or something else has to be done first.
   */
  async #ask(request: LLMRequest, digest: string): Promise<InferenceRecorded | undefined> {
    const context = this.#context
    const side = this.#side
    const { signal, environment } = context
    const { limits } = environment
    try {
      if (signal.aborted || this.#controller.signal.aborted) return undefined
      if (context.nextAction().type !== 'run_agent') return undefined
      const session = context.state.session! // `run_agent` is returned only within a session
      const limit = limitOf({ session, side, limits })
      if (limit) {
        await endStep(context, side, limit)
        return undefined
      }
      const before = session.turn!.inferences.length
      const messages = request.messages.map((message) => this.#asLogged(message))
      await infer(context, side, {
        request: { ...request, messages },
        record: { request: digest, history: this.#base },
        isPrivate: this.#isPrivate(request),
      })
      return context.state.session?.turn?.inferences[before]
    } catch (error) {
      this.#fault ??= { error }
      return undefined
    }
  }

  /**
   * Returns the stream events of an answer in the log. Even an answer that was committed just now is
   * read back from the log, so that every run gets the same.
   */
  #serve({ messageId, message, stopReason, usage }: InferenceRecorded): readonly StreamEvent[] {
    const { entries, places } = this.#context.state
    const entry = entries[places.get(messageId ?? '') ?? -1]
    if (entry) this.#served.push(entry)
    const answer = entry?.message ?? messageFromJSON(message!)
    if (!isAssistantMessage(answer)) throw new TypeError('An answer is an assistant message.')
    return messageEvents(answer, { stopReason, usage: usage as unknown as TokenUsage })
  }

  /**
   * Returns what judges and records a call: if the log has its outcome, that outcome; otherwise the
   * policy check, the records and the review that every call of the runtime has.
   */
  #open(call: ToolCall): CallPorts {
    const { toolCallId, toolName } = call
    const isIt = (one: { readonly call: ToolCall }): boolean => one.call.toolCallId === toolCallId
    const entry = this.#served.findLast(({ calls }) => calls.some(isIt))
    const callState = entry?.calls.find(isIt)
    if (!entry || !callState)
      throw new RuntimeError(
        `The agent ran a call of "${toolName}" that is no part of the conversation.`,
        {
          code: 'TOOL_NOT_ALLOWED',
          hint: 'A strategy may run only calls of an inference that offered the tools of the agent.',
        },
      )
    const settled = callState.outcome ?? this.#settled.get(toolCallId)
    if (settled) return { settled }
    this.#running.add(callState)
    const running = new RunningCall(this.#context, this.#side, call, this.#cut.signal)
    const { gate, journal, context, parsed } = running
    return {
      context,
      parsed,
      gate: {
        admit: async (admitted) => {
          if (!(await this.#isHeld(entry, callState))) {
            this.#admitted.add(callState)
            return this.#noted(gate.admit(admitted))
          }
          // A person can be asked before the call's turn only if no call that was judged is still running.
          const mayAsk = this.#admitted.size === 0 && running.mayAskAhead(entry, callState)
          if (mayAsk) {
            const admission = await this.#noted(running.askAhead(admitted))
            if (!running.isHeldBack) return admission
          }
          running.isHeldBack = true
          this.#held.add(callState)
          return HELD_BACK
        },
        settle: (ended, outcome) => this.#noted(gate.settle(ended, outcome)),
      },
      journal: {
        commit: async (effect) => {
          await this.#noted(journal.commit(effect))
          if (effect.type !== 'call_end') return
          this.#running.delete(callState)
          this.#admitted.delete(callState)
          for (const wake of this.#followers.splice(0)) wake()
        },
      },
      settlesAfter: (reason) => running.settlesAfter(reason),
      late: (ended, outcome) => running.late(ended, outcome),
      review: async (ended, outcome) => {
        const review = await this.#noted(running.review(ended, outcome))
        // The strategy must get the result exactly as the log will have it (without secrets). Otherwise
        // the next run, which reads the log, would differ from this one.
        return withoutSecrets(review, this.#context.redactor())
      },
    }
  }

  /**
   * Waits until the earlier calls of the message that the strategy has started let this call start (see
   * `mustFollow`). Returns true if the call must not start now, because an earlier call waits for a person or a
   * child; the strategy is run again when that earlier call has its outcome. Calls that the strategy has not
   * started yet (`sequential`, `dependsOn` of UAP §8.5) are not waited for, because they may wait for this call.
   */
  async #isHeld(entry: Entry, call: CallState): Promise<boolean> {
    const side = this.#side
    const earlier = entry.calls.slice(0, entry.calls.indexOf(call))
    const preceding = earlier.filter((one) => mustFollow(side, call.call, one.call))
    while (preceding.some((one) => this.#running.has(one)))
      await new Promise<void>((resolve) => this.#followers.push(resolve))
    if (!isWrite(side, call.call))
      return earlier.some((one) => this.#held.has(one) && isWrite(side, one.call))
    const { state } = this.#context
    return earlier.some((one) => this.#held.has(one) || isWaiting(state, one))
  }

  /**
   * Remembers an error that the runtime threw, because the strategy may catch the error or throw another one instead.
   */
  async #noted<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      this.#fault ??= { error }
      throw error
    }
  }

  /**
   * Returns a hash of the parts of a request that the strategy chose: its own messages, the answers and
   * results between them, and whether it offers tools and a structure. The conversation before the turn and
   * the texts of the agent (system, descriptions) are left out, because they may be corrected while a thread
   * waits.
   */
  #digest({ messages, tools, structure }: LLMRequest): string {
    const ids = new Set(this.#history.map(({ id }) => id))
    const own = messages
      .filter(({ id }) => !ids.has(id))
      .map((message) => {
        if (message.type === 'user') return { user: messageToJSON(message).content }
        if (message.type === 'tool_result')
          return { results: message.results.map(({ toolCallId }) => toolCallId) }
        return { calls: (message.toolCalls ?? []).map(({ toolCallId }) => toolCallId) }
      })
    const hasTools = tools.length > 0
    const hasStructure = structure !== undefined
    return sha256Hex(canonicalJson({ own, hasTools, hasStructure }))
  }

  /**
   * Whether the answer is meant for the strategy alone and not shown in the conversation: the request
   * ends with a prompt that the strategy wrote itself (UAP: `metadata.uap.synthetic`), its phase is
   * neither `act` nor `execute`, and it offers none of the agent's tools.
   */
  #isPrivate({ messages, tools }: LLMRequest): boolean {
    const { synthetic, phase } = messages.at(-1)?.metadata?.['uap'] ?? {}
    if (synthetic !== true || phase === 'act' || phase === 'execute') return false
    const own = new Set(this.#side.prompt.tools.map(({ name }) => name))
    return !tools.some(({ name }) => own.has(name))
  }

  /**
   * Returns the message in the log of which the given message is a copy, so that the stored request can
   * refer to it by id. Returns the given message if the log has no such message.
   */
  #asLogged(message: Message): Message {
    if (message.type === 'user') return message
    if (message.type === 'tool_result') {
      const ids = message.results.map(({ toolCallId }) => toolCallId).join()
      const same = this.#served.findLast(
        ({ calls, results }) => results && calls.map(({ call }) => call.toolCallId).join() === ids,
      )
      return same?.results ?? message
    }
    const key = contentKey(message)
    return this.#served.findLast((entry) => contentKey(entry.message) === key)?.message ?? message
  }

  #diverged(what: string): RuntimeError {
    const { name = 'loop' } = this.#side.agent!.execution ?? {}
    return new RuntimeError(
      `The strategy "${name}" of ${this.#side.label} ${what} the log has an answer to an earlier request.`,
      {
        code: 'AGENT_DIVERGED',
        hint: 'A strategy must ask the same when it is run again: no clock, no random numbers, no state of its own outside the run.',
      },
    )
  }
}

function withoutSecrets(outcome: ToolOutcome, redactor: Redactor | undefined): ToolOutcome {
  if (!redactor || outcome.type === 'deferred') return outcome
  if (outcome.type === 'done') return { ...outcome, result: redactor.json(outcome.result) }
  if (outcome.type === 'denied') return { ...outcome, reason: redactor.text(outcome.reason) }
  return { ...outcome, message: redactor.text(outcome.message) }
}

const contentKeys = new WeakMap<Message, string>()

/** Returns the JSON of a message without its id and time, to compare contents. */
function contentKey(message: Message): string {
  const known = contentKeys.get(message)
  if (known !== undefined) return known
  const { id: _id, timestamp: _timestamp, ...rest } = messageToJSON(message)
  const key = canonicalJson(rest)
  contentKeys.set(message, key)
  return key
}
