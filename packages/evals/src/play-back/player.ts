import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTick } from 'node:timers/promises'
import { defer, ErrorCode, type LLMRequest, type StreamEvent } from '@skein/ai'
import { type IdSource, isObject, type JsonObject, uuidV7 } from '@skein/base'
import {
  createRuntime,
  type EmbeddedRuntime,
  type Registry,
  type RuntimeEvent,
  type RuntimeOptions,
  type StoredEvent,
  type ToolDefinition,
} from '@skein/runtime'
import { noUsage, threadTree } from '../recorded/facts-of.ts'
import { madeBy, saidAs, recordedUsageOf } from '../recorded/read-recording.ts'
import { isAtRest } from '../recorded/at-rest.ts'
import { mayBeInput } from '../recorded/input-events.ts'
import { changedPart, keyOfRecorded, keyOfRequest } from '../recorded/request-key.ts'
import type { ThreadRequest, RecordedThread } from '../recorded/recorded-thread.ts'
import { PlayedDispatcher } from './played-dispatcher.ts'
import { type Mismatch, PlayedStore, type Track } from './played-store.ts'
import { playedRegistry } from './played-registry.ts'
import {
  abortedRequest,
  type Answering,
  eventsOfAnswer,
  recordedFailure,
} from './recorded-model.ts'
import { VirtualTime } from './virtual-time.ts'

/** What a played run needs besides the recording. */
export interface PlayerOptions {
  readonly registry: Registry
  /** Options of the runtime that recorded the thread, as far as they decide about events. */
  readonly runtime?: Pick<
    RuntimeOptions,
    'policy' | 'limits' | 'env' | 'keys' | 'secretKey' | 'id' | 'governorLimits'
  >
  /** Whether a difference is none: see `PlayedStore`. */
  readonly tolerates?: ((produced: RuntimeEvent, path: string) => boolean) | undefined
  /** Called for each request. Returns what answers it; undefined for the recorded answer. */
  readonly ask?:
    ((asked: AskedRequest) => AsyncIterable<readonly StreamEvent[]> | undefined) | undefined
  /** Called when a tool is about to run that has no recorded result here. */
  readonly call?: ((call: PlayedCall) => Promise<unknown>) | undefined
}

/** A request in a played run. */
export interface AskedRequest {
  readonly threadId: string
  readonly request: LLMRequest
  readonly reference: Parameters<Answering>[1]['reference']
  readonly provider: string
  readonly model: string
  /** The request that the recording has at this place. */
  readonly recorded: ThreadRequest | undefined
}

/** A call in a played run. */
export interface PlayedCall {
  readonly threadId: string
  readonly toolCallId: string
  readonly tool: ToolDefinition
  /** The arguments that the model sent. */
  readonly raw: unknown
  /** What the tool's schema made of them. */
  readonly parsed: unknown
}

/** What a tool is given, as far as it matters here. */
interface CallPlace {
  readonly toolCallId?: string
  readonly state: { readonly threadId: string }
  readonly signal?: AbortSignal
}

/** Something of a drain that waits until its thread has reached a place. */
interface Stub {
  readonly threadId: string
  readonly index: number
  readonly release: () => void
  /** Lets the work wait for ever. */
  readonly drop: () => void
}

/** Where play stopped. */
export interface Stuck {
  readonly track: Track
  readonly mismatch: Mismatch | undefined
  /** Whether the loop waits for the answer to a request that the recording does not have. */
  readonly hasUnknownRequest: boolean
}

/** How long a call of the API may take: signatures are made in other threads. */
const MAX_CALL_TICKS = 2_000
/** How many timers may fire early, so that work which has lost its thread can end. */
const MAX_FIRINGS = 20
/** How often in a row nothing may happen before the player acts. */
const QUIET_TICKS = 3
/** How long work that waits for nothing that the player knows may take, in ms: signatures are made in other threads. */
const BUSY_MS = 1_000

/**
 * Runs the loop on a recorded tree of threads. Everything that the loop waits for is answered from the log when the log
 * has reached its place; the player acts only when nothing else can happen.
 */
