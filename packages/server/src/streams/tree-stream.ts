import { SkeinError } from '@skein/base'
import type { NumberedEvent, Runtime } from '@skein/runtime'
import type { SubscribeOptions } from '@skein/runtime/serving'
import { MergeQueue } from './merge-queue.ts'
import { END_EVENT, encodedEvent } from './thread-stream.ts'
import {
  LATER,
  SKIPPED,
  formatPosition,
  parsePosition,
  type TreePosition,
} from './tree-position.ts'
import type { ThreadIdentity } from '../operations/thread-identity.ts'

/** An event of a thread or of one of its descendants, with its path in the tree. */
export interface TreeEvent extends NumberedEvent {
  readonly threadId: string
  /** Names of the agents from the streamed thread down to the thread of this event. */
  readonly path: readonly string[]
  /** The position in the whole stream; pass it as `after` to continue from here. */
  readonly position: string
}

interface Followed {
  readonly threadId: string
  readonly parentId: string | undefined
  /** The streamed thread's agent (at this point of its log), then the names of the children down to this thread. */
  path: readonly string[]
  readonly position: TreePosition
}

interface TreeStreamOptions extends Pick<
  SubscribeOptions,
  'after' | 'since' | 'includesDeltas' | 'untilParked'
> {
  readonly signal: AbortSignal
  readonly maxThreads: number
  /**
   * Whether descendants that already exist are read from their ends instead of their beginnings. Those that
   * have ended are not read at all.
   */
  readonly isLive?: boolean
}

/** How many events may wait to be sent; each thread whose events are read may hold one more event. */
const CAPACITY = 64

/** Yields the numbered events of a thread and all its descendants as server-sent events. */
export async function* treeStream(
  runtime: Runtime,
  root: ThreadIdentity,
  options: TreeStreamOptions,
): AsyncGenerator<string, void, undefined> {
  const position = parsePosition(options.after ?? '0') ?? { id: '0', children: [] }
  for await (const event of new Tree(runtime, root, position, options).read()) {
    const { threadId, path, id, position } = event
    const place = JSON.stringify({ threadId, path, id }).slice(0, -1)
    yield* encodedEvent({ ...event, id: position }, [`${place},"event":`, '}'])
  }
  if (!options.signal.aborted) yield END_EVENT
}

