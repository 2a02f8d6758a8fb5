import { messageFromJSON, ToolResultMessage, type Message, type ToolCall } from '@skein/ai'
import type { RuntimeEvent, RuntimeMessageAdded } from '../event.ts'
import type { CallState, Entry, KernelState } from './state.ts'
import { toToolResult } from './tool-outcome.ts'

/** Adds a message to the history; an assistant's becomes the answer of the running step. */
export function addMessage(state: KernelState, event: RuntimeMessageAdded): void {
  const message = messageFromJSON(event.message)
  const entry: Entry = {
    message,
    side: event.side,
    at: event.at,
    turnId: event.turnId,
    stepId: event.stepId,
    agent: event.agentId,
    isSilent: event.isSilent === true,
    attachments: event.attachments ?? [],
    subagentId: event.subagentId,
    metadata: event.metadata,
    calls: callsOf(message).map(newCall),
    results: undefined,
    isRemoved: false,
  }
  state.places.set(message.id, state.entries.length)
  for (const { call } of entry.calls) state.callPlaces.set(call.toolCallId, state.entries.length)
  state.entries.push(entry)
  addUsage(state, event)
  if (event.metadata?.['kind'] === 'registry' && message.type === 'user')
    state.registryText[event.metadata['for'] === 'b' ? 'b' : 'a'] = message.text
  const { session } = state
  const step = session?.turn?.step
  if (!session || !step || step.id !== event.stepId) return
  step.entry = state.entries.length - 1
  step.retryAt = undefined
  session.steps[event.side]++
}

function callsOf(message: Message): readonly ToolCall[] {
  return message.type === 'assistant' ? (message.toolCalls ?? []) : []
}

function newCall(call: ToolCall): CallState {
  return {
    call,
    startedEpoch: undefined,
    outcome: undefined,
    isUnknown: false,
    interruptId: undefined,
    isHidden: false,
  }
}

function addUsage(state: KernelState, { usage, costUsd, at }: RuntimeMessageAdded): void {
  if (state.usage.startedAt === 0) state.usage.startedAt = Date.parse(at)
  if (usage) state.usage.tokens += (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)
  if (costUsd !== undefined) state.usage.costUsd += costUsd
}

export function updateMessage(
  state: KernelState,
  event: Extract<RuntimeEvent, { type: 'message_updated' }>,
): void {
  const entry = entryOf(state, event.messageId)
  if (entry) entry.message = messageFromJSON(event.message)
}

export function removeMessage(state: KernelState, messageId: string): void {
  const entry = entryOf(state, messageId)
  if (entry) entry.isRemoved = true
}

export function entryOf(state: KernelState, messageId: string): Entry | undefined {
  const place = state.places.get(messageId)
  return place === undefined ? undefined : state.entries[place]
}

/** Makes the message of results once every call of the entry has one. Its id is the same in every fold. */
export function completeResults(entry: Entry, at: string): void {
  if (entry.results || entry.calls.some(({ outcome }) => outcome === undefined)) return
  entry.results = new ToolResultMessage(entry.calls.map(toToolResult), {
    id: `${entry.message.id}.results`,
    timestamp: new Date(at),
  })
}
