import { setTimeout as pass } from 'node:timers/promises'
import type { LLMRequest, StreamEvent } from '@skein/ai'
import { canonicalJson, messageOf } from '@skein/base'
import type { RuntimeEvent, Threads, WaitingItem } from '@skein/runtime'
import {
  type AskedRequest,
  type PlayedCall,
  Player,
  type PlayerOptions,
  type Stuck,
} from '../play-back/player.ts'
import { addSpent, factsOf, noUsage, threadTree } from '../recorded/facts-of.ts'
import { readRecording } from '../recorded/read-recording.ts'
import type { ThreadRequest, RecordedThread, RecordedUsage } from '../recorded/recorded-thread.ts'
import {
  changedPart,
  hashOfKey,
  keyOfRecorded,
  keyOfRequest,
  type RequestKey,
} from '../recorded/request-key.ts'
import { type AgentChange, changedRegistry, withMessage } from './changed-agent.ts'
import { forkedLines } from './forked-lines.ts'
import { ModelPriceList } from './model-prices.ts'
import type { FirstDifference, ReplayEnd, ReplayReport } from './replay-report.ts'
import { isParsedAlike, ToolAnswers } from './tool-answers.ts'
import { type WaitingRetry, waitingRetry } from './waiting-retry.ts'

/** How a thread is replayed. */
export interface ReplaySettings extends Pick<PlayerOptions, 'registry' | 'runtime'> {
  /** What changes of the thread's agent, besides the definitions in `registry`. */
  readonly change?: AgentChange
  /** Another text for the last message of a person before the step `from`, or before the first step. */
  readonly message?: string
  /** The step of the thread from which requests are compared, from 1. Those before it are never sent. Default 1. */
  readonly from?: number
  /** PlayedAnswers calls that the recording does not know, by the name of the tool. */
  readonly stubs?: Readonly<Record<string, (args: unknown) => unknown>>
  /** Ends the replay before a request that would be sent. */
  readonly maxRequests?: number
  /** Called before a request is sent; false ends the replay (`budget`). */
  readonly mayAsk?: () => boolean
  /** Called for each answer that was paid for, before the next request is sent. */
  readonly onPaid?: (answer: PaidAnswer) => void
  /** PlayedAnswers that were paid for before, and where new ones are kept. */
  readonly paid?: PaidAnswers
  /** Where the replayed thread is stored, as a fork of the original. Default: nowhere. */
  readonly saveTo?: Pick<Threads, 'import'>
}

/** PlayedAnswers of models that were paid for, by the request. */
export interface PaidAnswers {
  get(key: string): readonly StreamEvent[] | undefined
  /** Resolves when the answer is stored so that a crash cannot lose it. */
  set(key: string, events: readonly StreamEvent[]): Promise<void>
}

/** An answer that was paid for. */
export interface PaidAnswer {
  /** The cost is null if it is unknown. */
  readonly spent: RecordedUsage
  /** Whether `paid` had it already. */
  readonly isKept: boolean
}

/**
 * Runs a recorded thread on other definitions. Tools never run: the recording answers their calls. A request is sent only
 * if it is none of the recorded ones.
 *
 *     const report = await replay(await readRecording(store, threadId), { registry: next })
 *     console.log(report.first?.summary ?? 'no difference', report.requests.sent)
 */
export async function replay(
  recorded: RecordedThread,
  options: ReplaySettings,
): Promise<ReplayReport> {
  return new Replay(recorded, options).run()
}

class Replay {
  readonly #recorded: RecordedThread
  readonly #options: ReplaySettings
  readonly #player: Player
  readonly #tools: ToolAnswers
  readonly #prices: ModelPriceList
  /** Recorded decisions that were given again, by thread and number. */
  readonly #decided = new Set<string>()
  readonly #byKey = new Map<string, ThreadRequest>()
  readonly #steps = new Map<string, number>()
  readonly #asked = new Map<string, number>()
  #first: FirstDifference | undefined
  #end: ReplayEnd | undefined
  #used = 0
  #sent = 0
  #spent: RecordedUsage = noUsage

