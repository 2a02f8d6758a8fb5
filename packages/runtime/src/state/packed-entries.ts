import { isMadeOf, resultsId, resultsOf } from './calls.ts'
import { deserialize, serialize } from 'node:v8'
import {
  type AssistantContent,
  AssistantMessage,
  type Message,
  messageFromJSON,
  type MessageJSON,
  messageToJSON,
  type ToolCall,
  type UserContent,
  UserMessage,
} from '@skein/ai'
import type { CallState, Entry, KernelState } from './kernel-state.ts'

/** A part with entries. The ids for finding a message are next to the entries, which are decoded only when used. */
export interface PackedEntries {
  readonly ids: readonly string[]
  /** The id of each entry's results; 0 if there are none, 1 if it is the usual one (see `resultsId`). */
  readonly results: readonly (string | 0 | 1)[]
  /** The ids of calls, each with the index of its entry in this part. */
  readonly calls: readonly (readonly [string, number])[]
  readonly body: Uint8Array
}

export function packEntries(entries: readonly Entry[]): PackedEntries {
  return {
    ids: entries.map(({ message }) => message.id),
    results: entries.map(({ message, results }) =>
      results ? (results.id === resultsId(message.id) ? 1 : results.id) : 0,
    ),
    calls: entries.flatMap(({ calls }, at) =>
      calls.map(({ call }) => [call.toolCallId, at] as const),
    ),
    body: serialize(entries.map((entry) => packEntry(entry))),
  }
}

/**
 * Lets the entries of a state be decoded part by part, when an entry of the part is first used: a program that opens a long
 * thread mostly wants its last messages. When all parts are decoded, the plain list replaces the proxy.
 */
export function decodeLater(
  state: KernelState,
  bodies: (Uint8Array | undefined)[],
  size: number,
): void {
  const { entries } = state
  // Only this function replaces the list of a state, by a proxy with the same entries.
  const holder: { entries: Entry[] } = state
  let remaining = bodies.length
  const decode = (part: number): void => {
    const body = bodies[part]
    if (!body) return
    bodies[part] = undefined
    for (const [at, packed] of (deserialize(body) as readonly PackedEntry[]).entries()) {
      const place = part * size + at
      if (!Object.hasOwn(entries, place)) entries[place] = unpackEntry(packed)
    }
    if (--remaining === 0) holder.entries = entries
  }
  // A key that is no index, e.g. `length`, gives NaN, and no part has that number.
  const decodeAt = (key: string | symbol): void => {
    if (remaining > 0 && typeof key === 'string') decode(Math.floor(Number(key) / size))
  }
  if (remaining === 0) return
  holder.entries = new Proxy(entries, {
    get(_, key) {
      decodeAt(key)
      return Reflect.get(entries, key) as unknown
    },
    has(_, key) {
      decodeAt(key)
      return Reflect.has(entries, key)
    },
    getOwnPropertyDescriptor(_, key) {
      decodeAt(key)
      return Reflect.getOwnPropertyDescriptor(entries, key)
    },
    ownKeys() {
      for (const part of bodies.keys()) decode(part)
      return Reflect.ownKeys(entries)
    },
  })
}

type PackedEntry = ReturnType<typeof packEntry>

type PackedCall = ReturnType<typeof packCall>

/** Packs an entry as a list, which is half as long as an object, because objects repeat the names of members. */
function packEntry(entry: Entry) {
  const { message, results, calls } = entry
  const own = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  return [
    packMessage(message),
    entry.side,
    entry.at,
    entry.turnId,
    entry.stepId,
    entry.agent,
    entry.isSilent,
    entry.attachments.length === 0 ? 0 : entry.attachments,
    entry.files.length === 0 ? 0 : entry.files,
    entry.subagentId,
    entry.metadata,
    calls.length === 0 ? 0 : calls.map((call) => packCall(call, own)),
    results && (isMadeOf(results, calls) ? results.timestamp.getTime() : packMessage(results)),
    entry.isRemoved,
    entry.dropped,
    entry.editedSeq,
    entry.delivery,
    entry.refusal,
  ] as const
}

/** Packs a message as a list of its content, calls, id, time and metadata. A single text is stored as a string. */
function packMessage(message: Message) {
  if (message.type === 'tool_result') return messageToJSON(message)
  const { content, id, timestamp, metadata } = message
  const [block, ...others] = content
  const isText = block?.type === 'text' && others.length === 0 && Object.keys(block).length === 2
  const text = isText ? block.text : undefined
  const time = timestamp.getTime()
  return message.type === 'user'
    ? ([text ?? message.content, 0, id, time, metadata] as const)
    : ([text ?? message.content, message.toolCalls ?? 1, id, time, metadata] as const)
}

function unpackMessage(packed: ReturnType<typeof packMessage>): Message {
  if (!Array.isArray(packed)) return messageFromJSON(packed)
  const [said, calls, id, time, metadata] = packed as Exclude<typeof packed, MessageJSON>
  const options = { id, timestamp: new Date(time), metadata }
  // The casts are right, because `packMessage` writes 0 for the messages of users alone.
  if (calls === 0) return new UserMessage(said as string | readonly UserContent[], options)
  const toolCalls = calls === 1 ? undefined : calls
  return new AssistantMessage(said as string | readonly AssistantContent[], toolCalls, options)
}

function packCall(state: CallState, own: readonly ToolCall[]) {
  const { call, startedEpoch, mayHaveRun, outcome, isUnknown, interruptId, isHidden } = state
  const { parsed, isFound, late, found } = state
  const place = own.indexOf(call)
  const what = place < 0 ? call : place
  return [
    what,
    startedEpoch,
    mayHaveRun,
    outcome,
    isUnknown,
    interruptId,
    isHidden,
    parsed,
    isFound,
    late,
    found,
  ] as const
}

function unpackEntry(packed: PackedEntry): Entry {
  const [said, side, at, turnId, stepId, agent, isSilent, attachments, files, subagentId] = packed
  const [, , , , , , , , , , metadata, packedCalls, results, isRemoved, dropped, ...rest] = packed
  const [editedSeq, delivery, refusal] = rest
  const message = unpackMessage(said)
  const own = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  const calls = packedCalls === 0 ? [] : packedCalls.map((call) => unpackCall(call, own))
  return {
    message,
    side,
    at,
    turnId,
    stepId,
    agent,
    isSilent,
    attachments: attachments === 0 ? [] : attachments,
    files: files === 0 ? [] : files,
    subagentId,
    metadata,
    calls,
    results:
      typeof results === 'number'
        ? resultsOf(message.id, calls, new Date(results))
        : results && unpackMessage(results),
    isRemoved,
    dropped,
    editedSeq,
    delivery,
    refusal,
  }
}

function unpackCall(packed: PackedCall, own: readonly ToolCall[]): CallState {
  const [what, startedEpoch, mayHaveRun, outcome, isUnknown, interruptId, isHidden] = packed
  const [, , , , , , , parsed, isFound, late, found] = packed
  const call = typeof what === 'number' ? own[what]! : what
  return {
    call,
    parsed: parsed ?? undefined,
    startedEpoch,
    mayHaveRun,
    outcome,
    isUnknown,
    interruptId,
    isHidden,
    isFound,
    late,
    found,
  }
}
