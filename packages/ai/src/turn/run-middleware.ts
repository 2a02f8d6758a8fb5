import { type Clock, isPromise } from '@skein/base'
import {
  ErrorCode,
  type ErrorOrigin,
  hookError,
  type Modality,
  toUPPError,
  type UPPError,
} from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type {
  AnyRequest,
  AnyResponse,
  Middleware,
  MiddlewareContext,
  StreamContext,
} from '../contract/middleware.ts'
import type { LLMRequest, ProviderConfig } from '../contract/provider.ts'
import type { ToolCall, ToolOutcome } from '../contract/tool.ts'
import { redactUPPError } from '../transport/redact.ts'
import { secretsIn } from '../transport/config-secrets.ts'
import type { Turn } from '../contract/turn.ts'

/** The description of one call of any modality that its middleware gets. */
export interface MiddlewareCall {
  readonly modality: Modality
  readonly model: Pick<MiddlewareContext, 'modelId' | 'provider' | 'readData' | 'identity'>
  readonly streaming: boolean
  /** The request; it must not be shared with other calls, because hooks may edit it. */
  readonly request: AnyRequest
  readonly clock: Clock
  /** State shared by several calls that belong together. Default: a new map for this call. */
  readonly state?: Map<string, unknown> | undefined
}

/**
 * Runs the hooks of one call, in the order of UPP §10.5. The caller runs `start`, sends `context.request`,
 * then runs `end`, or `fail` after any error: exactly one of `end` and `fail` completes.
 */
export class MiddlewareRun {
  readonly context: MiddlewareContext
  readonly #middleware: readonly Middleware[]
  readonly #reversed: readonly Middleware[]
  readonly #transformers: readonly Middleware[]
  readonly #streamContext: StreamContext
  readonly #origin: ErrorOrigin
  readonly #clock: Clock
  readonly #config: ProviderConfig

  constructor(middleware: readonly Middleware[], call: MiddlewareCall) {
    const { modality, model, streaming, request, clock, state = new Map() } = call
    const { modelId, provider, readData, identity } = model
    this.context = {
      modality,
      modelId,
      provider,
      streaming,
      request,
      state,
      readData,
      identity,
      startTime: clock.now(),
    }
    this.#middleware = middleware
    this.#reversed = middleware.toReversed()
    this.#transformers = streaming ? middleware.filter((one) => one.onStreamEvent) : []
    this.#streamContext = Object.freeze({ state })
    this.#origin = { provider, modality }
    this.#clock = clock
    this.#config = request.config
  }

  /** True if there is no middleware, so that no hook needs to be awaited. */
  get isEmpty(): boolean {
    return this.#middleware.length === 0
  }

  /**
   * Runs the hooks before the request; afterwards `context.request` is the request to send. `check` throws if
   * the call must be refused; it is called before `onRequest`, which needs a valid request, and after it.
   */
  async start(check?: () => void): Promise<void> {
    const { context } = this
    await this.#each('onStart', this.#middleware, (one) => one.onStart?.(context))
    check?.()
    await this.#each('onRequest', this.#middleware, (one) => one.onRequest?.(context))
    check?.()
  }

  /** Runs `onCycle` and returns the request of one inference of the tool loop; `cycle` starts at 1. */
  async cycle(request: LLMRequest, cycle: number): Promise<LLMRequest> {
    let current = request
    await this.#each('onCycle', this.#middleware, async (one) => {
      current = (await one.onCycle?.(current, cycle, this.context)) ?? current
    })
    return current
  }

  /** Wraps the inference in all `wrapInference` hooks; the first middleware is the outermost. */
  wrap(
    infer: (request: LLMRequest) => AsyncIterable<readonly StreamEvent[]>,
  ): (request: LLMRequest) => AsyncIterable<readonly StreamEvent[]> {
    let chain = infer
    for (const one of this.#reversed) {
      if (!one.wrapInference) continue
      const next = chain
      chain = (request) => one.wrapInference!(request, next, this.context)
    }
    return chain
  }

  /** Applies the stream hooks to events. Returns the same array when no middleware has such a hook. */
  transform(events: readonly StreamEvent[]): readonly StreamEvent[] | Promise<StreamEvent[]> {
    return this.#transformers.length === 0 ? events : this.#transformAll(events)
  }

  /** Ends a successful call. Returns the response, which hooks may have changed (UPP §10.1). */
  async end<R extends AnyResponse>(response: R): Promise<R> {
    const { context } = this
    context.response = response
    context.endTime = this.#clock.now()
    if (this.isEmpty) return response
    if (context.streaming)
      await this.#each('onStreamEnd', this.#middleware, (one) =>
        one.onStreamEnd?.(this.#streamContext),
      )
    await this.#each('onResponse', this.#reversed, (one) => one.onResponse?.(context))
    if (context.modality === 'llm')
      await this.#each('onTurn', this.#reversed, (one) =>
        one.onTurn?.(context.response as Turn, context),
      )
    await this.#each('onEnd', this.#reversed, (one) => one.onEnd?.(context))
    return context.response as R // a hook may replace the response only with one of the same kind
  }

  /** Reports a failure to every middleware and returns the error to throw. Never throws itself. */
  async fail(error: unknown): Promise<UPPError> {
    const { context } = this
    // Secrets are removed here too: the transport did so for its own errors, but providers and hooks may not
    // have. A hook may have replaced the config, or left none.
    const configs = [this.#config, context.request?.config ?? {}]
    const failure = redactUPPError(toUPPError(error, this.#origin), configs.flatMap(secretsIn))
    context.endTime ??= this.#clock.now()
    for (const one of this.#middleware) {
      const isAbort = failure.code === ErrorCode.Cancelled && one.onAbort !== undefined
      try {
        await (isAbort ? one.onAbort?.(failure, context) : one.onError?.(failure, context))
      } catch {
        // UPP-103: an error in onError must not mask the error it was called with.
      }
    }
    return failure
  }

  async toolCall(call: ToolCall): Promise<void> {
    await this.#each('onToolCall', this.#middleware, (one) => one.onToolCall?.(call, this.context))
  }

  async toolResult(call: ToolCall, result: unknown, outcome: ToolOutcome): Promise<void> {
    await this.#each('onToolResult', this.#middleware, (one) =>
      one.onToolResult?.(call, result, this.context, outcome),
    )
  }

  async #transformAll(events: readonly StreamEvent[]): Promise<StreamEvent[]> {
    let current = [...events]
    for (const one of this.#transformers) {
      const next: StreamEvent[] = []
      try {
        for (const event of current) {
          const answer = one.onStreamEvent!(event, this.#streamContext)
          // Awaits only a promise, because awaiting every event would be slow.
          const answers = isPromise(answer) ? await answer : answer
          if (answers === undefined)
            next.push(event) // the hook returned nothing: it only observes
          else if (Array.isArray(answers)) next.push(...(answers as readonly StreamEvent[]))
          // `isArray` does not narrow a readonly list.
          else if (answers !== null) next.push(answers as StreamEvent)
        }
      } catch (error) {
        throw hookError(error, `onStreamEvent of the middleware "${one.name}"`, this.#origin)
      }
      current = next
    }
    return current
  }

  async #each(
    hook: keyof Middleware,
    list: readonly Middleware[],
    invoke: (one: Middleware) => void | Promise<void> | undefined,
  ): Promise<void> {
    for (const one of list) {
      if (!one[hook]) continue
      try {
        await invoke(one)
      } catch (error) {
        throw hookError(error, `${hook} of the middleware "${one.name}"`, this.#origin)
      }
    }
  }
}
