import { llm, type Message, type Turn } from '@skein/ai'
import { linkAbort } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { withoutVendorState } from './vendor-state.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'

/** Sends a request of the runtime itself, e.g. for a summary, to the first model of an agent, without tools. */
export async function generateForRuntime(
  context: Pick<DrainContext, 'environment' | 'head' | 'signal' | 'trace'>,
  side: ResolvedSide,
  input: readonly Message[],
  options: { readonly system?: string } = {},
): Promise<Turn> {
  const { clock, ids, limits, spending, timers } = context.environment
  const first = side.prompt.models[0]!
  const { config, providerOptions = {} } = first.definition ?? {}
  const stateless = withoutVendorState(first.model, providerOptions)
  const { params } = stateless
  const middleware = [
    stateless.middleware,
    context.trace?.middleware() ?? [],
    spending?.middleware(context.head, side, first) ?? [],
  ].flat()
  const controller = new AbortController()
  const { signal } = controller
  const unlink = linkAbort([context.signal], controller)
  const message = `The model was not done after ${limits.modelMs} ms.`
  const abort = (): void => controller.abort(new DOMException(message, 'TimeoutError'))
  const timer = limits.modelMs === Infinity ? undefined : timers.set(limits.modelMs, abort)
  const request = { model: first.model, signal, clock, ids, config, params, middleware, ...options }
  try {
    return await llm(request).generate(input)
  } finally {
    if (timer !== undefined) timers.clear(timer)
    unlink()
  }
}
