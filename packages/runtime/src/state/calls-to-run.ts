import type { ToolCall } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { type CallState, type Entry, isWaiting, type KernelState } from './kernel-state.ts'

/** What a call may do; the order in which the calls of one message run depends on it. */
type CallKind = 'read' | 'child' | 'write'

/**
 * Returns the kind of a call. Calls of tools that the prompt does not list (tools of a client, names that the
 * model made up) count as writes.
 */
function kindOf({ prompt }: ResolvedSide, { toolName }: ToolCall): CallKind {
  const tool = prompt.tools.find(({ name }) => name === toolName)
  if (tool?.kind === 'tool') return tool.tool.governance.risk === 'read_only' ? 'read' : 'write'
  if (tool?.kind === 'prompt') return 'read'
  if (tool?.kind === 'subagent') return 'child'
  if (toolName === 'subagent_list') return 'read'
  const isLifecycle = toolName === 'subagent_create' || toolName === 'subagent_message'
  const hasResumable = prompt.tools.some(
    (one) => one.kind === 'subagent' && one.relation.isResumable,
  )
  return isLifecycle && hasResumable ? 'child' : 'write'
}

/**
 * Returns the calls of a message without an outcome that can be run or settled now. A write waits for every
 * earlier call of its message that has no outcome, even if that call waits for a person or a child: the
 * model wrote the message in the belief that the earlier calls succeed. A read, or a call of a child, does
 * not wait for a waiting call; it waits only for an earlier write that is itself held back. Pure.
 */
export function callsToRun(state: KernelState, side: ResolvedSide, { calls }: Entry): CallState[] {
  let hasOpen = false
  let hasHeldWrite = false
  return calls.filter((call) => {
    if (call.outcome) return false
    const isHeld = isWrite(side, call.call) ? hasOpen : hasHeldWrite
    hasOpen = true
    if (isWaiting(state, call)) return false
    if (isAnswered(state, call)) return true
    if (isHeld && isWrite(side, call.call)) hasHeldWrite = true
    return !isHeld
  })
}

/** Whether the answer that the call waited for is already its outcome, so that the call need not run. */
function isAnswered({ interrupts }: KernelState, { interruptId }: CallState): boolean {
  const { answer, interrupt } = interrupts.get(interruptId ?? '') ?? {}
  // In these two kinds the answer is no outcome: an approved call has to run, a call in doubt may have to run again.
  return answer !== undefined && interrupt?.kind !== 'approval' && interrupt?.kind !== 'in_doubt'
}

/**
 * Whether the call may start only after the earlier call of its message has ended or begun to wait.
 * Children are created one at a time, because the number of children is limited.
 */
export function mustFollow(side: ResolvedSide, call: ToolCall, earlier: ToolCall): boolean {
  const before = kindOf(side, earlier)
  switch (kindOf(side, call)) {
    case 'write':
      return true
    case 'child':
      return before !== 'read'
    case 'read':
      return before === 'write'
  }
}

/** Whether the call is a write. A write waits even for earlier calls that wait for an answer, which may take days. */
export function isWrite(side: ResolvedSide, call: ToolCall): boolean {
  return kindOf(side, call) === 'write'
}

/** Returns the calls of a message, each with the ids of calls that have to end before it (see `callsToRun`). */
export function orderedCalls(
  state: KernelState,
  side: ResolvedSide,
  { calls }: Entry,
): readonly ToolCall[] {
  return calls.map(({ call, outcome }, place): ToolCall => {
    if (outcome) return call
    const after = calls
      .slice(0, place)
      .filter((one) => !one.outcome && mustFollow(side, call, one.call))
      .filter((one) => isWrite(side, call) || !isWaiting(state, one))
    return after.length === 0 ? call : { ...call, after: after.map((one) => one.call.toolCallId) }
  })
}