export class Player {
  readonly recorded: RecordedThread
  readonly played: PlayedStore
  readonly time: VirtualTime
  runtime!: EmbeddedRuntime
  readonly #options: PlayerOptions
  readonly #dispatcher: PlayedDispatcher
  readonly #stubs = new Set<Stub>()
  readonly #thread = new AsyncLocalStorage<string>()
  readonly #requests = new Map<string, readonly ThreadRequest[]>()
  readonly #claimed = new Set<string>()
  /** The threads that wait for the answer to a request that the recording does not have. */
  readonly #unknownRequests = new Set<string>()
  readonly #fencedAt = new Map<string, number>()
  /** Statuses that tools of children have set, each with the id of the child. */
  readonly #statuses = new Set<string>()
  /** Requests that differ from the recorded ones, by the id of the recorded one. */
  readonly otherRequests: Map<
    string,
    { readonly threadId: string; readonly seq: number; readonly part: string }
  > = new Map()
  readonly #nextIds: string[] = []
  readonly errors: unknown[] = []
  /** Requests to real models and other work outside, for which quiet waits. */
  readonly #outside = new Set<Promise<unknown>>()

  constructor(recorded: RecordedThread, options: PlayerOptions) {
    this.recorded = recorded
    this.#options = options
    const threads = [...threadTree(recorded)]
    for (const { threadId, requests } of threads) this.#requests.set(threadId, requests)
    this.time = new VirtualTime(Date.parse(recorded.events[0]!.event.at))
    this.played = new PlayedStore(threads, { clock: this.time.clock, tolerates: options.tolerates })
    this.#dispatcher = new PlayedDispatcher({
      played: this.played,
      time: this.time,
      thread: this.#thread,
      onError: (error) => void this.errors.push(error),
    })
  }

  /** Starts the runtime and creates the root thread. */
  async open(): Promise<void> {
    const { registry, runtime } = this.#options
    const ids: IdSource = () => this.#nextIds.shift() ?? this.played.made(uuidV7())
    this.runtime = await createRuntime({
      secretKey: new Uint8Array(32),
      ...runtime,
      registry: playedRegistry(registry, {
        model: (request, model) => this.#answer(request, model),
        tool: (tool) => (args, context) => this.#call(tool, args, context),
        effect:
          () =>
          (_state, _args, { effectId }) =>
            this.#effect(effectId),
        handler: () => this.#handle(),
        probe: () => () => this.#probe(),
      }),
      store: this.played.store,
      dispatcher: () => this.#dispatcher,
      clock: this.time.clock,
      timers: this.time,
      ids,
      owner: 'player',
      onError: (error) => this.errors.push(error),
      // The log says which requests took too long, so they fail by what it says.
      limits: {
        ...runtime?.limits,
        modelIdleMs: Infinity,
        modelMs: Infinity,
        loopBlockedMs: Infinity,
      },
    })
    await this.runtime.start()
    const root = this.played.tracks.get(this.recorded.threadId)!
    await this.played.inject(root, openingOf(root.events))
    for (const thread of threadTree(this.recorded))
      await this.played.addBlobs(thread.blobs, this.recorded.threadId)
    this.#dispatcher.wake(root.threadId)
  }

  async close(): Promise<void> {
    this.played.close()
    // What still waits is dropped: if it continued, it could ask a model once more.
    for (const { drop } of this.#stubs) drop()
    await this.runtime.stop({ graceMs: 0 })
  }

  /** Plays until every log has reached its end, or until the loop does something else. */
  async play(): Promise<Stuck | undefined> {
    let firings = 0
    for (;;) {
      await this.quiet()
      if (this.played.isFree) return undefined
      const tracks = this.#open()
      const next = tracks[0]
      if (!next) return this.#afterEnd()
      if (this.#moveTime(next)) continue
      // Threads whose next events have the same time wait for one another in any order.
      const { at } = next.events[next.place]!.event
      const now = tracks.filter(({ events, place }) => events[place]!.event.at === at)
      if (await this.#act(now)) continue
      if (this.#hasLost() && firings++ < MAX_FIRINGS && this.time.fireNext()) continue
      const mismatches = this.played.mismatches()
      const mismatch =
        mismatches.find(({ threadId }) => threadId === next.threadId) ?? mismatches[0]
      const track = this.played.tracks.get(mismatch?.threadId ?? '') ?? next
      return { track, mismatch, hasUnknownRequest: this.#unknownRequests.has(track.threadId) }
    }
  }

  /** What the loop does although every log has ended. A thread that was recorded while it worked may continue. */
  #afterEnd(): Stuck | undefined {
    if (!isAtRest(this.recorded)) return undefined
    // Whether work that has lost its thread still reports its result is no decision of the loop.
    const mismatch = this.played
      .mismatches()
      .find(({ produced }) => produced?.type !== 'late_result')
    const [asking] = this.#unknownRequests
    if (!mismatch && asking === undefined) return undefined
    const { tracks } = this.played
    const track = tracks.get(mismatch?.threadId ?? asking ?? '')
    return {
      track: track ?? tracks.get(this.recorded.threadId)!,
      mismatch,
      hasUnknownRequest: asking !== undefined,
    }
  }

  /** Waits until nothing happens any more. */
  async quiet(): Promise<void> {
    let last = -1
    let ticks = 0
    const until = performance.now() + BUSY_MS
    for (;;) {
      await nextTick()
      while (this.#outside.size > 0) await Promise.race(this.#outside)
      const { changes } = this.played
      if (changes !== last) ticks = 0
      last = changes
      if (this.#isBusy() && performance.now() < until) continue
      if (++ticks >= QUIET_TICKS) return
    }
  }

  /** Lets `quiet` wait for work outside, such as a request to a real model. */
  async during<T>(work: Promise<T>): Promise<T> {
    const done = work.catch(() => undefined)
    this.#outside.add(done)
    try {
      return await work
    } finally {
      this.#outside.delete(done)
      this.played.changes++
    }
  }

  /** A recorded answer as a model sends it. */
  async *recordedEvents(
    answer: Parameters<typeof eventsOfAnswer>[0],
  ): AsyncGenerator<readonly StreamEvent[]> {
    yield eventsOfAnswer(answer)
  }

  /** Waits for ever: the run ends here. */
  waitsForEver(threadId: string): Promise<void> {
    return this.#reached(threadId, Infinity)
  }

  /** Wakes a thread after an event was stored for it. */
  wake(threadId: string): void {
    this.#dispatcher.wake(threadId)
  }

  /** Whether some work runs that waits for nothing the player knows. */
  #isBusy(): boolean {
    return [...this.#dispatcher.running.keys()].some(
      (threadId) =>
        !this.played.tracks.get(threadId)?.isFenced &&
        !this.played.waitingOf(threadId) &&
        !this.#hasStub(threadId),
    )
  }

  /** Whether work still runs that has lost its thread. */
  #hasLost(): boolean {
    return [...this.#dispatcher.running.keys()].some((id) => this.played.tracks.get(id)?.isFenced)
  }

  #hasStub(threadId: string): boolean {
    return [...this.#stubs].some((stub) => stub.threadId === threadId)
  }

  /** Lets one of these threads move, by the smallest change that is left. */
  async #act(tracks: readonly Track[]): Promise<boolean> {
    for (const track of tracks)
      if (!this.#mayComeFromTree(track) && (await this.#inject(track))) return true
    for (const track of tracks) if (this.#release(track)) return true
    for (const track of tracks)
      if (this.#mayComeFromTree(track) && !this.#isSourceOpen(track)) {
        if (await this.#inject(track)) return true
      }
    return tracks.some((track) => this.#fence(track))
  }

  /** The threads that have recorded events left, those with the earliest next event first. */
  #open(): readonly Track[] {
    const left = [...this.played.tracks.values()].filter(
      // The log of a child begins with a commit of its parent.
      ({ events, place, isCreated, threadId }) =>
        place < events.length && (isCreated || threadId === this.recorded.threadId),
    )
    const at = ({ events, place }: Track): string => events[place]!.event.at
    return left.length < 2
      ? left
      : left.toSorted((a, b) => (at(a) < at(b) ? -1 : at(a) > at(b) ? 1 : 0))
  }

  #moveTime({ events, place }: Track): boolean {
    const before = this.played.changes
    const moved = this.time.moveTo(Date.parse(events[place]!.event.at))
    return moved || this.played.changes !== before
  }

  /** Whether another thread of the tree may be about to write the next event of a thread. */
  #mayComeFromTree({ events, place, threadId }: Track): boolean {
    const { event } = events[place]!
    const isPlayed = (id: string | undefined): boolean => this.played.tracks.has(id ?? '')
    switch (event.type) {
      case 'subagent_updated':
        // A tool of the child has set its status: both events are inputs.
        if (this.#statuses.has(`${event.reference} ${event.statusText}`)) return false
        return isPlayed(event.reference)
      case 'subagent_created':
      case 'subagent_ended':
        return isPlayed(event.reference)
      case 'message_queued':
        // A silent message of a child is one that a tool has sent (`notifyParent`).
        if (event.isSilent && isPlayed(event.subagentId)) return false
        return (
          isPlayed(event.subagentId) ||
          (event.callers !== undefined && threadId !== this.recorded.threadId)
        )
      case 'interrupt_answered':
        return event.report !== undefined || event.answeredBy === undefined
      case 'stop_requested':
      case 'thread_terminated':
        return threadId !== this.recorded.threadId
      default:
        return false
    }
  }

  /** Whether the thread that has written the next event has not been played so far yet. */
  #isSourceOpen({ events, place, threadId }: Track): boolean {
    const { event } = events[place]!
    const isOpen = (track: Track | undefined): boolean => {
      const next = track?.events[track.place]?.event
      return track?.threadId !== threadId && next !== undefined && next.at <= event.at
    }
    if ('reference' in event && event.type !== 'subagent_created')
      return isOpen(this.played.tracks.get(String(event.reference)))
    if (event.type === 'subagent_created') return false
    return [...this.played.tracks.values()].some(isOpen)
  }

  async #inject(track: Track): Promise<boolean> {
    const { events, place, threadId } = track
    const event = events[place]!.event
    if (mayBeInput(event) === undefined) return false
    if (event.type === 'interrupt_answered' && event.answer.type === 'approve') {
      if (await this.#approve(threadId, event)) return true
    }
    const changed =
      event.type === 'interrupt_answered' && changedCall(events.slice(place, place + 3))
    if (changed) {
      const { interruptId, answeredBy: by = 'unknown' } = event
      const decision = { threadId, interruptId, by, with: changed.arguments }
      // The token is signed for the call with its id.
      this.#nextIds.push(changed.toolCallId)
      if (await this.#throughApi(threadId, place, () => this.runtime.inbox.approve(decision)))
        return true
    }
    if (event.type === 'message_queued' && event.ifBusy && this.#dispatcher.running.has(threadId)) {
      if (await this.#cut(threadId, event)) return true
    }
    if (event.type === 'message_updated' || event.type === 'message_removed') {
      if (this.#dispatcher.running.has(threadId) && (await this.#edit(threadId, event))) return true
    }
    await this.played.inject(track, 1)
    if (event.type === 'status_changed' && event.text !== undefined)
      this.#statuses.add(`${threadId} ${event.text}`)
    if (event.type === 'stop_requested' && !event.afterStep)
      this.#dispatcher.interrupt(threadId, 'stop')
    if (event.type === 'thread_terminated') this.#dispatcher.interrupt(threadId, 'terminate')
    this.#dispatcher.wake(threadId)
    return true
  }

  /** Approves a call through the API, because a token is signed with the keys of the runtime. */
  async #approve(
    threadId: string,
    { interruptId, answeredBy }: RuntimeEvent & { type: 'interrupt_answered' },
  ): Promise<boolean> {
    const { place } = this.played.tracks.get(threadId)!
    return this.#throughApi(threadId, place, () =>
      this.runtime.inbox.approve({ threadId, interruptId, by: answeredBy ?? 'unknown' }),
    )
  }

  /** Sends a message through the API, which tells the running work of the thread. */
  #cut(threadId: string, event: RuntimeEvent & { type: 'message_queued' }): Promise<boolean> {
    const { place } = this.played.tracks.get(threadId)!
    const { message, role, ifBusy } = event
    return this.#throughApi(threadId, place, () =>
      this.runtime.threads.send(threadId, {
        content: (message.content ?? []) as never, // the content of a message of the log
        messageId: event.queueId,
        role,
        ifBusy,
      } as never),
    )
  }

  #edit(
    threadId: string,
    event: RuntimeEvent & { type: 'message_updated' | 'message_removed' },
  ): Promise<boolean> {
    const { place } = this.played.tracks.get(threadId)!
    const { threads } = this.runtime
    return this.#throughApi(threadId, place, () =>
      event.type === 'message_removed'
        ? threads.deleteMessage(threadId, event.messageId)
        : threads.updateMessage(threadId, event.messageId, event.message as never),
    )
  }

  /** Calls the API. Returns whether its commit has moved the log; if not, the caller injects the event. */
  async #throughApi(
    threadId: string,
    place: number,
    work: () => Promise<unknown>,
  ): Promise<boolean> {
    let isDone = false
    const done = work()
      .catch((error: unknown) => void this.errors.push(error))
      .finally(() => (isDone = true))
    for (let ticks = 0; !isDone && ticks < MAX_CALL_TICKS; ticks++) {
      await nextTick()
      if (this.played.tracks.get(threadId)!.place > place) break
    }
    if (isDone) await done
    return this.played.tracks.get(threadId)!.place > place
  }

  #release({ threadId }: Track): boolean {
    const own = [...this.#stubs].find(
      (stub) => stub.threadId === threadId && stub.index !== Infinity,
    )
    own?.release()
    return own !== undefined
  }

  /** Takes the thread away from its running work, as the death of its process did in the recording. */
  #fence(track: Track): boolean {
    const { threadId, place } = track
    if (this.#fencedAt.get(threadId) === place) return false
    this.#fencedAt.set(threadId, place)
    const isRunning = this.#dispatcher.running.has(threadId)
    if (isRunning) {
      this.played.fence(threadId)
      // What ran in the process that died never returns. Requests see the signal.
      for (const stub of this.#stubs) if (stub.threadId === threadId) stub.drop()
      this.#unknownRequests.delete(threadId)
      this.#dispatcher.interrupt(threadId, new Error('The process died here.'))
    }
    this.#dispatcher.wake(threadId)
    return true
  }

  /** Resolves when the log of the thread has reached an index, or when the player releases what waits. */
  async #reached(threadId: string, index: number, signal?: AbortSignal): Promise<void> {
    const track = this.played.tracks.get(threadId)
    const isOver = track && (track.place >= index || (this.played.isFree && index !== Infinity))
    if (!track || isOver || signal?.aborted) return
    this.played.changes++
    await new Promise<void>((resolve) => {
      const stub: Stub = {
        threadId,
        index,
        drop: () => {
          this.#stubs.delete(stub)
          this.played.moved.delete(look)
        },
        release: () => {
          stub.drop()
          signal?.removeEventListener('abort', stub.release)
          this.played.changes++
          resolve()
        },
      }
      const look = (): void => {
        if (track.place >= index || (this.played.isFree && index !== Infinity)) stub.release()
      }
      this.#stubs.add(stub)
      this.played.moved.add(look)
      signal?.addEventListener('abort', stub.release, { once: true })
    })
  }

  /** PlayedAnswers a request as the recording does. */
  async *#answer(
    request: LLMRequest,
    model: Parameters<Answering>[1],
  ): AsyncGenerator<readonly StreamEvent[]> {
    const threadId = this.#thread.getStore() ?? ''
    const { signal } = request
    const summary = this.#summary(threadId, request)
    if (summary) {
      await this.#reached(threadId, summary.seq - 1, signal)
      if (summary.event.type === 'context_compacted')
        yield eventsOfAnswer(saidAs(summary.event.summary, summary.usage))
      else
        throw recordedFailure({ code: 'PROVIDER_ERROR', message: summary.problem }, model.provider)
      return
    }
    const recorded = this.#claim(threadId)
    if (recorded && !this.#options.ask) this.#compare(request, { recorded, threadId, model })
    try {
      const own = this.#options.ask?.({ threadId, request, recorded, ...model })
      if (own) {
        yield* own
        return
      }
      if (!recorded?.answer) {
        if (!recorded) this.#unknownRequests.add(threadId)
        await this.#reached(threadId, Infinity, signal)
        this.#unknownRequests.delete(threadId)
        throw abortedRequest(model.provider, signal.reason)
      }
      const { answer, seq } = recorded
      if (answer.type === 'failure' && answer.code === CANCELLED) {
        const text = this.#partialText(threadId, seq)
        if (text !== '') yield partialEvents(text)
        await this.#reached(threadId, Infinity, signal)
        throw abortedRequest(model.provider, signal.reason)
      }
      await this.#reached(threadId, seq - 1, signal)
      if (signal.aborted) throw abortedRequest(model.provider, signal.reason)
      if (answer.type === 'failure' && request.structure && answer.usage) {
        // The answer did not fit its schema. What was said is not in the log; nothing at all does not fit either.
        yield eventsOfAnswer(saidAs('', answer.usage))
        return
      }
      if (answer.type === 'failure') throw recordedFailure(answer, model.provider)
      yield eventsOfAnswer(answer)
    } finally {
      if (recorded) this.#claimed.delete(recorded.logId)
    }
  }

  /** Remembers the first request that is not the recorded one. */
  #compare(
    request: LLMRequest,
    {
      recorded,
      threadId,
      model,
    }: {
      readonly recorded: ThreadRequest
      readonly threadId: string
      readonly model: Parameters<Answering>[1]
    },
  ): void {
    const part = changedPart(keyOfRecorded(recorded.content), keyOfRequest(request, model))
    if (part) this.otherRequests.set(recorded.logId, { threadId, seq: recorded.seq, part })
    else this.otherRequests.delete(recorded.logId)
  }

  /** What the recording says of a request for a summary, which the runtime makes for itself and does not log. */
  #summary(threadId: string, { messages, tools }: LLMRequest) {
    const text = messages[0]?.type === 'user' ? messages[0].text : ''
    if (messages.length !== 1 || tools.length > 0 || !text.includes('\n\n<conversation>\n'))
      return undefined
    const stored = this.#following(
      threadId,
      (event) =>
        event.type === 'context_compacted' ||
        (event.type === 'error_raised' && event.code === 'COMPACTION_FAILED'),
    )
    if (!stored) return undefined
    const spent = this.played.tracks.get(threadId)?.events[stored.seq]?.event
    const usage =
      spent?.type === 'usage_recorded'
        ? recordedUsageOf(spent.usage as JsonObject, spent.costUsd)
        : noUsage
    const problem =
      stored.event.type === 'error_raised'
        ? stored.event.message.replace('The conversation could not be summarised: ', '')
        : ''
    return { ...stored, usage, problem }
  }

  /** The next recorded request of a thread that nothing else answers. */
  #claim(threadId: string): ThreadRequest | undefined {
    const place = this.played.tracks.get(threadId)?.place ?? 0
    const request = this.#requests
      .get(threadId)
      ?.find(({ seq, logId }) => seq > place && !this.#claimed.has(logId))
    if (request) this.#claimed.add(request.logId)
    return request
  }

  /** What a model had said when its request was cut off. */
  #partialText(threadId: string, seq: number): string {
    // `model_requested`, `model_answered` and the message are written together.
    const events = this.played.tracks.get(threadId)?.events.slice(seq, seq + 3) ?? []
    const said = events.find(({ event }) => event.type === 'message_added')?.event
    if (said?.type !== 'message_added') return ''
    const blocks = Array.isArray(said.message.content) ? said.message.content : []
    return blocks.map((block) => (isObject(block) ? String(block['text'] ?? '') : '')).join('')
  }

  /** PlayedAnswers a call as the recording does. */
  async #call(
    tool: ToolDefinition,
    parsed: unknown,
    { toolCallId = '', state, signal }: CallPlace,
  ): Promise<unknown> {
    const { threadId } = state
    if (this.played.isFree) return this.#unrecorded({ threadId, toolCallId, tool, parsed })
    const fate = this.#following(threadId, (event) => isFateOf(event, toolCallId))
    // An action that takes a write back has no events of its own.
    const undone = fate
      ? undefined
      : this.#following(threadId, ({ type }) => type === 'write_undone')?.event
    if (undone?.type === 'write_undone') {
      if (undone.status === 'done') return null
      throw new Error(undone.error ?? 'It could not be taken back.')
    }
    const isOwn = fate !== undefined && isOwnEnd(fate.event)
    // A tool that stopped when it was asked to, and did not say what became of its work.
    const obeys =
      !isOwn &&
      fate?.event.type === 'tool_execution_end' &&
      !String(fate.event.result).includes('did not stop')
    await this.#reached(threadId, isOwn ? fate.seq - 1 : Infinity, obeys ? signal : undefined)
    if (obeys && signal?.aborted) throw signal.reason
    if (this.played.isFree) return this.#unrecorded({ threadId, toolCallId, tool, parsed })
    const event = fate?.event
    if (event?.type === 'interrupt_opened') {
      const { kind, request } = event.interrupt
      return defer({ kind, request } as never) // the request of a deferred call, as it was logged
    }
    if (event?.type !== 'tool_execution_end' || event.outcome === 'unknown')
      throw new Error('The recording has no result of this call.')
    if (event.outcome === 'success') return event.result
    throw new Error(String(event.result))
  }

  #unrecorded(call: Omit<PlayedCall, 'raw'>): Promise<unknown> {
    const raw = this.played.raw.get(call.toolCallId)
    if (!this.#options.call) throw new Error('The recording does not know this call.')
    return this.#options.call({ ...call, raw })
  }

  async #effect(effectId: string): Promise<unknown> {
    const threadId = this.#thread.getStore() ?? ''
    const end = this.#following(
      threadId,
      (event) => event.type === 'effect_ended' && event.effectId === effectId,
    )
    await this.#reached(threadId, end ? end.seq - 1 : Infinity)
    if (end?.event.type === 'effect_ended' && end.event.outcome === 'failed')
      throw new Error(end.event.error ?? 'It failed.')
    return undefined
  }

  async #handle(): Promise<string> {
    const threadId = this.#thread.getStore() ?? ''
    const said = this.#following(
      threadId,
      (event) => event.type === 'message_added' && event.stepId !== undefined,
    )
    await this.#reached(threadId, said ? said.seq - 1 : Infinity)
    if (said?.event.type !== 'message_added')
      throw new Error('The recording has no answer of this handler.')
    const blocks = Array.isArray(said.event.message.content) ? said.event.message.content : []
    return blocks.map((block) => (isObject(block) ? String(block['text'] ?? '') : '')).join('')
  }

  #probe(): boolean {
    const end = this.#following(this.#thread.getStore() ?? '', ({ type }) =>
      PROBED.has(type),
    )?.event
    if (end?.type === 'tool_execution_end' && end.settledBy === 'probe')
      return end.outcome === 'success'
    if (end?.type === 'call_reset') return false
    throw new Error('The recording does not know what the probe said.')
  }

  /** The next recorded event of a thread that fits. */
  #following(threadId: string, fits: (event: RuntimeEvent) => boolean): StoredEvent | undefined {
    const track = this.played.tracks.get(threadId)
    return track?.events.find(({ seq, event }) => seq > track.place && fits(event))
  }
}

