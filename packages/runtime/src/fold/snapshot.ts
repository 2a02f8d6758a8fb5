import { isMadeOf, resultsOf } from './calls.ts'
import { deserialize, serialize } from 'node:v8'
import { crc32 } from 'node:zlib'
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
import { sha256Hex } from '@skein/base'
import { EVENT_VERSION } from '../contract/event.ts'
import {
  type CallState,
  emptyKernelState,
  type Entry,
  type KernelState,
  type RequestLog,
} from '../contract/state.ts'

/** Must be raised when the same events give another state, or when a snapshot is written in another form. */
const FOLD_VERSION = 2

/**
 * Names the format of a snapshot. A snapshot is ignored if another version of the fold or of the events wrote
 * it, or if the state has other members now.
 */
export const SNAPSHOT_FORMAT: string = [
  FOLD_VERSION,
  EVENT_VERSION,
  sha256Hex(Object.keys(emptyKernelState()).join()).slice(0, 12),
].join('.')

/** How many entries, or how many ids of queued messages, are in one part of a new snapshot. */
const PART_SIZE = 128

/** What is known about the stored snapshot of a fold. */
export interface SavedSnapshot {
  /** The last event that the snapshot contains. */
  readonly seq: number
  readonly sums: PartSums
}

/** The checksums of the parts of each list, and how many members of the list a part has. */
interface PartSums {
  readonly size: number
  readonly entries: readonly number[]
  readonly queued: readonly number[]
}

/** What `takeSnapshot` needs of a fold. */
interface SnapshotSource {
  readonly state: KernelState
  readonly saved: SavedSnapshot | undefined
  /** The index of the first entry that may differ from the saved snapshot. */
  readonly changedFrom: number
}

/** The parts of a snapshot that differ from those that are stored, by their place. */
export interface SnapshotParts {
  readonly parts: ReadonlyMap<number, Uint8Array>
  readonly saved: SavedSnapshot
}

/** The state without what grows with the thread; the other parts contain that, or it is computed again. */
type SmallState = Omit<
  KernelState,
  'entries' | 'places' | 'callPlaces' | 'queuedIds' | 'lastLog'
> & { readonly lastLog: Readonly<Record<'a' | 'b', PackedLog | undefined>> }

interface PackedLog extends Omit<RequestLog, 'messageIds'> {
  /** Ids in the order of the thread as runs of [first index, count], and other ids as they are. */
  readonly ids: readonly (string | readonly [number, number])[]
}

/** The first part of a snapshot. Parts with entries have odd places, parts with queued ids even ones. */
interface FirstPart {
  readonly format: string
  readonly sums: PartSums
  readonly state: SmallState
}

/**
 * Encodes the state of a fold. Parts with entries before `changedFrom` are left out if the stored snapshot has
 * them. Returns undefined for a state that could not be restored exactly: an edit has changed the id of a message.
 */
export function takeSnapshot(
  { state, saved, changedFrom }: SnapshotSource,
  partSize: number = PART_SIZE,
): SnapshotParts | undefined {
  const { entries, places, callPlaces: _calls, queuedIds, lastLog, ...small } = state
  const parts = new Map<number, Uint8Array>()
  const old = saved?.sums ?? { size: partSize, entries: [], queued: [] }
  const { size } = old
  // Ids are only added to the list of queued messages, so its last part is the first that can differ.
  const queuedFrom = Math.max(old.queued.length - 1, 0)
  const from = Math.min(Math.floor(changedFrom / size), old.entries.length)
  for (let place = from * size; place < entries.length; place++)
    if ((places.get(entries[place]!.message.id) ?? -1) < place) return undefined
  const sums = {
    size,
    entries: [...old.entries.slice(0, from), ...add(entries, from, 1, packEntry)],
    queued: [...old.queued.slice(0, queuedFrom), ...add([...queuedIds], queuedFrom, 2, (id) => id)],
  }
  const order = new IdOrder(entries)
  const packed = { a: order.pack(lastLog.a, places), b: order.pack(lastLog.b, places) }
  const first: FirstPart = { format: SNAPSHOT_FORMAT, sums, state: { ...small, lastLog: packed } }
  const bytes = serialize(first)
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(bytes))
  parts.set(0, Buffer.concat([sum, bytes]))
  return { parts, saved: { seq: state.seq, sums } }

  /** Encodes the parts of a list from one part on; returns their checksums. */
  function add<T>(
    list: readonly T[],
    fromPart: number,
    place: 1 | 2,
    pack: (one: T) => unknown,
  ): number[] {
    const added: number[] = []
    for (let part = fromPart; part * size < list.length; part++) {
      const own = list.slice(part * size, (part + 1) * size)
      const encoded = serialize(own.map((one) => pack(one)))
      added.push(crc32(encoded))
      parts.set(part * 2 + place, encoded)
    }
    return added
  }
}

