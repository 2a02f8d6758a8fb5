import type { InterruptAnswer, ThreadEvent, ToolOutcome } from './event.ts'
import { getKey, setKey, type StateEditor, type Writable } from './reduce-thread-edit.ts'
import type { InterruptState, LiveToolCall } from './reduce-thread-state.ts'
import { addItem, agentTurn } from './reduce-thread-turn.ts'
import type { StateDraft } from './reduce-thread.ts'

type ToolEvent = Extract<
  ThreadEvent,
  {
    type:
      | 'tool_execution_start'
      | 'tool_execution_progress'
      | 'tool_execution_end'
      | 'tool_call_hidden'
      | 'interrupt_opened'
      | 'interrupt_answered'
  }
>

export function applyTool(edit: StateEditor, state: StateDraft, event: ToolEvent): void {
  switch (event.type) {
    case 'tool_execution_start': {
      const call = findCall(edit, state, event.toolCallId) ?? addCall(edit, state, event)
      call.status = 'running'
      call.startedAt = event.at
      return
    }
    case 'tool_execution_progress': {
      const call = findCall(edit, state, event.toolCallId)
      if (call && !isSettled(call)) call.progress = event.output
      return
    }
    case 'tool_execution_end':
      return settleCall(edit, state, event)
    case 'tool_call_hidden': {
      const call = findCall(edit, state, event.toolCallId)
      if (call) call.isHidden = true
      return
    }
    case 'interrupt_opened':
      return openInterrupt(edit, state, event)
    case 'interrupt_answered':
      return answerInterrupt(edit, state, event)
    default:
      return event satisfies never
  }
}

interface Settlement {
  readonly turnId: string
  readonly at: string
  readonly toolCallId: string
  readonly toolName?: string
  readonly outcome: ToolOutcome
  readonly result: unknown
  readonly durationMs?: number
}

/**
 * Closes a call, once: an executor's outcome and the tool result message that repeats it are one fact, so whichever
 * comes second changes nothing.
 */
export function settleCall(edit: StateEditor, state: StateDraft, settlement: Settlement): void {
  const { turnId, at, toolCallId, outcome, result, durationMs } = settlement
  const call = findCall(edit, state, toolCallId)
  if (call && isSettled(call)) return
  const toolName = call?.toolName ?? settlement.toolName ?? ''
  if (call) {
    call.status = outcome
    call.endedAt = at
    call.result = result
    if (durationMs !== undefined) call.durationMs = durationMs
    delete call.progress
  }
  const turn = agentTurn(edit, state, turnId, at)
  edit.at(turn, 'items').push({ kind: 'result', at, toolCallId, toolName, outcome, result })
}

function isSettled(call: LiveToolCall): boolean {
  return call.endedAt !== undefined
}

function findCall(
  edit: StateEditor,
  state: StateDraft,
  toolCallId: string,
): Writable<LiveToolCall> | undefined {
  const place = getKey(state.index.calls, toolCallId)
  if (!place) return undefined
  const turn = edit.at(edit.at(state, 'turns'), place[0])
  return turn.kind === 'agent' ? edit.at(edit.at(turn, 'calls'), place[1]) : undefined
}

/** A call that runs without having been asked for in a message, such as one a hook queued. */
function addCall(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'tool_execution_start' }>,
): Writable<LiveToolCall> {
  const { turnId, toolCallId, toolName } = event
  const calls = edit.at(agentTurn(edit, state, turnId, event.at), 'calls')
  const call = edit.adopt<LiveToolCall>({
    toolCallId,
    toolName,
    arguments: event.arguments,
    status: 'requested',
  })
  setKey(edit.at(edit.at(state, 'index'), 'calls'), toolCallId, [
    getKey(state.index.turns, turnId)!,
    calls.length,
  ])
  calls.push(call)
  return call
}

function openInterrupt(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'interrupt_opened' }>,
): void {
  const { interrupt, turnId, at } = event
  setKey<InterruptState>(edit.at(state, 'interrupts'), interrupt.id, {
    ...interrupt,
    turnId,
    openedAt: at,
  })
  const call = findCall(edit, state, interrupt.toolCallId)
  if (call && !isSettled(call)) {
    call.status = 'waiting'
    call.interruptId = interrupt.id
  }
  addItem(edit, state, event)
}

/** An interrupt is answered once; what comes later is noise. */
function answerInterrupt(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'interrupt_answered' }>,
): void {
  const { interruptId, answer, answeredBy, at } = event
  const interrupts = edit.at(state, 'interrupts')
  const known = getKey(interrupts, interruptId)
  if (!known || known.answer) return
  const answered = { ...known, answer, answeredAt: at }
  setKey<InterruptState>(
    interrupts,
    interruptId,
    answeredBy === undefined ? answered : { ...answered, answeredBy },
  )
  const call = findCall(edit, state, known.toolCallId)
  if (call?.status === 'waiting') call.status = statusAfter(answer)
  addItem(edit, state, { ...event, turnId: known.turnId })
}

/** An answered call is requested again until the runtime runs or closes it. */
function statusAfter(answer: InterruptAnswer): LiveToolCall['status'] {
  return answer.type === 'deny' ? 'denied' : 'requested'
}
