import { type JsonSchema, linkAbort, isPromise, type MaybePromise } from '@skein/base'
import { AbortRace, letGo } from '../contract/abort-race.ts'
import { type EmitEvents, readerLeft } from '../contract/event-reader.ts'
import { type DataCheck, mismatchError, repairText, toStructure } from './structured-answer.ts'
import { fitRequest } from './fit-request.ts'
import {
  cancelledError,
  type ErrorOrigin,
  isUPPError,
  toUPPError,
  type UPPError,
} from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { MessageFold } from './fold-message.ts'
import type { AssistantMessage, Message } from '../contract/message.ts'
import type { Middleware } from '../contract/middleware.ts'
import type { BoundLLMModel, LLMRequest } from '../contract/provider.ts'
import { MiddlewareRun } from './run-middleware.ts'
import { strategyHook } from '../tools/call.ts'
import { settleTools, type ToolBatch } from '../tools/executor.ts'
import { succeededTools } from '../tools/succeeded-tools.ts'
import type { Tool, ToolUseStrategy } from '../contract/tool.ts'
import { TurnDraft, completed } from './turn-draft.ts'
import type { Turn } from '../contract/turn.ts'
import { toObjectEvents } from './message-events.ts'
import { withVendorCalls } from './vendor-calls.ts'

/** One `generate`, `stream` or `infer` call. */
export interface TurnTask {
  readonly model: BoundLLMModel
  /**
   * The request. The object and its list of messages belong to this call alone, because hooks may edit them.
   */
  readonly request: Omit<LLMRequest, 'signal'>
  /** The controller of this call alone; the request uses its signal. */
  readonly controller: AbortController
  /** The caller's signals; each of them aborts the call while it runs. */
  readonly signals: readonly (AbortSignal | undefined)[]
  /** The messages at the end of `request.messages` that are new in this call. */
  readonly inputs: readonly Message[]
  /** Throws the reason why the inputs cannot be sent. The call fails with it, as with any other error. */
  readonly refuse?: () => never
  readonly strategy: ToolUseStrategy
  readonly middleware: readonly Middleware[]
  readonly streaming: boolean
  /** Returns what a tool call runs with: a gate (may refuse it), a journal (records it durably) and a context. */
  readonly open?: ToolBatch['open']
  readonly state?: Map<string, unknown> | undefined
  /** The number of the first inference, as `onCycle` gets it. Default 1. */
  readonly cycle?: number | undefined
  /**
   * Called with true when the model's last answer is complete, before its last events are yielded; with false
   * if the model is then asked for another answer.
   */
  readonly onFinal?: (isFinal: boolean) => void
  /** Checks the data of a structured answer against its schema. */
  readonly check?: DataCheck | undefined
  /** How many times the model is asked again after an answer that is not JSON or does not pass `check`. */
  readonly repairs?: number | undefined
}

const DEFAULT_ITERATIONS = 10
/** The largest number of times that a turn continues after a vendor has paused it (stop reason `pause`). */
const MAX_PAUSES = 10

/**
 * Runs the tool loop (UPP §5.5): an inference, the tools it requests, and the next inference. Reports batches
 * of events as they arrive, if `emit` is given, and returns the turn. `generate` waits for it, `stream` reads its events
 * on demand,
 * agents run one inference at a time.
 */
export async function runTurn(task: TurnTask, emit?: EmitEvents<StreamEvent>): Promise<Turn> {
  const call = new Call(task)
  const { run, race, draft } = call
  try {
    if (!run.isEmpty || task.refuse) await race.run(run.start(task.refuse))
    race.throwIfAborted()
    const base = call.prepare()
    let answer: Turn | undefined
    while (!answer) {
      const fold = draft.beginMessage()
      const request = run.isEmpty ? call.request(base) : await call.cycle(base)
      const take = (batch: readonly StreamEvent[]): MaybePromise<void> => {
        const events = fold.push(batch)
        if (fold.isFinal) task.onFinal?.(true)
        if (emit) return call.show(request.structure ? toObjectEvents(events) : events, emit)
      }
      if (call.isPlain) {
        const reading = take(await race.run(call.complete(request)))
        if (reading) await reading
      } else {
        const events = call.open(request)
        let isDone = false
        try {
          for (;;) {
            const step = await race.run(events.next())
            if ((isDone = step.done === true)) break
            const reading = take(step.value)
            if (reading) await reading
          }
        } finally {
          if (!isDone) void letGo(events)
        }
      }
      const message = draft.endMessage(fold)
      const continues = message.hasToolCalls
        ? await call.runTools(message, fold, emit)
        : call.isPaused()
      if (!continues) {
        const judgement = call.judge(request.structure)
        answer = isPromise(judgement) ? await judgement : judgement
      }
    }
    return run.isEmpty ? answer : await race.run(run.end(answer))
  } catch (error) {
    // A reader that leaves early cancels the call, and so the middleware sees it.
    if (error === readerLeft) await call.abandon()
    throw error === readerLeft ? error : await call.fail(error)
  } finally {
    call.dispose()
  }
}

