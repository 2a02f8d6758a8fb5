import { resultsId } from './calls.ts'
import { deserialize, serialize } from 'node:v8'
import { crc32 } from 'node:zlib'
import { sha256Hex } from '@skein/base'
import { EVENT_VERSION } from '../contract/event.ts'
import { emptyKernelState, type KernelState, type RequestLog } from './kernel-state.ts'
import { type PackedEntries, packEntries, decodeLater } from './packed-entries.ts'
import { IdOrder } from './id-order.ts'

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

export interface PackedLog extends Omit<RequestLog, 'messageIds'> {
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
  const logs = { a: order.pack(lastLog.a, places), b: order.pack(lastLog.b, places) }
  const first: FirstPart = { format: snapshotFormat(), sums, state: { ...small, lastLog: logs } }
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
    const sums: number[] = []
    for (let part = fromPart; part * size < list.length; part++) {
      const own = list.slice(part * size, (part + 1) * size)
      const bytes = serialize(pack(own))
      sums.push(crc32(bytes))
      parts.set(part * 2 + place, bytes)
    }
    return sums
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
    const readPart = (sum: number, place: number): unknown => {
      const part = parts.get(place)
      if (!part || crc32(part) !== sum) throw new Error('Another writer has replaced the part.')
      return deserialize(part)
    }
    const order = new IdOrder()
    const bodies: Uint8Array[] = []
    for (const [part, sum] of sums.entries.entries()) {
      const { ids, results, calls, body } = readPart(sum, part * 2 + 1) as PackedEntries
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
      for (const [id, seq] of readPart(sum, part * 2 + 2) as readonly (readonly [string, number])[])
        state.queuedIds.set(id, seq)
    state.lastLog.a = order.unpack(lastLog.a)
    state.lastLog.b = order.unpack(lastLog.b)
    return { state, saved: { seq: state.seq, sums } }
  } catch {
    // A part does not belong to the others, or another version of the program or of V8 wrote it.
    return undefined
  }
}
