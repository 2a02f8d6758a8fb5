import {
  memoryStore,
  StoreError,
  type Claim,
  type ClaimOptions,
  type Commit,
  type CommitResult,
  type HeldThread,
  type RuntimeEvent,
  type Store,
  type StoredEvent,
  type ThreadChange,
} from '@skein/runtime'
import type { Clock } from '@skein/base'
import type { RecordedThread } from '../recorded/recorded-thread.ts'
import { madeBy } from '../recorded/read-recording.ts'
import { eventDifference, type IdBinding, storedEvent, UUID } from './match-event.ts'

/** How far the log of one thread has been played. */
export interface Track {
  readonly threadId: string
  readonly events: readonly StoredEvent[]
  /** The index of the next recorded event. */
  place: number
  /** The epoch of the last claim, as the recording counts. */
  epoch: number
  /** The epoch of the last claim in the memory store. */
  ownEpoch: number
  isCreated: boolean
  isTerminated: boolean
  /** Whether the running work has lost the thread, because its process died there. */
  isFenced: boolean
}

/** A commit that waits for its place. */
interface Waiting {
  readonly commit: Commit
  readonly resolve: () => void
  readonly reject: (error: Error) => void
  /** The first event that did not match when the commit was last looked at. */
  difference: Mismatch | undefined
}

/** Where a commit does not match the recording. */
export interface Mismatch {
  readonly threadId: string
  readonly seq: number
  readonly produced: RuntimeEvent | undefined
  readonly recorded: RuntimeEvent | undefined
  readonly path: string
}

/**
 * A store that releases each commit when the logs have reached its recorded place, and stores the recorded events in
 * place of the produced ones. Once it is `isFree`, it is an ordinary store in memory.
 */
export class PlayedStore {
  readonly tracks: Map<string, Track> = new Map()
  readonly store: Store
  readonly #base: Store
  readonly #made = new Set<string>()
  #isClosed = false
  readonly #waiting = new Set<Waiting>()
  /** The arguments that models have sent, by call. */
  readonly raw: Map<string, unknown> = new Map()
  /** The ids that the run has made, and the recorded ones. */
  readonly bound: Map<string, string> = new Map()
  /** Counts what has happened, so that the player notices when nothing happens any more. */
  changes = 0
  isFree = false
  /** Called whenever a log has moved. */
  readonly moved: Set<() => void> = new Set()
  /** Called before a commit with a difference may be stored in a free run. */
  onStored: ((threadId: string, events: readonly RuntimeEvent[]) => void) | undefined
  readonly #tolerates: (produced: RuntimeEvent, path: string) => boolean