/** The state and operations of one turn; `runTurn` decides their order. */
class Call {
  readonly run: MiddlewareRun
  readonly race: AbortRace
  readonly draft: TurnDraft
  readonly #task: TurnTask
  readonly #signal: AbortSignal
  readonly #unlink: () => void
  readonly #origin: ErrorOrigin
  readonly #source: (request: LLMRequest) => AsyncIterable<readonly StreamEvent[]>
  #tools: readonly Tool[] = []
  #params: LLMRequest['params'] = {}
  #succeeded: Set<string> | undefined
  #pauses = 0
  #repairs = 0

  constructor(task: TurnTask) {
    const { model, controller, inputs, middleware, streaming, state } = task
    const { signal } = controller
    const request: LLMRequest = { ...task.request, signal }
    const { clock } = request
    this.#task = task
    this.#signal = signal
    this.#unlink = linkAbort(task.signals, controller)
    this.#origin = { provider: model.provider, modality: 'llm' }
    this.run = new MiddlewareRun(middleware, {
      modality: 'llm',
      model,
      streaming,
      request,
      clock,
      state,
    })
    this.race = new AbortRace(signal, () => this.cancelled())
    this.draft = new TurnDraft(inputs, request, this.#origin)
    this.#source = this.run.wrap((given) => {
      // `onCycle` or `wrapInference` may have changed it
      const asked = this.run.isEmpty ? given : this.#fitted(given)
      return streaming ? model.stream(asked) : completed(model, asked)
    })
  }

  /** Returns the request of the whole call after the middleware's changes, and checks it. */
  prepare(): LLMRequest {
    const { request: given } = this.#task
    const edited = this.run.context.request as LLMRequest // the request of an LLM call
    const { structure } = edited
    const request: LLMRequest = {
      ...edited,
      ...(structure && { structure: toStructure(structure, this.#origin) }),
      signal: this.#signal,
      clock: given.clock,
      ids: given.ids,
    }
    return this.#fitted(request)
  }

  /** Returns the request as the model can take it; throws if it cannot be sent. */
  #fitted(given: LLMRequest): LLMRequest {
    const { model, streaming } = this.#task
    const { request, warnings } = fitRequest(given, model, streaming)
    if (warnings.length > 0) this.draft.warn(warnings)
    return request
  }

  /** Returns the request of the next inference: the messages so far. */
  request(base: LLMRequest): LLMRequest {
    if (base.tools.some((tool) => tool.dependsOn)) this.#succeeded ??= succeededTools(base.messages)
    return { ...base, messages: base.messages.concat(this.draft.produced) }
  }

  /** Returns the request of the next inference after the middleware's changes. */
  async cycle(base: LLMRequest): Promise<LLMRequest> {
    const cycle = this.draft.cycles + (this.#task.cycle ?? 1)
    const request = await this.race.run(this.run.cycle(this.request(base), cycle))
    const { structure } = request
    if (structure === undefined || structure === base.structure) return request
    return { ...request, structure: toStructure(structure, this.#origin) }
  }

  /** Whether an answer comes whole and nothing wraps the inference, so that its events need no iterator. */
  get isPlain(): boolean {
    return this.run.isEmpty && !this.#task.streaming
  }

  /** Asks for a whole answer. */
  complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    this.#begin(request)
    return Promise.resolve(this.#task.model.complete(request))
  }

  /** Starts an inference. */
  open(request: LLMRequest): AsyncIterator<readonly StreamEvent[]> {
    this.#begin(request)
    return this.#source(request)[Symbol.asyncIterator]()
  }

  #begin({ tools, params }: LLMRequest): void {
    this.race.throwIfAborted()
    this.#tools = tools
    this.#params = params
  }

  /** Runs the calls of a message. Returns true when the model should be called again. */
  async runTools(
    message: AssistantMessage,
    fold: MessageFold,
    emit: EmitEvents<StreamEvent> | undefined,
  ): Promise<boolean> {
    const isAtLimit = this.#isAtLimit()
    if (isPromise(isAtLimit) ? await isAtLimit : isAtLimit) return false
    const result = await settleTools(this.#batch(message, fold), (events) => {
      this.draft.noteTools(events)
      if (emit) return this.show(events, emit)
    })
    for (const { call, outcome } of result.settled)
      if (outcome.type === 'done') this.#succeeded?.add(call.toolName)
    return this.draft.endTools(result)
  }

  /** Reports events after the stream hooks have changed them. */
  show(events: readonly StreamEvent[], emit: EmitEvents<StreamEvent>): MaybePromise<void> {
    const newEvents = this.run.transform(events)
    return isPromise(newEvents) ? this.race.run(newEvents).then(emit) : emit(newEvents)
  }

  /**
   * Returns the turn if its data fits the schema. Otherwise adds a message that tells the model what is
   * wrong, and returns undefined; throws if no `repairs` are left.
   */
  judge(structure: JsonSchema | undefined): MaybePromise<Turn | undefined> {
    const { model } = this.#task
    // Only a structured answer can fail.
    return structure ? this.#judgeData(structure) : this.draft.turn(structure, model.readData)
  }

  async #judgeData(structure: JsonSchema): Promise<Turn | undefined> {
    const { check, repairs = 0, onFinal, model } = this.#task
    const { draft } = this
    try {
      const turn = draft.turn(structure, model.readData)
      if (!check || !('data' in turn)) return turn
      const issues = await this.race.run(check(turn.data))
      if (issues.length === 0) return turn
      throw mismatchError(issues, this.#origin)
    } catch (error) {
      const isWrong = isUPPError(error) && error.code === 'INVALID_RESPONSE'
      // An answer that was cut off, refused or filtered would end the same way again.
      if (!isWrong || draft.stopReason !== 'end_turn' || this.#repairs >= repairs) throw error
      this.#repairs++
      onFinal?.(false)
      draft.askAgain(repairText(error.issues))
      return undefined
    }
  }

  isPaused(): boolean {
    return this.draft.stopReason === 'pause' && ++this.#pauses <= MAX_PAUSES
  }

  cancelled(): UPPError {
    return cancelledError(this.#signal, this.#origin)
  }

  /** Ends a call whose reader has left. */
  async abandon(): Promise<void> {
    this.#task.controller.abort()
    await this.fail(this.cancelled())
  }

  dispose(): void {
    this.race.dispose()
    this.#unlink()
  }

  async fail(error: unknown): Promise<UPPError> {
    const failure = toUPPError(error, this.#origin)
    failure.turn = this.draft.partial()
    return this.run.fail(failure)
  }

  /** True when no more tools may run. The turn then ends with open calls, unless `onMaxIterations` throws. */
  #isAtLimit(): MaybePromise<boolean> {
    const { strategy, model } = this.#task
    const limit = strategy.maxIterations ?? DEFAULT_ITERATIONS
    if (this.draft.rounds < limit) return false
    if (limit <= 0) return true // with a limit of 0, the caller runs the tools
    if (!strategy.onMaxIterations) return true
    return strategyHook(model, 'onMaxIterations', async () => {
      await strategy.onMaxIterations?.(this.draft.rounds)
      return true
    })
  }

  #batch(message: AssistantMessage, fold: MessageFold): ToolBatch {
    const { request, strategy, model, open } = this.#task
    return {
      calls: message.toolCalls ?? [],
      tools: withVendorCalls(this.#tools, message.toolCalls ?? [], this.#params),
      signal: this.#signal,
      clock: request.clock,
      strategy,
      open,
      indexes: fold.callIndexes,
      hooks: toolHooks(this.run),
      provider: model.provider,
      succeeded: this.#succeeded,
      onCancel: (settled) => this.draft.noteCancelled(settled),
    }
  }
}

/** Returns the middleware hooks of a batch; undefined without middleware. */
export function toolHooks(run: MiddlewareRun): ToolBatch['hooks'] {
  if (run.isEmpty) return undefined
  return {
    onToolCall: (call) => run.toolCall(call),
    onToolResult: (call, result, outcome) => run.toolResult(call, result, outcome),
  }
}
