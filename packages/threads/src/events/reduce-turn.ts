import type {
  MessageAdded,
  MessageRemoved,
  MessageUpdated,
  ThreadEvent,
  LoggedOutcome,
  TurnEnd,
  TurnStart,
  UnknownThreadEvent,
} from './event.ts'
import {
  type AgentTurnState,
  type DraftBlock,
  type DraftState,
  getKey,
  type InterruptState,
  type LiveToolCall,
  type MessageItem,
  setKey,
  type StateEditor,
  type TurnState,
  type Writable,
} from './folded-thread.ts'
import type { StateDraft } from './reduce-thread.ts'
import type { AssistantMessageJSON } from '@skein/base'
import { sumUsage } from '../document/stats.ts'

/** Folds the beginning of a side's turn. */
export function applyTurnStart(edit: StateEditor, state: StateDraft, event: TurnStart): void {
  const { turnId, agentId, at, continues } = event
  const turn: AgentTurnState = {
    kind: 'agent',
    turnId,
    agentId,
    startedAt: at,
    outcome: 'running',
    items: edit.adopt([]),
    calls: edit.adopt([]),
    continues,
  }
  pushTurn(edit, state, turn)
}

/** Folds the end of a side's turn. */
export function applyTurnEnd(edit: StateEditor, state: StateDraft, event: TurnEnd): void {
  const turn = agentTurn(edit, state, event.turnId, event.at)
  turn.outcome = event.outcome
  turn.endedAt = event.at
  if (event.reason !== undefined) turn.reason = event.reason
  // A stream that was cut short is a fact of the turn; of a finished one nothing can be left.
  const { draft } = turn
  closeDraft(edit, turn)
  if (draft && event.outcome !== 'completed') turn.draft = { ...draft, events: [] }
}

function newDraft(edit: StateEditor, stepId: string): DraftState {
  return edit.adopt({ stepId, blocks: edit.adopt([]), events: edit.adopt([]) })
}

/** Ends what was being streamed; the facts that came meanwhile take their place. */
function closeDraft(edit: StateEditor, turn: Writable<AgentTurnState>): void {
  if (turn.draft) edit.at(turn, 'items').push(...turn.draft.events)
  delete turn.draft
}

type StreamEvent = Extract<
  ThreadEvent,
  {
    type:
      | 'step_start'
      | 'step_end'
      | 'step_reset'
      | 'text_delta'
      | 'reasoning_delta'
      | 'tool_call_delta'
  }
>

/** Folds what a model streams into the draft of its turn. */
export function applyStream(edit: StateEditor, state: StateDraft, event: StreamEvent): void {
  const turn = agentTurn(edit, state, event.turnId, event.at)
  switch (event.type) {
    case 'step_start':
    case 'step_reset':
      closeDraft(edit, turn)
      turn.draft = newDraft(edit, event.stepId)
      return
    case 'step_end':
      return
    case 'text_delta':
      return appendDelta(edit, turn, { type: 'text', id: event.blockId, text: event.text })
    case 'reasoning_delta':
      return appendDelta(edit, turn, { type: 'reasoning', id: event.blockId, text: event.text })
    case 'tool_call_delta':
      return appendDelta(edit, turn, {
        type: 'tool_call',
        id: event.toolCallId,
        toolName: event.toolName,
        text: event.argumentsText,
      })
    default:
      return event satisfies never
  }
}

function appendDelta(edit: StateEditor, turn: Writable<AgentTurnState>, delta: DraftBlock): void {
  turn.draft ??= newDraft(edit, '')
  const blocks = edit.at(edit.at(turn as { draft: DraftState }, 'draft'), 'blocks')
  // From the end: nearly always the last block grows.
  const index = blocks.findLastIndex((block) => block.id === delta.id && block.type === delta.type)
  if (index < 0) blocks.push(edit.adopt({ ...delta }))
  else edit.at(blocks, index).text += delta.text
}