  constructor(
    threads: Iterable<RecordedThread>,
    {
      clock,
      tolerates = () => false,
    }: {
      readonly clock: Clock
      /** Whether a difference at this place is none, e.g. the hash of definitions that were changed on purpose. */
      readonly tolerates?: ((produced: RuntimeEvent, path: string) => boolean) | undefined
    },
  ) {
    this.#base = memoryStore({ clock })
    this.#tolerates = tolerates
    for (const { threadId, events } of threads)
      this.tracks.set(threadId, {
        threadId,
        events,
        place: 0,
        epoch: 0,
        ownEpoch: 0,
        isCreated: false,
        isFenced: false,
        isTerminated: false,
      })
    this.store = new Proxy(this.#base, {
      get: (target, name) => {
        if (name === 'rewritesEvents') return true
        if (name === 'snapshots') return undefined
        if (name === 'commit') return (commit: Commit) => this.commit(commit)
        if (name === 'claim') return (id: string, options: ClaimOptions) => this.claim(id, options)
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }

  /** Remembers an id that the run has made. */
  made(id: string): string {
    this.#made.add(id)
    return id
  }

  /** Returns the recorded id for an id that the run has made. */
  recordedId(id: string): string {
    return this.bound.get(id) ?? id
  }

  get hasWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** The commits that wait, by the thread that writes them. */
  waitingOf(threadId: string): boolean {
    return [...this.#waiting].some(({ commit }) => writerOf(commit) === threadId)
  }

  /** The differences of the commits that wait. */
  mismatches(): readonly Mismatch[] {
    return [...this.#waiting].flatMap(({ difference }) => difference ?? [])
  }

  /** Refuses the commits of a thread's running work, as a store does after another claim. */
  fence(threadId: string): void {
    const track = this.tracks.get(threadId)
    if (track) track.isFenced = true
    this.wake()
  }

  /** Lets every commit that waits look again. */
  wake(): void {
    this.changes++
    for (const waiting of this.#waiting) waiting.resolve()
    for (const look of this.moved) look()
  }

  /** From now on, commits are stored as they are. */
  free(): void {
    this.isFree = true
    this.wake()
  }

  /** Stores the next recorded events of a thread, as if they had come from outside. */
  async inject(track: Track, count: number): Promise<void> {
    const events = track.events.slice(track.place, track.place + count).map(({ event }) => event)
    const first = events[0]
    const change: ThreadChange =
      first?.type === 'thread_created' && !track.isCreated
        ? { id: track.threadId, create: newThread(first), append: events }
        : {
            id: track.threadId,
            append: events,
            ...(events.some(({ type }) => type === 'thread_terminated') && {
              head: { lifecycle: 'terminated' },
            }),
          }
    track.isCreated = true
    await this.#base.commit({ point: 'played', threads: [change], blobs: [] })
    track.place += count
    this.#note(track.threadId, events)
    this.wake()
  }

  async addBlobs(blobs: ReadonlyMap<string, Uint8Array>, threadId: string): Promise<void> {
    if (blobs.size === 0) return
    await this.#base.commit({
      point: 'played',
      threads: [{ id: threadId }],
      blobs: [...blobs].map(([hash, bytes]) => ({ hash, bytes })),
    })
  }

  async claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined> {
    this.changes++
    const claim = await this.#base.claim(threadId, options)
    const track = this.tracks.get(threadId)
    if (!claim || 'heldBy' in claim || !track) return claim
    track.ownEpoch = claim.epoch
    track.epoch = nextEpoch(track)
    track.isFenced = false
    return { head: { ...claim.head, epoch: track.epoch }, epoch: track.epoch }
  }

  async commit(commit: Commit): Promise<CommitResult> {
    for (;;) {
      if (this.#isClosed) throw ended()
      const threads = commit.threads.map((change) => this.#renamed(change))
      for (const change of threads) this.#check(change)
      const played = this.isFree ? threads : this.#played(threads)
      if (Array.isArray(played)) {
        const own = { ...commit, threads: played.map((change) => this.#unfenced(change)) }
        const result = await this.#base.commit(own)
        for (const { id, append = [] } of played) {
          const track = this.tracks.get(id)
          if (track && !this.isFree) track.place += append.length
          if (track) track.isCreated = true
          this.#note(id, append)
        }
        this.wake()
        return result
      }
      this.changes++
      await new Promise<void>((resolve, reject) => {
        const waiting: Waiting = {
          commit,
          difference: played as Mismatch, // not an array
          resolve: () => {
            this.#waiting.delete(waiting)
            resolve()
          },
          reject: (error) => {
            this.#waiting.delete(waiting)
            reject(error)
          },
        }
        this.#waiting.add(waiting)
      })
    }
  }

  /** Gives up the commits that wait, at the end of a run. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#waiting) reject(ended())
  }

  /** Returns the changes with the recorded events, or where they differ. */
  #played(threads: readonly ThreadChange[]): ThreadChange[] | Mismatch {
    const bound = new Map(this.bound)
    const binding: IdBinding = { isMade: (id) => this.#made.has(id), recorded: bound }
    const places = new Map<string, number>()
    const played: ThreadChange[] = []
    for (const change of threads) {
      const id = bound.get(change.id) ?? change.id
      const track = this.tracks.get(id)
      if (!track) {
        if (!change.append?.length && !change.create) {
          played.push({ ...change, id })
          continue
        }
        return { threadId: id, seq: 1, produced: change.append?.[0], recorded: undefined, path: '' }
      }
      const from = places.get(id) ?? track.place
      const append: RuntimeEvent[] = []
      for (const [index, produced] of (change.append ?? []).entries()) {
        const recorded = track.events[from + index]?.event
        const path = recorded ? eventDifference(produced, recorded, binding) : ''
        if (!recorded || (path !== undefined && !this.#tolerates(produced, path)))
          return { threadId: id, seq: from + index + 1, produced, recorded, path: path ?? '' }
        append.push(storedEvent(produced, recorded))
      }
      places.set(id, from + append.length)
      const isChange = change.append !== undefined
      const create = change.create && (this.#rename(change.create, bound) as ThreadChange['create'])
      played.push({ ...change, id, ...(create && { create }), ...(isChange && { append }) })
    }
    for (const [made, recorded] of bound) this.bound.set(made, recorded)
    return played
  }

  #renamed(change: ThreadChange): ThreadChange {
    const id = this.bound.get(change.id)
    return id === undefined ? change : { ...change, id }
  }

  #rename(value: unknown, bound: ReadonlyMap<string, string>): unknown {
    const json = JSON.stringify(value)
    return JSON.parse(json.replace(UUID, (id) => bound.get(id) ?? id))
  }

  /** Refuses what a store refuses, before the commit waits. */
  #check({ id, fence, expectSeq, mustBeLive }: ThreadChange): void {
    const track = this.tracks.get(id)
    if (!track) return
    if (fence !== undefined && (track.isFenced || fence !== track.epoch))
      throw new StoreError(`The thread ${id} is owned by a newer claim.`, { code: 'FENCED' })
    if (mustBeLive && track.isTerminated)
      throw new StoreError(`The thread ${id} was terminated.`, { code: 'THREAD_TERMINATED' })
    if (!this.isFree && expectSeq !== undefined && expectSeq !== track.place)
      throw new StoreError(`The log of thread ${id} has moved.`, { code: 'LOG_MOVED' })
  }

  #unfenced(change: ThreadChange): ThreadChange {
    const track = this.tracks.get(change.id)
    if (!track || change.fence === undefined) return change
    return { ...change, fence: track.ownEpoch }
  }

  #note(threadId: string, events: readonly RuntimeEvent[]): void {
    const track = this.tracks.get(threadId)
    for (const event of events) {
      if (event.type === 'thread_terminated' && track) track.isTerminated = true
      if (event.type === 'message_added' || event.type === 'message_updated')
        for (const call of madeBy(event.message)) this.raw.set(call.toolCallId, call.arguments)
    }
    this.onStored?.(threadId, events)
  }
}

function ended(): StoreError {
  return new StoreError('The played run has ended.', { code: 'STORE_CLOSED' })
}

/** The thread whose work writes a commit. */
function writerOf({ threads }: Commit): string | undefined {
  return threads.find(({ fence }) => fence !== undefined)?.id
}

/** The epoch of the next claim: that of the next recorded event that has one, else a new one. */
function nextEpoch({ events, place, epoch }: Track): number {
  for (let index = place; index < events.length; index++) {
    const { event } = events[index]!
    if ('epoch' in event && typeof event.epoch === 'number') return Math.max(event.epoch, epoch)
  }
  return epoch + 1
}

function newThread(
  event: RuntimeEvent & { type: 'thread_created' },
): NonNullable<ThreadChange['create']> {
  return {
    tenant: 'default',
    owner: null,
    agent: event.agent,
    parentId: event.parent?.threadId ?? null,
    rootId: event.threadId,
    title: event.title ?? null,
    tags: [],
    clientId: null,
    createdAt: Date.parse(event.at),
  }
}
