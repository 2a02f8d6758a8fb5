import { isPlainObject, type JsonValue } from '@skein/base'
import type { DeferRequest, ToolOutcome } from '@skein/ai'
import { invalidRequest } from './agent-error.ts'
import type { Answer, Answers, DeferredCall, Interrupt } from './interrupt.ts'
import type { AgentStateJSON } from './state.ts'

/** What the sub-agent helper defers with: the child's whole state travels in the interrupt. */
export interface ChildRequest {
  readonly subagent: string
  readonly prompt: string
  readonly state: AgentStateJSON
  readonly interrupts: readonly Interrupt[]
}

export function childRequestOf({ kind, request }: DeferRequest): ChildRequest | undefined {
  if (kind !== 'child' || !isPlainObject(request)) return undefined
  const { subagent, state, interrupts } = request
  const isChild = typeof subagent === 'string' && isPlainObject(state) && Array.isArray(interrupts)
  return isChild ? (request as unknown as ChildRequest) : undefined // its fields were just checked
}

/** The interrupts of deferred calls: a sub-agent's call stands for those inside it. */
export function interruptsOf(deferred: readonly DeferredCall[]): readonly Interrupt[] {
  return deferred.flatMap(({ toolCallId, request }): Interrupt[] => {
    const child = childRequestOf(request)
    if (!child) return [{ id: toolCallId, toolCallId, path: [], ...request }]
    return child.interrupts.map((inner) => ({
      ...inner,
      id: `${toolCallId}/${inner.id}`,
      path: [child.subagent, ...inner.path],
    }))
  })
}

/** The answers of each deferred call: its own, or those for interrupts inside it. */
export interface CallAnswers {
  readonly own?: Answer
  /** By the id that the interrupt has inside the sub-agent. */
  readonly inner?: Answers
}

/** Finds the call of each answer. An answer to nothing, or to several calls, is refused. */
export function routeAnswers(
  deferred: readonly DeferredCall[],
  answers: Answers,
): ReadonlyMap<string, CallAnswers> {
  const interrupts = interruptsOf(deferred)
  const routed = new Map<string, CallAnswers>()
  for (const [name, answer] of Object.entries(answers)) {
    const { id } = findInterrupt(interrupts, name)
    checkAnswer(answer, name)
    const slash = deferred.find((call) => id.startsWith(`${call.toolCallId}/`))
    const isOwn = deferred.some((call) => call.toolCallId === id)
    if (isOwn || !slash) routed.set(id, { own: answer })
    else {
      const inner = routed.get(slash.toolCallId)?.inner
      const innerId = id.slice(slash.toolCallId.length + 1)
      routed.set(slash.toolCallId, { inner: { ...inner, [innerId]: answer } })
    }
  }
  return routed
}

function findInterrupt(interrupts: readonly Interrupt[], name: string): Interrupt {
  const exact = interrupts.find(({ id }) => id === name)
  if (exact) return exact
  const found = interrupts.filter(({ toolCallId }) => toolCallId === name)
  if (found.length === 1) return found[0]!
  const ids = (found.length > 1 ? found : interrupts).map(({ id }) => `"${id}"`).join(', ')
  if (found.length > 1)
    throw invalidRequest(
      `The answer for "${name}" could be for several calls.`,
      `Answer by interrupt id: ${ids}.`,
    )
  throw invalidRequest(
    `No call "${name}" waits for an answer.`,
    ids === '' ? 'This state waits for nothing.' : `Open interrupts: ${ids}.`,
  )
}

function checkAnswer(answer: unknown, name: string): void {
  const { type, reason, message } = isPlainObject(answer) ? answer : {}
  if (type === 'approve' || type === 'result') return
  if (type === 'deny' && typeof reason === 'string') return
  if (type === 'error' && typeof message === 'string') return
  throw invalidRequest(
    `The answer for "${name}" is not one.`,
    "Answer { type: 'approve' }, { type: 'deny', reason }, { type: 'result', value } or { type: 'error', message }.",
  )
}

/** The outcome that an answer decides by itself; approval decides nothing but that the call may run. */
export function outcomeOf(answer: Answer | undefined): ToolOutcome | undefined {
  switch (answer?.type) {
    case 'deny':
      return { type: 'denied', reason: answer.reason }
    case 'result':
      return { type: 'done', result: answer.value as JsonValue }
    case 'error':
      return { type: 'error', message: answer.message }
    default:
      return undefined
  }
}