class Tree {
  readonly #runtime: Runtime
  readonly #root: Followed
  readonly #options: TreeStreamOptions
  readonly #queue = new MergeQueue<{ source: Followed; numbered: NumberedEvent } | 'parked'>(
    CAPACITY,
  )
  readonly #abort = new AbortController()
  /** The threads whose events are read. */
  readonly #followed = new Set<Followed>()
  /** With `untilParked`, once no thread of the tree works any more: the last event of each thread that is read. */
  #lastSeqs: Map<Followed, number> | undefined
  #failure: { error: unknown } | undefined

  constructor(
    runtime: Runtime,
    root: ThreadIdentity,
    position: TreePosition,
    options: TreeStreamOptions,
  ) {
    this.#runtime = runtime
    this.#root = { threadId: root.id, parentId: undefined, path: [root.agent], position }
    this.#options = options
  }

  /**
   * Yields the events. The position advances when the reader receives an event, not when the event is read from its
   * thread.
   */
  async *read(): AsyncGenerator<TreeEvent, void, undefined> {
    const leave = (): void => this.#leave()
    this.#options.signal.addEventListener('abort', leave, { once: true })
    try {
      if (this.#options.signal.aborted) return
      await this.#resume(this.#root)
      for await (const item of this.#queue.read()) {
        if (item === 'parked') {
          this.#lastSeqs = new Map()
          if (await this.#hasAll(this.#lastSeqs)) return
          continue
        }
        const { source, numbered } = item
        source.position.id = numbered.id
        const { event } = numbered
        if (event.type === 'thread_created') this.#name(source, event)
        const { threadId, path } = source
        if (event.type === 'subagent_created') {
          const position: TreePosition = { id: '0', children: [] }
          source.position.children.push(position)
          const child = { threadId: event.reference, parentId: threadId, position }
          this.#follow({ ...child, path: [...path, event.name] })
        }
        yield { ...numbered, threadId, path, position: formatPosition(this.#root.position) }
        if (event.type === 'agent_handoff') this.#name(source, event)
        if (this.#lastSeqs && (await this.#hasAll(this.#lastSeqs))) return
      }
      if (this.#failure) throw this.#failure.error
    } finally {
      this.#options.signal.removeEventListener('abort', leave)
      this.#leave()
    }
  }

  /** Sets the agent of the streamed thread from an event that names it; its children keep their names. */
  #name(thread: Followed, event: NumberedEvent['event']): void {
    if (thread !== this.#root) return
    if (event.type === 'thread_created' && 'agent' in event) thread.path = [event.agent]
    if (event.type === 'agent_handoff') thread.path = [event.toAgentId.replace(/\/[ab]$/, '')]
  }

  /** Begins to read a thread at its position, and the children that were created before that position. */
  async #resume(thread: Followed): Promise<void> {
    const children = await this.#createdBefore(thread)
    this.#follow(thread)
    // Surplus children in the position are dropped; only a position that this server did not create has them.
    thread.position.children.length = children.length
    for (const child of children) {
      const head = await this.#headOf(child)
      if (!head || head.parentId !== child.parentId) continue
      const { position } = child
      const isOver = head.lifecycle === 'terminated' || head.lifecycle === 'erased'
      if (position.id === LATER) position.id = isOver ? SKIPPED : String(head.seq)
      if (position.id !== SKIPPED) await this.#resume(child)
    }
  }

  async #createdBefore(thread: Followed): Promise<readonly Followed[]> {
    const { threadId, position } = thread
    const children: Followed[] = []
    const end = Math.trunc(Number(position.id))
    for (let after = 0; after < end;) {
      const events = await this.#runtime.threads.events(threadId, { after, limit: 1000 })
      for (const { seq, event } of events) {
        after = seq
        if (seq > end) break
        this.#name(thread, event)
        if (event.type !== 'subagent_created') continue
        const id = this.#options.isLive ? LATER : '0'
        const place = (position.children[children.length] ??= { id, children: [] })
        children.push({
          threadId: event.reference,
          parentId: threadId,
          path: [...thread.path, event.name],
          position: place,
        })
      }
      if (events.length === 0) break
    }
    return children
  }

  /**
   * Whether the reader has received all events that the streamed threads had when the tree came to rest. The last
   * event of each thread is looked up only once, also of threads that are found meanwhile.
   */
  async #hasAll(lastSeqs: Map<Followed, number>): Promise<boolean> {
    for (const thread of this.#followed) {
      const lastSeq = lastSeqs.get(thread)
      const last = lastSeq ?? (await this.#headOf(thread))?.seq ?? 0
      lastSeqs.set(thread, last)
      if (Math.trunc(Number(thread.position.id)) < last) return false
    }
    return true
  }

  #follow(thread: Followed): void {
    if (this.#followed.size >= this.#options.maxThreads) return
    this.#followed.add(thread)
    void this.#pump(thread).catch((error: unknown) => {
      if (isGone(error) && thread !== this.#root) return
      this.#failure ??= { error }
      this.#queue.close()
    })
  }

  async #pump(source: Followed): Promise<void> {
    if (!(await this.#belongs(source))) {
      this.#followed.delete(source)
      return
    }
    const isRoot = source === this.#root
    const { includesDeltas = true, since, untilParked = false } = this.#options
    const events = this.#runtime.subscribe(source.threadId, {
      after: source.position.id,
      includesDeltas,
      signal: this.#abort.signal,
      // Only the root thread is watched until it comes to rest, because it never rests while a descendant works.
      ...(isRoot && untilParked && { untilParked, since: since && parsePosition(since)?.id }),
    })
    for await (const numbered of events) if (!(await this.#queue.put({ source, numbered }))) return
    if (!isRoot) return // a removed child ends its own events only
    if (untilParked && (await this.#headOf(source))) await this.#queue.put('parked')
    else this.#queue.close() // the root thread was removed
  }

  async #headOf({ threadId }: Followed): Promise<ThreadIdentity | undefined> {
    try {
      return await this.#runtime.threads.head(threadId)
    } catch (error) {
      if (isGone(error)) return undefined
      throw error
    }
  }

  /**
   * Whether the thread is really a child of the parent. A copied log names the children of the original
   * thread, and a forged log could name any thread.
   */
  async #belongs(thread: Followed): Promise<boolean> {
    const { parentId } = thread
    return parentId === undefined || (await this.#headOf(thread))?.parentId === parentId
  }

  #leave(): void {
    this.#abort.abort()
    this.#queue.close()
  }
}

function isGone(error: unknown): boolean {
  return SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND'
}
