import type { AssistantMessageJSON, ToolResultMessageJSON } from '@skein/base'
import type { MessageAdded, MessageRemoved, MessageUpdated, ToolOutcome } from './event.ts'
import { getKey, setKey, type StateEditor } from './reduce-thread-edit.ts'
import type { MessageItem, LiveToolCall } from './reduce-thread-state.ts'
import { settleCall } from './reduce-thread-tool.ts'
import { agentTurn, closeDraft, pushTurn } from './reduce-thread-turn.ts'
import type { StateDraft } from './reduce-thread.ts'
import { sumUsage } from './usage.ts'

export function applyMessage(edit: StateEditor, state: StateDraft, event: MessageAdded): void {
  const { message } = event
  state.usage = sumUsage([state.usage, event.usage]) ?? state.usage
  if (message.type === 'user') return addUserMessage(edit, state, event)
  agentTurn(edit, state, event.turnId, event.at, event.agentId)
  pushMessage(edit, state, event)
  if (message.type === 'assistant') openCalls(edit, state, event, message)
  else settleResults(edit, state, event, message)
}

function addUserMessage(edit: StateEditor, state: StateDraft, event: MessageAdded): void {
  const { turnId, at, userId } = event
  if (getKey(state.index.turns, turnId) === undefined) {
    const turn = { kind: 'user', turnId, startedAt: at, items: edit.adopt([]) } as const
    pushTurn(edit, state, userId === undefined ? turn : { ...turn, userId })
  }
  pushMessage(edit, state, event)
}

function pushMessage(edit: StateEditor, state: StateDraft, event: MessageAdded): void {
  const index = getKey(state.index.turns, event.turnId)!
  const items = edit.at(edit.at(edit.at(state, 'turns'), index), 'items')
  const place = [index, items.length] as const
  setKey(edit.at(edit.at(state, 'index'), 'messages'), event.message.id, place)
  items.push(itemOf(event))
}

function itemOf(event: MessageAdded): MessageItem {
  const { type: _type, turnId: _turn, outcomes: _outcomes, userId: _user, ...fields } = event
  return { kind: 'message', ...fields }
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

function settleResults(
  edit: StateEditor,
  state: StateDraft,
  event: MessageAdded,
  message: ToolResultMessageJSON,
): void {
  for (const { toolCallId, result, isError } of message.results) {
    const told = event.outcomes && getKey(event.outcomes, toolCallId)
    const outcome: ToolOutcome = told ?? (isError ? 'failed' : 'success')
    settleCall(edit, state, { turnId: event.turnId, at: event.at, toolCallId, outcome, result })
  }
}

export function updateMessage(edit: StateEditor, state: StateDraft, event: MessageUpdated): void {
  editItem(edit, state, event.messageId, (item) => ({ ...item, message: event.message }))
}

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
