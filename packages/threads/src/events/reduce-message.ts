import type {
  DeliveryChanged,
  LoggedOutcome,
  MessageAdded,
  MessageRemoved,
  MessageUpdated,
  ThreadEvent,
  ToolExecutionStart,
} from './event.ts'
import type { InterruptState, LiveToolCall, MessageItem } from './folded-thread.ts'
import type { StateDraft } from './reduce-thread.ts'
import {
  addItem,
  agentTurn,
  closeDraft,
  getKey,
  pushTurn,
  type StateEditor,
  type Writable,
} from './reduce-turn.ts'
import { setOwn } from '../json/json-parse.ts'
import { sumUsage } from '../document/stats.ts'

/** Applies a complete message to the state: a prompt, an answer with its calls, or tool results. */
export function applyMessage(edit: StateEditor, state: StateDraft, event: MessageAdded): void {
  const { message, turnId, at, userId } = event
  state.usage = sumUsage([state.usage, event.usage]) ?? state.usage
  if (message.type !== 'user') agentTurn(edit, state, turnId, at, event.agentId)
  else if (getKey(state.index.turns, turnId) === undefined) {
    const turn = { kind: 'user', turnId, startedAt: at, items: edit.adopt([]) } as const
    pushTurn(edit, state, userId === undefined ? turn : { ...turn, userId })
  }
  const index = getKey(state.index.turns, turnId)!
  const items = edit.at(edit.at(edit.at(state, 'turns'), index), 'items')
  const place = [index, items.length] as const
  setOwn(edit.at(edit.at(state, 'index'), 'messages'), message.id, place)
  const { type: _type, turnId: _turn, outcomes: _outcomes, userId: _user, ...fields } = event
  items.push({ kind: 'message', ...fields })
  if (message.type === 'assistant') {
    closeDraft(edit, agentTurn(edit, state, turnId, at))
    for (const call of message.toolCalls ?? []) addCall(edit, state, { turnId, at, ...call })
  } else if (message.type === 'tool_result') {
    for (const { toolCallId, result, isError } of message.results) {
      const outcomeOfCall = event.outcomes && getKey(event.outcomes, toolCallId)
      const outcome: LoggedOutcome = outcomeOfCall ?? (isError ? 'failed' : 'success')
      settleCall(edit, state, { turnId, at, toolCallId, outcome, result })
    }
  }
}

/** Applies the replacement of a message to the state. */
export function applyMessageUpdate(
  edit: StateEditor,
  state: StateDraft,
  event: MessageUpdated,
): void {
  const { messageId, message, at } = event
  editItem(edit, state, messageId, (item) => ({ ...item, message }))
  const place = getKey(state.index.messages, messageId)
  const turn = place && state.turns[place[0]]
  if (message.type !== 'assistant' || turn?.kind !== 'agent') return
  // A person may have replaced a waiting call by another call.
  for (const call of message.toolCalls ?? []) {
    const from = getKey(state.index.calls, String(call.metadata?.['skein']?.['changedFrom']))
    if (from && !getKey(state.index.calls, call.toolCallId))
      addCall(edit, state, { turnId: turn.turnId, at, ...call })
  }
}

/**
 * Applies the removal of a message: the message is only marked as removed, so that the positions of other
 * items stay valid.
 */
export function applyMessageRemoval(
  edit: StateEditor,
  state: StateDraft,
  event: MessageRemoved,
): void {
  editItem(edit, state, event.messageId, (item) => ({ ...item, isRemoved: true }))
}

/** Applies the decision of a gate about answers to the state. */
export function applyDelivery(
  edit: StateEditor,
  state: StateDraft,
  { messageIds, delivery }: DeliveryChanged,
): void {
  for (const id of messageIds) editItem(edit, state, id, (item) => ({ ...item, delivery }))
}

function editItem(
  edit: StateEditor,
  state: StateDraft,
  messageId: string,
  change: (item: MessageItem) => MessageItem,
): void {
  const place = getKey(state.index.messages, messageId)
  if (!place) return
  const items = edit.at(edit.at(edit.at(state, 'turns'), place[0]), 'items')
  const item = items[place[1]]
  if (item?.kind === 'message') items[place[1]] = change(item)
}

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

/** Applies the events of tool calls and interrupts to the state. */
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
  readonly outcome: LoggedOutcome
  readonly result: unknown
  readonly durationMs?: number
}

/**
 * Sets the outcome of a call. An outcome may arrive twice, as an event of the tool executor and in the tool
 * result message; the second arrival is ignored.
 */
function settleCall(edit: StateEditor, state: StateDraft, settlement: Settlement): void {
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

/** Adds a call of a message, or one that is in none, such as a call that a hook queued. */
function addCall(
  edit: StateEditor,
  state: StateDraft,
  event: Pick<ToolExecutionStart, 'turnId' | 'at' | 'toolCallId' | 'toolName' | 'arguments'>,
): Writable<LiveToolCall> {
  const { turnId, toolCallId, toolName } = event
  const calls = edit.at(agentTurn(edit, state, turnId, event.at), 'calls')
  const call = edit.adopt<LiveToolCall>({
    toolCallId,
    toolName,
    arguments: event.arguments,
    status: 'requested',
  })
  setOwn(edit.at(edit.at(state, 'index'), 'calls'), toolCallId, [
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
  setOwn<InterruptState>(edit.at(state, 'interrupts'), interrupt.id, {
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

/** Stores the first answer to an interrupt. Later answers are ignored. */
function answerInterrupt(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'interrupt_answered' }>,
): void {
  const { interruptId, answer, answeredBy, at } = event
  const interrupts = edit.at(state, 'interrupts')
  const interrupt = getKey(interrupts, interruptId)
  if (!interrupt || interrupt.answer) return
  const withAnswer = { ...interrupt, answer, answeredAt: at }
  setOwn<InterruptState>(
    interrupts,
    interruptId,
    answeredBy === undefined ? withAnswer : { ...withAnswer, answeredBy },
  )
  const call = findCall(edit, state, interrupt.toolCallId)
  // After a denial the call has the status `denied`; after any other answer it has the status `requested`
  // again until the runtime runs or closes it.
  if (call?.status === 'waiting') call.status = answer.type === 'deny' ? 'denied' : 'requested'
  addItem(edit, state, { ...event, turnId: interrupt.turnId })
}
