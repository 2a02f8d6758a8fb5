import { isUPPError } from '@skein/ai'
import type { GenerateResult } from './agent.ts'
import { codeError, isCancelled } from './agent-error.ts'
import type { Middleware, MiddlewareContext } from './middleware.ts'
import { untilAborted } from './until-aborted.ts'

/** What a level of the onion hands to the next outer one. */
export type Outcome = { readonly result: GenerateResult } | { readonly error: Error }

/** The middleware of one run (UAP §9.2): each level sees the context that its own `before` made. */
export class MiddlewareRun {
  #context: MiddlewareContext
  readonly #started: { readonly one: Middleware; context: MiddlewareContext }[] = []
  readonly #signal: AbortSignal | undefined

  constructor(context: MiddlewareContext, signal: AbortSignal | undefined) {
    this.#context = context
    this.#signal = signal
  }

  get context(): MiddlewareContext {
    return this.#context
  }

  async before(middleware: readonly Middleware[]): Promise<void> {
    for (const one of middleware) {
      const level = { one, context: this.#context }
      this.#started.push(level)
      if (!one.before) continue
      const changed = await this.#call('before', one, () => one.before?.(level.context))
      if (changed) this.#context = level.context = changed
    }
  }

  /** `after` on the way out, `onError` from the level that failed until one recovers (A33). */
  async after(
    outcome: Outcome,
    onRecovery: (result: GenerateResult) => Promise<void>,
  ): Promise<Outcome> {
    let current = outcome
    for (const { one, context } of this.#started.toReversed()) {
      if ('result' in current) current = await this.#afterOf(one, context, current.result)
      if (!('error' in current)) continue
      const recovered = await this.#recover(one, context, current.error)
      if ('result' in recovered) await onRecovery(recovered.result)
      current = recovered
    }
    return current
  }

  async #afterOf(
    one: Middleware,
    context: MiddlewareContext,
    result: GenerateResult,
  ): Promise<Outcome> {
    if (!one.after) return { result }
    try {
      const changed = await this.#call('after', one, () => one.after?.(context, result))
      return { result: changed ?? result }
    } catch (error) {
      return { error: error as Error } // #call throws nothing else
    }
  }

  /** A cancelled run tells of its end, but cannot be recovered. */
  async #recover(one: Middleware, context: MiddlewareContext, error: Error): Promise<Outcome> {
    if (!one.onError) return { error }
    const isOver = isCancelled(error)
    try {
      const result = await this.#call('onError', one, () => one.onError?.(context, error), isOver)
      return result && !isOver ? { result } : { error }
    } catch (second) {
      return { error: isOver ? error : (second as Error) } // #call throws nothing else
    }
  }

  async #call<T>(
    hook: string,
    one: Middleware,
    call: () => T | Promise<T>,
    isOver = false,
  ): Promise<T> {
    try {
      return await (isOver ? call() : untilAborted(call(), this.#signal))
    } catch (error) {
      throw isUPPError(error) ? error : codeError(error, `${hook} of the middleware "${one.name}"`)
    }
  }
}