/** Puts a fact at the end of the turn it names, or of the last turn. Before the first turn there is no place. */
export function addItem(
  edit: StateEditor,
  state: StateDraft,
  event: (ThreadEvent & { readonly turnId?: string }) | UnknownThreadEvent,
): void {
  const turnId = event.turnId
  const index =
    (typeof turnId === 'string' ? getKey(state.index.turns, turnId) : undefined) ??
    state.turns.length - 1
  if (index < 0) return
  const turn = edit.at(edit.at(state, 'turns'), index)
  if (turn.kind === 'agent' && turn.draft && turn.outcome === 'running') {
    const draft = edit.at(turn as { draft: DraftState }, 'draft')
    edit.at(draft, 'events').push({ kind: 'event', event })
  } else edit.at(turn, 'items').push({ kind: 'event', event })
}

/** The named agent turn, writable. A turn whose start was never seen is opened: facts beat bookkeeping. */
function agentTurn(
  edit: StateEditor,
  state: StateDraft,
  turnId: string,
  at: string,
  agentId = '',
): Writable<AgentTurnState> {
  const index = getKey(state.index.turns, turnId)
  const turn = index === undefined ? undefined : edit.at(edit.at(state, 'turns'), index)
  if (turn?.kind === 'agent') return turn
  applyTurnStart(edit, state, { type: 'turn_start', turnId, agentId, at })
  return edit.at(edit.at(state, 'turns'), state.turns.length - 1) as Writable<AgentTurnState>
}

function pushTurn(edit: StateEditor, state: StateDraft, turn: TurnState): void {
  const turns = edit.at(state, 'turns')
  setKey(edit.at(edit.at(state, 'index'), 'turns'), turn.turnId, turns.length)
  turns.push(edit.adopt(turn))
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

/** Folds what happens to tool calls and to what they wait for. */
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
 * Closes a call, once: an executor's outcome and the tool result message that repeats it are one fact, so whichever
 * comes second changes nothing.
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
  // An answered call is requested again until the runtime runs or closes it.
  if (call?.status === 'waiting') call.status = answer.type === 'deny' ? 'denied' : 'requested'
  addItem(edit, state, { ...event, turnId: known.turnId })
}

/** Folds a complete message: a prompt, an answer with its calls, or results. */
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
  setKey(edit.at(edit.at(state, 'index'), 'messages'), message.id, place)
  const { type: _type, turnId: _turn, outcomes: _outcomes, userId: _user, ...fields } = event
  items.push({ kind: 'message', ...fields })
  if (message.type === 'assistant') openCalls(edit, state, event, message)
  else if (message.type === 'tool_result') {
    for (const { toolCallId, result, isError } of message.results) {
      const told = event.outcomes && getKey(event.outcomes, toolCallId)
      const outcome: LoggedOutcome = told ?? (isError ? 'failed' : 'success')
      settleCall(edit, state, { turnId, at, toolCallId, outcome, result })
    }
  }
}

function openCalls(
  edit: StateEditor,
  state: StateDraft,
  event: MessageAdded,
  message: AssistantMessageJSON,
): void {
  const turn = agentTurn(edit, state, event.turnId, event.at)
  closeDraft(edit, turn)
  if (!message.toolCalls?.length) return
  const turnIndex = getKey(state.index.turns, event.turnId)!
  const calls = edit.at(turn, 'calls')
  const index = edit.at(edit.at(state, 'index'), 'calls')
  for (const { toolCallId, toolName, arguments: args } of message.toolCalls) {
    setKey(index, toolCallId, [turnIndex, calls.length])
    const call: LiveToolCall = { toolCallId, toolName, arguments: args, status: 'requested' }
    calls.push(edit.adopt(call))
  }
}

/** Folds the replacement of a message. */
export function updateMessage(edit: StateEditor, state: StateDraft, event: MessageUpdated): void {
  editItem(edit, state, event.messageId, (item) => ({ ...item, message: event.message }))
}

/** Folds the removal of a message: it is marked, so that its place stays. */
export function removeMessage(edit: StateEditor, state: StateDraft, event: MessageRemoved): void {
  editItem(edit, state, event.messageId, (item) => ({ ...item, isRemoved: true }))
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
