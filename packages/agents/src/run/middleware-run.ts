import { isUPPError } from '@skein/ai'
import { codeError, isCancelled, awaitUnlessAborted } from '../contract/agent-error.ts'
import type {
  GenerateResult,
  Middleware,
  MiddlewareContext,
  MiddlewareMetadata,
} from '../contract/agent-types.ts'

/** How a run, or a part of it, ended. */
export type RunOutcome = { readonly result: GenerateResult } | { readonly error: Error }

/**
 * Runs the middleware of one run (UAP §9.2). `after` and `onError` of a middleware get the context that its
 * own `before` returned.
 */
export class MiddlewareChain {
  /** The context as the last `before` has left it. */
  context: MiddlewareContext
  readonly #started: { readonly one: Middleware; context: MiddlewareContext }[] = []
  readonly #signal: AbortSignal | undefined

  constructor(context: MiddlewareContext, signal: AbortSignal | undefined) {
    this.context = context
    this.#signal = signal
  }

  async before(middleware: readonly Middleware[]): Promise<void> {
    for (const one of middleware) {
      const level = { one, context: this.context }
      this.#started.push(level)
      if (!one.before) continue
      const changes = await this.#call('before', one, () => one.before?.(level.context))
      if (changes) this.context = level.context = changes
    }
  }

  /**
   * Calls `after` of each middleware from the innermost to the outermost. After a failure, `onError` is
   * called instead until one of them returns a result; the middleware further out then gets that result in
   * `after`.
   */
  async after(
    outcome: RunOutcome,
    onRecovery: (result: GenerateResult) => Promise<void>,
  ): Promise<RunOutcome> {
    let current = outcome
    for (const { one, context } of this.#started.toReversed()) {
      if ('result' in current) current = await this.#afterOf(one, context, current.result)
      if (!('error' in current)) continue
      const recovery = await this.#recover(one, context, current.error)
      if ('result' in recovery) await onRecovery(recovery.result)
      current = recovery
    }
    return current
  }

  async #afterOf(
    one: Middleware,
    context: MiddlewareContext,
    result: GenerateResult,
  ): Promise<RunOutcome> {
    if (!one.after) return { result }
    try {
      const changes = await this.#call('after', one, () => one.after?.(context, result))
      return { result: changes ?? result }
    } catch (error) {
      return { error: error as Error } // `#call` throws only errors
    }
  }

  /**
   * Calls `onError`. It is also called for a cancelled run, but cannot turn the cancellation into a result.
   */
  async #recover(one: Middleware, context: MiddlewareContext, error: Error): Promise<RunOutcome> {
    if (!one.onError) return { error }
    const isOver = isCancelled(error)
    try {
      const result = await this.#call('onError', one, () => one.onError?.(context, error), isOver)
      return result && !isOver ? { result } : { error }
    } catch (second) {
      return { error: isOver ? error : (second as Error) } // `#call` throws only errors
    }
  }

  async #call<T>(
    hook: string,
    one: Middleware,
    call: () => T | Promise<T>,
    isOver = false,
  ): Promise<T> {
    try {
      return await (isOver ? call() : awaitUnlessAborted(call(), this.#signal))
    } catch (error) {
      throw isUPPError(error) ? error : codeError(error, `${hook} of the middleware "${one.name}"`)
    }
  }
}

/**
 * Returns a map whose entries are also properties, because UAP §9 types it as a map and uses it as an object.
 */
export function middlewareMetadata(
  entries: Readonly<Record<string, unknown>> = {},
): MiddlewareMetadata {
  const map = new Map<string, unknown>(Object.entries(entries))
  return new Proxy(map, {
    get(target, name) {
      if (typeof name === 'string' && target.has(name)) return target.get(name)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
    set: (target, name, value) => typeof name === 'string' && Boolean(target.set(name, value)),
    has: (target, name) => target.has(name as string) || Reflect.has(target, name),
    deleteProperty: (target, name) => target.delete(name as string) || true,
    ownKeys: (target) => [...target.keys()],
    getOwnPropertyDescriptor(target, name) {
      if (!target.has(name as string)) return undefined
      const value = target.get(name as string)
      return { value, enumerable: true, configurable: true, writable: true }
    },
  }) as MiddlewareMetadata // the proxy adds the properties
}