  constructor(recorded: RecordedThread, options: ReplaySettings) {
    const { change, message, from = 1, registry, runtime } = options
    this.#options = options
    this.#recorded = message === undefined ? recorded : withMessage(recorded, message, from)
    this.#tools = new ToolAnswers(recorded, (threadId) => this.#placeOf(threadId))
    this.#prices = new ModelPriceList(registry)
    for (const { requests } of threadTree(recorded))
      for (const [index, request] of requests.entries()) {
        this.#steps.set(request.logId, index + 1)
        if (request.answer?.type === 'message')
          this.#byKey.set(hashOfKey(keyOfRecorded(request.content)), request)
      }
    this.#player = new Player(this.#recorded, {
      registry: change ? changedRegistry(registry, recorded.agent, change) : registry,
      ...(runtime && { runtime }),
      tolerates: (event, path) =>
        isMeant(event, path) || (from > 1 && event.type === 'model_requested'),
      ask: (asked) => this.#ask(asked),
      call: (call) => this.#call(call),
    })
  }

  async run(): Promise<ReplayReport> {
    try {
      await this.#player.open()
      const stuck = await this.#player.play()
      if (stuck) await this.#diverged(stuck)
      if (this.#player.played.isFree) await this.#continue()
      const replayed = await readRecording(this.#player.played.store, this.#recorded.threadId)
      return {
        original: this.#recorded.threadId,
        fork: await this.#save(),
        end: this.#end ?? { type: 'done' },
        first: this.#first,
        requests: { recorded: this.#used, sent: this.#sent },
        spent: this.#spent,
        facts: factsOf(replayed),
      }
    } finally {
      await this.#player.close()
    }
  }

  /** Decides what answers a request: the recording (undefined), an equal recorded request, or the model. */
  #ask(asked: AskedRequest): AsyncIterable<readonly StreamEvent[]> | undefined {
    const { recorded, threadId, request } = asked
    const key = keyOfRequest(request, asked)
    if (!this.#player.played.isFree) {
      const step = (recorded && this.#steps.get(recorded.logId)) ?? 0
      if (recorded && step < (this.#options.from ?? 1)) return void this.#used++
      const part = recorded && changedPart(keyOfRecorded(recorded.content), key)
      if (recorded && !part) return void this.#used++
      this.#differs({
        kind: part ?? 'events',
        threadId,
        step,
        summary: summaryOf(part, recorded, key),
      })
      this.#player.played.free()
    }
    const equal = this.#byKey.get(hashOfKey(key))
    if (equal?.answer?.type === 'message') {
      this.#used++
      return this.#player.recordedEvents(equal.answer)
    }
    return this.#send(asked, key)
  }

  async *#send(
    { request, reference, threadId }: AskedRequest,
    key: RequestKey,
  ): AsyncGenerator<readonly StreamEvent[]> {
    const { paid, maxRequests = Infinity, mayAsk } = this.#options
    const hash = hashOfKey(key)
    const count = this.#asked.get(hash) ?? 0
    this.#asked.set(hash, count + 1)
    const place = `${hash} ${count}`
    const before = paid?.get(place)
    if (before) {
      this.#sent++
      this.#charge(reference, { events: before, isKept: true })
      yield before
      return
    }
    if (this.#end || this.#sent >= maxRequests || mayAsk?.() === false) {
      this.#end ??= { type: 'budget' }
      await this.#player.waitsForEver(threadId)
      return
    }
    this.#sent++
    const events = await this.#player.during(this.#received(request, reference))
    this.#charge(reference, { events, isKept: false })
    await this.#player.during(Promise.resolve(paid?.set(place, events)))
    yield events
  }

  /** Counts what an answer has cost, now or before a crash. */
  #charge(
    reference: AskedRequest['reference'],
    { events, isKept }: { readonly events: readonly StreamEvent[]; readonly isKept: boolean },
  ): void {
    const stop = events.findLast(({ type }) => type === 'message_stop')
    const spent =
      stop?.type === 'message_stop' ? this.#prices.spentOn(reference, stop.delta.usage) : noUsage
    this.#spent = addSpent(this.#spent, spent)
    this.#options.onPaid?.({ spent, isKept })
  }

  async #received(
    request: LLMRequest,
    reference: AskedRequest['reference'],
  ): Promise<StreamEvent[]> {
    const model = reference.provider.handlers.llm!.bind(reference) // a model of a prompt answers with text
    const events: StreamEvent[] = []
    for await (const batch of model.stream(request)) events.push(...batch)
    return events
  }

  /** PlayedAnswers a call from the recording. A call that it does not know ends the replay, unless a stub answers. */
  async #call({ threadId, toolCallId, tool, raw, parsed }: PlayedCall): Promise<unknown> {
    const recorded = this.#tools.take({ threadId, toolCallId, toolName: tool.name, raw })
    const isKnown = recorded?.outcome === 'success' || recorded?.outcome === 'failed'
    if (recorded && isKnown && isParsedAlike(recorded, parsed)) {
      if (recorded.outcome === 'success') return recorded.result
      throw new Error(String(recorded.result))
    }
    if (recorded && isKnown) this.#differs(argumentsDiffer(threadId, tool.name))
    const stub = this.#options.stubs?.[tool.name]
    if (stub) return stub(parsed)
    this.#end ??= { type: 'unknown_call', toolName: tool.name, raw }
    await this.#player.waitsForEver(threadId)
    throw new Error('The replay has ended.')
  }

  #differs(first: FirstDifference): void {
    this.#first ??= first
  }

  /** The loop has made another event than the log has, without another request. */
  async #diverged({ track, mismatch }: Stuck): Promise<void> {
    const { threadId } = track
    const produced = mismatch?.produced
    const recorded = mismatch?.recorded ?? track.events[track.place]?.event
    const step = this.#recorded.requests.filter(({ seq }) => seq <= track.place).length
    const place = { threadId, step }
    if (isApproval(produced) && !isApproval(recorded)) {
      const toolName = this.#toolOf(produced)
      this.#differs({ ...place, kind: 'asks_approval', summary: `"${toolName}" asks a person` })
      this.#end = { type: 'waits_for_approval', toolName }
    } else if (isApproval(recorded) && !isApproval(produced)) {
      const toolName = this.#toolOf(recorded)
      this.#differs({ ...place, kind: 'asks_no_approval', summary: `"${toolName}" asks no person` })
    } else if (
      produced?.type === 'tool_execution_start' &&
      recorded?.type === 'tool_execution_start'
    ) {
      this.#differs({ ...argumentsDiffer(threadId, produced.toolName), step })
      this.#end = { type: 'unknown_call', toolName: produced.toolName, raw: produced.arguments }
    } else if (
      produced?.type === 'tool_execution_end' &&
      produced.outcome !== 'success' &&
      recorded?.type === 'tool_execution_start'
    ) {
      this.#differs({
        ...place,
        kind: 'arguments',
        summary: `"${produced.toolName}" refuses the arguments`,
      })
    } else if (produced?.type === 'session_end' && produced.outcome === 'failed') {
      this.#differs({ ...place, kind: 'fails', summary: `fails: ${produced.reason}` })
      this.#end = { type: 'failed', message: produced.message ?? produced.reason }
    } else {
      const summary = `${recorded?.type ?? 'the end'} became ${produced?.type ?? 'nothing'}`
      this.#differs({ ...place, kind: 'events', summary })
      // Without another request, and without an event, there is nothing with which the run could continue.
      if (!produced)
        this.#end = { type: 'failed', message: lastError(this.#player.errors) ?? summary }
    }
    if (!this.#end) this.#player.played.free()
  }

  /** How many recorded events of a thread were played. Nothing is played after the run has differed. */
  #placeOf(threadId: string): number {
    return this.#player.played.tracks.get(threadId)?.place ?? 0
  }

  #toolOf(event: RuntimeEvent & { type: 'interrupt_opened' }): string {
    const { toolCallId } = event.interrupt
    for (const { calls } of threadTree(this.#recorded))
      for (const call of calls) if (call.toolCallId === toolCallId) return call.toolName
    return toolCallId
  }

  /** Continues a run that differs: people do what they did, in the recorded order. */
  async #continue(): Promise<void> {
    const root = this.#player.played.tracks.get(this.#recorded.threadId)!
    const inputs = this.#recorded.inputs.filter(({ seq }) => seq > root.place)
    for (const input of inputs) {
      await this.#rest()
      if (this.#end) return
      await this.#answerOpen()
      const { event } = this.#recorded.events[input.seq - 1]!
      if (event.type !== 'message_queued' || event.resumes !== true) continue
      if (await this.#isWaiting()) break
      await this.#say(event)
    }
    for (let round = 0; round < MAX_ROUNDS && !this.#end; round++) {
      await this.#rest()
      if (this.#end || !(await this.#answerOpen())) break
    }
    if (this.#end) return
    const waiting = await this.#waitingTool()
    if (waiting !== undefined) this.#end = { type: 'waits_for_approval', toolName: waiting }
    else this.#end = await this.#failed()
  }

  /** Waits until nothing happens any more, and no request that was refused for a moment is due again. */
  async #rest(): Promise<void> {
    await this.#player.quiet()
    for (let round = 0; !this.#end; round++) {
      const next = await this.#nextRetry()
      if (!next) return
      const { time } = this.#player
      const waitMs = next.retryAtMs - time.now()
      if (waitMs > MAX_WAIT_MS || round === MAX_ROUNDS) {
        this.#end = { type: 'failed', message: next.message }
        return
      }
      await this.#player.during(pass(Math.max(waitMs, 0)))
      // Each timer fires at its own time, and the work that it starts ends before the next one.
      do await this.#player.quiet()
      while (time.moveTo(next.retryAtMs))
    }
  }

  /** The failed request of the tree that is due first. */
  async #nextRetry(): Promise<WaitingRetry | undefined> {
    const { store } = this.#player.played
    const id = this.#recorded.threadId
    const heads = await store.list({ rootId: id })
    const ids = new Set([id, ...heads.map((head) => head.id)])
    const retries = await Promise.all(
      [...ids].map(async (threadId) => waitingRetry(await store.events(threadId))),
    )
    return retries
      .filter((retry) => retry !== undefined)
      .toSorted((a, b) => a.retryAtMs - b.retryAtMs)[0]
  }

  async #say(event: RuntimeEvent & { type: 'message_queued' }): Promise<void> {
    const id = this.#recorded.threadId
    await this.#player.played.store.commit({
      point: 'replayed',
      threads: [{ id, append: [event], wake: { by: this.#player.time.now() } }],
    })
    this.#player.wake(id)
  }

  /** PlayedAnswers the questions that were answered in the recording. Returns whether it has answered one. */
  async #answerOpen(): Promise<boolean> {
    const { inbox } = this.#player.runtime
    const waiting = await inbox.list({ rootId: this.#recorded.threadId })
    let hasAnswered = false
    for (const item of waiting) {
      const answered = this.#decisionFor(item)
      if (!answered) continue
      const { threadId, interruptId } = item
      const by = answered.answeredBy ?? 'unknown'
      const { answer } = answered
      if (answer.type === 'approve') await inbox.approve({ threadId, interruptId, by })
      else if (answer.type === 'deny')
        await inbox.deny({ threadId, interruptId, by, reason: answer.reason ?? 'denied' })
      else await inbox.answer({ threadId, interruptId, by }, answer as never)
      hasAnswered = true
    }
    return hasAnswered
  }

  /** What a person said in the recording about the same call. Each decision is given once. */
  #decisionFor(item: WaitingItem): (RuntimeEvent & { type: 'interrupt_answered' }) | undefined {
    const { toolName, arguments: args } = item
    for (const { threadId, events, calls } of threadTree(this.#recorded)) {
      for (const { seq, event } of events) {
        const place = `${threadId} ${seq}`
        if (event.type !== 'interrupt_answered' || this.#decided.has(place)) continue
        if (seq <= this.#placeOf(threadId)) continue
        const call = calls.find(({ approval }) => approval?.interruptId === event.interruptId)
        if (!call || call.toolName !== toolName) continue
        const shown = call.parsed ?? call.raw
        if (canonicalJson(shown) !== canonicalJson(args)) continue
        this.#decided.add(place)
        return event
      }
    }
    return undefined
  }

  async #isWaiting(): Promise<boolean> {
    return (await this.#waitingTool()) !== undefined
  }

  async #waitingTool(): Promise<string | undefined> {
    const list = await this.#player.runtime.inbox.list({ rootId: this.#recorded.threadId })
    return list[0]?.toolName
  }

  async #failed(): Promise<ReplayEnd | undefined> {
    const events = await this.#player.played.store.events(this.#recorded.threadId)
    const end = events.findLast(({ event }) => event.type === 'session_end')?.event
    const before = this.#recorded.events.findLast(
      ({ event }) => event.type === 'session_end',
    )?.event
    if (end?.type !== 'session_end' || end.outcome !== 'failed') return undefined
    if (before?.type === 'session_end' && before.outcome === 'failed') return undefined
    return { type: 'failed', message: end.message ?? end.reason }
  }

  async #save(): Promise<string | undefined> {
    const { saveTo } = this.#options
    if (!saveTo) return undefined
    const lines = await this.#player.runtime.threads.export(this.#recorded.threadId)
    const { id } = await saveTo.import(forkedLines(lines, this.#recorded.threadId))
    return id
  }
}

/** How often people answer the questions of a run that differs, and how often it waits in between. */
const MAX_ROUNDS = 100
/** The longest wait for a request that was refused for a moment. Longer ones end the replay. */
const MAX_WAIT_MS = 60_000

/** Whether a difference only says that the definitions are other ones. */
function isMeant(event: RuntimeEvent, path: string): boolean {
  if (event.type === 'session_start') return path === '/definitions'
  if (event.type === 'tool_execution_start') return path === '/schema'
  return event.type === 'interrupt_opened' && path === '/parsed/schema'
}

function isApproval(
  event: RuntimeEvent | undefined,
): event is RuntimeEvent & { type: 'interrupt_opened' } {
  return event?.type === 'interrupt_opened' && event.interrupt.kind === 'approval'
}

function argumentsDiffer(threadId: string, toolName: string): FirstDifference {
  return {
    kind: 'arguments',
    threadId,
    step: 0,
    summary: `"${toolName}" reads its arguments differently`,
  }
}

function summaryOf(
  part: keyof RequestKey | undefined,
  recorded: ThreadRequest | undefined,
  key: RequestKey,
): string {
  switch (part) {
    case undefined:
      return 'a request that was not made'
    case 'model':
      return `model: ${recorded?.content.provider}/${recorded?.content.model} became ${key.model}`
    case 'tools':
      return `tools: ${changedTools(recorded, key)}`
    case 'instructions':
      return `instructions of ${recorded?.prompt}`
    case 'settings':
      return `settings of ${recorded?.prompt}`
    case 'history':
      return 'history'
  }
}

function changedTools(recorded: ThreadRequest | undefined, { tools }: RequestKey): string {
  const list = (json: string): Map<string, string> =>
    new Map(
      (JSON.parse(json) as readonly { readonly name: string }[]).map((tool) => [
        tool.name,
        JSON.stringify(tool),
      ]),
    )
  const before = list(recorded ? keyOfRecorded(recorded.content).tools : '[]')
  const after = list(tools)
  const changes = [
    ...[...before.keys()].filter((name) => !after.has(name)).map((name) => `${name} is gone`),
    ...[...after.keys()].filter((name) => !before.has(name)).map((name) => `${name} is new`),
    ...[...after]
      .filter(([name, json]) => before.has(name) && before.get(name) !== json)
      .map(([name]) => name),
  ]
  return changes.join(', ') || 'their order'
}

function lastError(errors: readonly unknown[]): string | undefined {
  const error = errors.at(-1)
  return error === undefined ? undefined : messageOf(error)
}
