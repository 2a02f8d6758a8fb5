import { isPlainObject, type JsonValue } from '@skein/base'
import type { DeferRequest } from '@skein/ai'
import type { AgentStateJSON, DeferredCall, Interrupt } from './state-types.ts'

/** The request with which `subagent()` defers a call; the sub-agent's whole state is part of it. */
export interface ChildRequest {
  readonly subagent: string
  readonly prompt: string
  readonly subagentId?: string
  /** Milliseconds since the epoch. */
  readonly startTime?: number
  readonly sharesBudget?: boolean
  readonly state: AgentStateJSON
  readonly interrupts: readonly Interrupt[]
}

/** Returns the request of a call deferred by `subagent()`, or undefined for any other request. */
export function childRequestOf({ kind, request }: DeferRequest): ChildRequest | undefined {
  if (kind !== 'child' || !isPlainObject(request)) return undefined
  const { subagent, state, interrupts } = request
  const isChild = typeof subagent === 'string' && isPlainObject(state) && Array.isArray(interrupts)
  return isChild ? (request as unknown as ChildRequest) : undefined // its fields were checked above
}

/**
 * Returns the interrupts of deferred calls that have no answer yet; a sub-agent's call is replaced by the
 * interrupts inside it.
 */
export function interruptsOf(deferred: readonly DeferredCall[]): readonly Interrupt[] {
  const open = deferred.flatMap(({ answer, answers, ...call }) => {
    if (answer) return []
    const child = answers && childRequestOf(call.request)
    if (!child) return [call]
    // The keys of `answers` are the ids that interrupts have inside the sub-agent, as in `child.interrupts`.
    const interrupts = child.interrupts.filter(({ id }) => !Object.hasOwn(answers, id))
    const request = { ...call.request, request: { ...child, interrupts } as unknown as JsonValue }
    return [{ ...call, request }]
  })
  return allInterruptsOf(open)
}

/** Returns the interrupts of deferred calls, also those that have an answer. */
export function allInterruptsOf(deferred: readonly DeferredCall[]): readonly Interrupt[] {
  return deferred.flatMap(({ toolCallId, request, parsed }): Interrupt[] => {
    const child = childRequestOf(request)
    if (!child) {
      const own = { id: toolCallId, toolCallId, path: [], ...request }
      return [parsed ? { ...own, arguments: parsed.arguments } : own]
    }
    return child.interrupts.map((inner) => ({
      ...inner,
      id: `${toolCallId}/${inner.id}`,
      path: [child.subagent, ...inner.path],
    }))
  })
}
