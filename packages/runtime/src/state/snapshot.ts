import { isMadeOf, resultsId, resultsOf } from './calls.ts'
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
} from './kernel-state.ts'

/** Must be raised when the same events give another state, or when a snapshot is written in another form. */
const FOLD_VERSION = 8

/**
 * Names the format of a snapshot. A snapshot is ignored if another version of this code or of the events wrote it,
 * or if the state has other members now.
 */
export function snapshotFormat(): string {
  members ??= sha256Hex(Object.keys(emptyKernelState()).join()).slice(0, 12)
  return [FOLD_VERSION, EVENT_VERSION, members].join('.')
}

/** The hash of the names of a state's members. Made at first use, because it loads Node's cryptography. */
let members: string | undefined

/** How many entries (messages), or how many ids of queued messages, are in one part of a new snapshot. */
const PART_SIZE = 128

/** What is known about the stored snapshot of a thread state. */
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

/** What `takeSnapshot` needs to know about a thread state. */
interface SnapshotSource {
  readonly state: KernelState
  readonly saved: SavedSnapshot | undefined
  /** The index of the first entry that may differ from the saved snapshot. */
  readonly changedFrom: number
}

/** The parts of a snapshot that differ from the stored ones, by their numbers (places). */
export interface SnapshotParts {
  readonly parts: ReadonlyMap<number, Uint8Array>
  readonly saved: SavedSnapshot
}

/** The state without the lists that grow with the thread; those are in the other parts or are computed again. */
type SmallState = Omit<
  KernelState,
  'entries' | 'places' | 'callPlaces' | 'queuedIds' | 'lastLog'
> & { readonly lastLog: Readonly<Record<'a' | 'b', PackedLog | undefined>> }

interface PackedLog extends Omit<RequestLog, 'messageIds'> {
  /** Ids that follow each other in the thread, as runs [first index, count]; other ids as they are. */
  readonly ids: readonly (string | readonly [number, number])[]
}

/** The first part of a snapshot, number 0. Parts with entries have odd numbers, parts with queued ids even ones. */
interface FirstPart {
  readonly format: string
  readonly sums: PartSums
  readonly state: SmallState
}

/**
 * Encodes the state of a thread. Parts that end before the entry `changedFrom` are left out if the stored snapshot
 * has them. Returns undefined if an edit has changed the id of a message, because restoring finds messages by their ids.
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
    entries: [...old.entries.slice(0, from), ...add(entries, from, 1, packEntries)],
    queued: [
      ...old.queued.slice(0, queuedFrom),
      ...add([...queuedIds], queuedFrom, 2, (ids) => ids),
    ],
  }
  const order = new IdOrder()
  for (const { message, results } of entries) order.add(message.id, results?.id)
  const packed = { a: order.pack(lastLog.a, places), b: order.pack(lastLog.b, places) }
  const first: FirstPart = { format: snapshotFormat(), sums, state: { ...small, lastLog: packed } }
  const bytes = serialize(first)
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(bytes))
  parts.set(0, Buffer.concat([sum, bytes]))
  return { parts, saved: { seq: state.seq, sums } }

  /** Encodes the parts of a list, beginning with the part `fromPart`; returns their checksums. */
  function add<T>(
    list: readonly T[],
    fromPart: number,
    place: 1 | 2,
    pack: (own: readonly T[]) => unknown,
  ): number[] {
    const added: number[] = []
    for (let part = fromPart; part * size < list.length; part++) {
      const own = list.slice(part * size, (part + 1) * size)
      const encoded = serialize(pack(own))
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
    // The checksum is right, so `takeSnapshot` wrote the part, though perhaps in another version.
    const { format, sums, state: small } = deserialize(bytes) as FirstPart
    if (format !== snapshotFormat()) return undefined
    const { lastLog, ...others } = small
    const state: KernelState = { ...emptyKernelState(), ...others }
    const read = (sum: number, place: number): unknown => {
      const part = parts.get(place)
      if (!part || crc32(part) !== sum) throw new Error('Another writer has replaced the part.')
      return deserialize(part)
    }
    const order = new IdOrder()
    const bodies: Uint8Array[] = []
    for (const [part, sum] of sums.entries.entries()) {
      const { ids, results, calls, body } = read(sum, part * 2 + 1) as PackedEntries
      for (const [at, id] of ids.entries()) {
        state.places.set(id, part * sums.size + at)
        order.add(id, results[at] === 1 ? resultsId(id) : results[at] || undefined)
      }
      for (const [callId, at] of calls) state.callPlaces.set(callId, part * sums.size + at)
      bodies.push(body)
      state.entries.length += ids.length
    }
    decodeLater(state, bodies, sums.size)
    for (const [part, sum] of sums.queued.entries())
      for (const [id, seq] of read(sum, part * 2 + 2) as readonly (readonly [string, number])[])
        state.queuedIds.set(id, seq)
    state.lastLog.a = order.unpack(lastLog.a)
    state.lastLog.b = order.unpack(lastLog.b)
    return { state, saved: { seq: state.seq, sums } }
  } catch {
    // A part does not belong to the others, or another version of the program or of V8 wrote it.
    return undefined
  }
}

/** A part with entries. The ids for finding a message are beside the entries, which are decoded only when used. */
interface PackedEntries {
  readonly ids: readonly string[]
  /** The id of each entry's results; 0 if there are none, 1 if it is the usual one (see `resultsId`). */
  readonly results: readonly (string | 0 | 1)[]
  /** The ids of calls, each with the index of its entry in this part. */
  readonly calls: readonly (readonly [string, number])[]
  readonly body: Uint8Array
}

function packEntries(entries: readonly Entry[]): PackedEntries {
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
 * Lets the entries of a state be decoded part by part, when an entry of the part is first used: whoever opens a long
 * thread mostly wants its last messages. When all parts are decoded, the plain list replaces the proxy.
 */
function decodeLater(state: KernelState, bodies: (Uint8Array | undefined)[], size: number): void {
  const { entries } = state
  // Only this function replaces the list of a state, by a proxy with the same entries.
  const holder: { entries: Entry[] } = state
  let left = bodies.length
  const decode = (part: number): void => {
    const body = bodies[part]
    if (!body) return
    bodies[part] = undefined
    for (const [at, packed] of (deserialize(body) as readonly PackedEntry[]).entries()) {
      const place = part * size + at
      if (!Object.hasOwn(entries, place)) entries[place] = unpackEntry(packed)
    }
    if (--left === 0) holder.entries = entries
  }
  // A key that is no index, e.g. `length`, gives NaN, and no part has that number.
  const decodeAt = (key: string | symbol): void => {
    if (left > 0 && typeof key === 'string') decode(Math.floor(Number(key) / size))
  }
  if (left === 0) return
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

/** The ids of all messages in the order of the thread; results follow their message. */
class IdOrder {
  readonly #ids: string[] = []
  /** The index of each entry's message in the list of ids. */
  readonly #starts: number[] = []

  add(id: string, results: string | undefined): void {
    this.#starts.push(this.#ids.push(id) - 1)
    if (results !== undefined) this.#ids.push(results)
  }

  /** Replaces ids that follow each other in the thread by runs [first index, count]. */
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
