import type { RuntimeEvent } from '../contract/event.ts'
import { type KernelState, type OpenInterrupt } from './kernel-state.ts'
import { openVariables } from './variables.ts'

/** Returns the unanswered questions (interrupts) that a person or a client can still answer. */
export function openForPeople({ interrupts, terminated }: KernelState): readonly OpenInterrupt[] {
  return [...interrupts.values()].filter(
    ({ answer, isDetached, isDropped, interrupt: { kind } }) =>
      !answer && isForPeople(kind) && (isDetached ? !isDropped : !terminated),
  )
}

/** Whether a person or a client answers questions of this kind. */
function isForPeople(kind: string): boolean {
  return kind === 'approval' || kind === 'input' || kind === 'in_doubt'
}

/** Returns how many things of the thread wait for a person or a client. */
export function waitingCount(state: KernelState, now: number): number {
  return openForPeople(state).length + openVariables(state, now).length
}

/** Whether events ask a person or a client for something. */
export function asksPeople(events: readonly RuntimeEvent[]): boolean {
  return events.some(
    (event) =>
      event.type === 'variables_requested' ||
      (event.type === 'interrupt_opened' && isForPeople(event.interrupt.kind)),
  )
}

/** Returns what `waitingCount` will be after these events, some of which ask people for something. */
export function waitingAfter(
  state: KernelState,
  events: readonly RuntimeEvent[],
  now: number,
): number {
  const calls = new Set(openForPeople(state).map(({ interrupt }) => interrupt.toolCallId))
  let variables = openVariables(state, now).length
  for (const event of events)
    if (event.type === 'variables_requested') variables++
    else if (event.type === 'tool_execution_end') calls.delete(event.toolCallId)
    else if (event.type === 'interrupt_opened')
      // A new question about a call replaces the earlier one.
      if (isForPeople(event.interrupt.kind)) calls.add(event.interrupt.toolCallId)
      else calls.delete(event.interrupt.toolCallId)
  return calls.size + variables
}