/** A state that was read from a snapshot. */
export interface RestoredSnapshot {
  readonly state: KernelState
  readonly saved: SavedSnapshot
}

/** Decodes a snapshot. Returns undefined if a part is damaged or missing, or has another form. */
export function restoreSnapshot(
  parts: ReadonlyMap<number, Uint8Array>,
): RestoredSnapshot | undefined {
  const head = parts.get(0)
  if (!head || head.length < 4) return undefined
  const bytes = head.subarray(4)
  if (crc32(bytes) !== new DataView(head.buffer, head.byteOffset).getUint32(0, true))
    return undefined
  try {
    // The checksum is right, so `takeSnapshot` wrote the part, though perhaps that of another version.
    const { format, sums, state: small } = deserialize(bytes) as FirstPart
    if (format !== SNAPSHOT_FORMAT) return undefined
    const { lastLog, ...others } = small
    const state: KernelState = { ...emptyKernelState(), ...others }
    const read = (sum: number, place: number): unknown => {
      const part = parts.get(place)
      if (!part || crc32(part) !== sum) throw new Error('Another writer has replaced the part.')
      return deserialize(part)
    }
    for (const [part, sum] of sums.entries.entries())
      for (const packed of read(sum, part * 2 + 1) as readonly PackedEntry[])
        addEntry(state, unpackEntry(packed))
    for (const [part, sum] of sums.queued.entries())
      for (const [id, seq] of read(sum, part * 2 + 2) as readonly (readonly [string, number])[])
        state.queuedIds.set(id, seq)
    const order = new IdOrder(state.entries)
    state.lastLog.a = order.unpack(lastLog.a)
    state.lastLog.b = order.unpack(lastLog.b)
    return { state, saved: { seq: state.seq, sums } }
  } catch {
    // A part does not belong to the others, or another version of the program or of V8 wrote it.
    return undefined
  }
}

function addEntry(state: KernelState, entry: Entry): void {
  const place = state.entries.push(entry) - 1
  state.places.set(entry.message.id, place)
  for (const { call } of entry.calls) state.callPlaces.set(call.toolCallId, place)
}

type PackedEntry = ReturnType<typeof packEntry>
type PackedCall = ReturnType<typeof packCall>

/** A list is half as long as an object, because objects repeat the names of their members. */
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
  const place = own.indexOf(call)
  const what = place < 0 ? call : place
  return [what, startedEpoch, mayHaveRun, outcome, isUnknown, interruptId, isHidden] as const
}

function unpackEntry(packed: PackedEntry): Entry {
  const [said, side, at, turnId, stepId, agent, isSilent, attachments, files, subagentId] = packed
  const [, , , , , , , , , , metadata, packedCalls, results, isRemoved, dropped, editedSeq] = packed
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
  }
}

function unpackCall(packed: PackedCall, own: readonly ToolCall[]): CallState {
  const [what, startedEpoch, mayHaveRun, outcome, isUnknown, interruptId, isHidden] = packed
  const call = typeof what === 'number' ? own[what]! : what
  return { call, startedEpoch, mayHaveRun, outcome, isUnknown, interruptId, isHidden }
}

/** The ids of all messages in the order of the thread; results follow their message. */
class IdOrder {
  readonly #ids: string[] = []
  /** The index of each entry's message in the list of ids. */
  readonly #starts: number[] = []

  constructor(entries: readonly Entry[]) {
    for (const { message, results } of entries) {
      this.#starts.push(this.#ids.push(message.id) - 1)
      if (results) this.#ids.push(results.id)
    }
  }

  /** Replaces ids that follow each other in the thread by runs. */
  pack(log: RequestLog | undefined, places: ReadonlyMap<string, number>): PackedLog | undefined {
    if (!log) return undefined
    const { messageIds, ...rest } = log
    const ids: (string | [number, number])[] = []
    let next = -1
    for (const id of messageIds) {
      const run = ids.at(-1)
      if (this.#ids[next] === id && typeof run === 'object') run[1]++
      else {
        next = this.#starts[places.get(id) ?? -1] ?? -1
        ids.push(next < 0 ? id : [next, 1])
      }
      if (next >= 0) next++
    }
    return { ...rest, ids }
  }

  unpack(log: PackedLog | undefined): RequestLog | undefined {
    if (!log) return undefined
    const { ids, ...rest } = log
    const messageIds = ids.flatMap((one) =>
      typeof one === 'string' ? one : this.#ids.slice(one[0], one[0] + one[1]),
    )
    return { ...rest, messageIds }
  }
}