/** The arguments with which a person has replaced those of a call, if the next events say so. */
function changedCall(
  events: readonly StoredEvent[],
): ReturnType<typeof madeBy>[number] | undefined {
  const made = events.find(({ event }) => event.type === 'call_changed')?.event
  const updated = events.find(({ event }) => event.type === 'message_updated')?.event
  if (made?.type !== 'call_changed' || updated?.type !== 'message_updated') return undefined
  return madeBy(updated.message).find(({ toolCallId }) => toolCallId === made.changedTo)
}

const PROBED: ReadonlySet<string> = new Set([
  'tool_execution_end',
  'call_reset',
  'interrupt_opened',
])
const CANCELLED = ErrorCode.Cancelled

function isFateOf(event: RuntimeEvent, toolCallId: string): boolean {
  if (event.type === 'interrupt_opened')
    return event.interrupt.toolCallId === toolCallId && event.interrupt.kind !== 'approval'
  return (
    (event.type === 'tool_execution_end' || event.type === 'call_reset') &&
    event.toolCallId === toolCallId
  )
}

/** Whether the code of the tool has brought this end about, not the runtime after a crash or a stop. */
function isOwnEnd(event: RuntimeEvent): boolean {
  if (event.type === 'interrupt_opened') return event.interrupt.kind !== 'in_doubt'
  if (event.type !== 'tool_execution_end') return false
  return (
    event.settledBy === undefined && (event.outcome === 'success' || event.outcome === 'failed')
  )
}

function partialEvents(text: string): StreamEvent[] {
  return [
    { type: 'message_start', index: 0, delta: {} },
    { type: 'content_block_start', index: 0, delta: { block: 'text' } },
    { type: 'text_delta', index: 0, delta: { text } },
  ] as StreamEvent[]
}

/** How many events at the start of a log were written when the thread was created. */
function openingOf(events: readonly StoredEvent[]): number {
  const first = events[0]!.event
  const end = events.findIndex(({ event }) => !OPENING.has(event.type) || event.at !== first.at)
  return end < 0 ? events.length : end
}

const OPENING: ReadonlySet<string> = new Set([
  'thread_created',
  'agent_registered',
  'env_set',
  'value_set',
  'message_queued',
])
