import type { JsonObject, JsonValue, RecordedArguments } from '@skein/base'
import type { Message, ToolCall, ToolOutcome } from '@skein/ai'
import type {
  DeliveryStatus,
  InterruptRecord,
  InterruptAnswer,
  LateResult,
  ThreadStatus,
} from '@skein/threads'
import type {
  EffectScheduled,
  GrantMade,
  GrantRevoked,
  InferenceRecorded,
  MessageQueued,
  ModelRequested,
  ParentLink,
  RuntimeSubagentCreated,
  SessionFailing,
  SessionName,
  SessionOutcome,
  SessionStopRequested,
  VariablesProvided,
  VariablesRequested,
  WriteLeft,
} from '../contract/event.ts'
import type { FileStat, Side } from '../contract/thread-state.ts'
import type { Registry, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { Budget } from '../definitions/agent-definition.ts'

/**
 * The state of a thread as the work on the thread and the API use it. It is computed from the events of the log
 * alone (by the "fold"). Only that computation changes its maps and lists; all other code only reads them.
 */
export interface KernelState {
  seq: number
  threadId: string
  createdAt: string
  agent: string
  title: string | undefined
  depth: number
  parent: ParentLink | undefined
  arguments: JsonObject
  /** Limits of the thread itself; they replace the limits of its agent. */
  budget: Budget | undefined
  metadata: Readonly<Record<string, unknown>>
  readonly entries: Entry[]
  /** The index in `entries` of each message, by message id. */
  readonly places: Map<string, number>
  /**
   * The index in `entries` of the message with the call of this id. Call ids are unique in a thread; in logs
   * of older versions and in imported ones, the latest message with the id counts.
   */
  readonly callPlaces: Map<string, number>
  readonly queue: MessageQueued[]
  /**
   * The ids of all messages that were ever queued, with the number of the event that queued each. A message
   * that is sent twice with one id is queued once.
   */
  readonly queuedIds: Map<string, number>
  /**
   * Messages about calls that ended as unknown for the model, and of which more is known now. They wait for
   * the next request to the model, and do not cause one.
   */
  readonly news: MessageQueued[]
  session: Session | undefined
  lastSession: EndedSession | undefined
  /**
   * The state of a stop request. `requested` without a running session means that a session begins and ends
   * at once, so that a waiting call of the parent gets an answer.
   */
  stop: 'none' | 'requested' | 'after_step' | 'stopped'
  /** Number of the event that requested the stop: messages queued before it stay queued. */
  stopSeq: number
  /** Set by `resume`; cleared when a session begins. */
  resume: { readonly side: Side | undefined } | undefined
  /**
   * The side of the conversation with the next turn: after a completed turn the other side, else the same again.
   */
  nextSide: Side
  terminated: { readonly at: string; readonly isDetached: boolean } | undefined
  isErased: boolean
  /** The agent of the thread, if its children that start by themselves were created since it got the thread. */
  immediateFor: string | undefined
  readonly interrupts: Map<string, OpenInterrupt>
  readonly children: Map<string, ChildState>
  readonly values: Map<string, JsonValue>
  /** Number of the event that last set or removed each value, by its key. */
  readonly valueSeqs: Map<string, number>
  readonly env: Map<string, EnvEntry>
  readonly files: Map<string, FileStat>
  /** The hashes of all files that the thread has or had. Only their contents may be shown to its models. */
  readonly fileHashes: Set<string>
  readonly effects: Map<string, EffectState>
  /**
   * Whether a scheduled effect failed or crashed after the last session. Effects then run only when the thread has
   * nothing else to do, so that they cannot keep messages waiting.
   */
  effectsYield: boolean
  readonly variables: Map<string, PendingVariables>
  /** The standing grants of the thread by their ids, also those that have ended. */
  readonly grants: Map<string, { readonly made: GrantMade; revoked: GrantRevoked | undefined }>
  readonly compacted: { a: Compaction | undefined; b: Compaction | undefined }
  /** `costUsd` is the known cost; `unpriced` counts the answers whose cost is not known. */
  readonly usage: {
    tokens: number
    outputTokens: number
    cachedTokens: number
    costUsd: number
    unpriced: number
    startedAt: number
  }
  readonly lastLog: { a: RequestLog | undefined; b: RequestLog | undefined }
  status: ThreadStatus
  statusText: string | undefined
  /** Whether the parent's list of children says that this thread waits for a person. */
  isToldAwaiting: boolean
  /** The list of children as it was last sent to the model of each side of the conversation. */
  readonly registryText: { a: string | undefined; b: string | undefined }
  /** Number of the event that last changed a variable. */
  envSeq: number
  /** Number of the event that last changed or removed a message. */
  editSeq: number
  /**
   * Number of the event that last changed how a side of the conversation sees an earlier message: that edited,
   * removed, dropped or hid something. Results of calls are added once, and do not count.
   */
  shownSeq: number
}

/** One message of the thread; `entries` has the order of the log. */
export interface Entry {
  message: Message
  readonly side: Side
  readonly at: string
  readonly turnId: string
  /** The step that wrote the message; undefined for messages from outside. */
  readonly stepId: string | undefined
  readonly agent: string | undefined
  readonly isSilent: boolean
  readonly attachments: readonly string[]
  /** The attached files as they were when the message was added. */
  readonly files: readonly FileStat[]
  readonly subagentId: string | undefined
  readonly metadata: JsonObject | undefined
  /** Calls of an assistant message, in call order. */
  calls: readonly CallState[]
  /** The message with the results of all calls; created when the last call is settled. */
  results: Message | undefined
  isRemoved: boolean
  /**
   * Set when a message with `ifBusy: 'restart'` dropped this one: models see nothing of it, or a note (`noted`).
   */
  dropped: 'gone' | 'noted' | undefined
  /** Number of the event that last changed or removed the message; 0 if none did. */
  editedSeq: number
  /** Whether people may rely on the message, if it is the answer of an agent whose answers a gate checks. */
  delivery: DeliveryStatus | undefined
  /** Why the answer was refused. */
  refusal: string | undefined
}

/** One call of an assistant message. */
export interface CallState {
  /** The call as the model sent it. */
  readonly call: ToolCall
  /** The parsed arguments, as far as the log has them: the call runs with these. */
  parsed: RecordedArguments | undefined
  /** The epoch (number of the claim of the thread) in which the call started; undefined until the call runs. */
  startedEpoch: number | undefined
  /** Whether the call was started at some time, also if it then began to wait or a crash reset it. */
  mayHaveRun: boolean
  outcome: Exclude<ToolOutcome, { type: 'deferred' }> | undefined
  /** Whether the call was running when a process died, so that it is unknown whether it had an effect. */
  isUnknown: boolean
  interruptId: string | undefined
  isHidden: boolean
  /** Whether a probe or a person found out the outcome, so that what the tool returned is not in it. */
  isFound: boolean
  /** How the call really ended, if that was reported when its outcome was not known any more. */
  late: Pick<LateResult, 'outcome' | 'result'> | undefined
  /** What a person found out about the call after it had ended with an unknown outcome. */
  found: 'applied' | 'absent' | undefined
}

/** The running session: from the first queued message to the end of the work. */
export interface Session {
  readonly id: string
  readonly agent: string
  /** The hash of the definitions with which the session began; undefined in logs of older versions. */
  readonly definitions: string | undefined
  readonly startedAt: string
  /** The index in `entries` of the session's first message. */
  readonly firstEntry: number
  /** Ids of the parent's waiting calls (interrupts) that get the result of this session. */
  readonly waiters: string[]
  /** The sessions of threads above that this session works for, the outermost first. */
  callers: readonly SessionName[]
  /** Set when the session fails, and subagents that work for it have to stop first. */
  failing: SessionFailing | undefined
  /** Whether a session above has failed, which undoes the writes of this one together with its own. */
  leavesWrites: boolean
  /**
   * Whether the governor, which applies the policy, judged a call of this session. The result of the session then
   * has to pass the governor too.
   */
  isGoverned: boolean
  /** The ids of the answers that the gate has not judged yet. */
  readonly pending: Set<string>
  /** Set when a tool asked to end the session. */
  stopRequest: SessionStopRequested | undefined
  turn: SideTurn | undefined
  /** Completed turns of both sides of the conversation. */
  turns: number
  /** Steps taken, per side of the conversation. */
  readonly steps: { a: number; b: number }
  /** Handoffs, turns and steps of the sessions since a person last spoke, if this session began with a handoff. */
  before: Spent
  /** How many steps in a row failed with the same errors of the same tools. */
  sameErrors: number
  lastError: string | undefined
  /** The first span of the session, as a `traceparent`. */
  readonly trace: string | undefined
}

/** The numbers that a handoff passes on to the next session, so that agents cannot hand over for ever. */
export interface Spent {
  readonly handoffs: number
  /** Turns and steps of the agents that had the thread, by agent. */
  readonly byAgent: Readonly<
    Record<string, { readonly turns: number; readonly a: number; readonly b: number }>
  >
}

export const NOTHING_SPENT: Spent = { handoffs: 0, byAgent: {} }

/** Returns the turns, and the steps of each side of the conversation, that the agent took since a person spoke. */
export function spentBy({ agent, turns, steps, before }: Session): {
  readonly turns: number
  readonly a: number
  readonly b: number
} {
  const earlier = before.byAgent[agent] ?? { turns: 0, a: 0, b: 0 }
  return { turns: earlier.turns + turns, a: earlier.a + steps.a, b: earlier.b + steps.b }
}

/** The running turn of a side of the conversation. */
export interface SideTurn {
  readonly id: string
  readonly side: Side
  readonly startedAt: string
  step: Step | undefined
  /** The inferences of the current run of the strategy, in order; only if the agent is defined with `agent()`. */
  inferences: InferenceRecorded[]
}

/** The running step: one model request and the calls it asked for. */
export interface Step {
  readonly id: string
  attempt: number
  /** The epoch (number of the claim of the thread) in which the step asked the model; undefined after a failure. */
  epoch: number | undefined
  /** The index in `entries` of the step's message; undefined until the model has answered. */
  entry: number | undefined
  /** When the model is asked again after a failure, and what failed; undefined when no retry is planned. */
  retry: { readonly at: string; readonly reason: string } | undefined
  /** The number of failed requests of this step, over all its models. */
  failures: number
}

export interface EndedSession {
  readonly id: string
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string | undefined
  readonly hint: string | undefined
  readonly attachments: readonly string[]
  readonly data: JsonValue | undefined
  readonly firstEntry: number
  readonly seq: number
  readonly trace: string | undefined
  /** The counts that the next session starts with if this session ended with a handoff. */
  readonly handedOn: Pick<
    Session,
    'before' | 'sameErrors' | 'lastError' | 'callers' | 'leavesWrites'
  >
}

/** A call that waits for an answer, or whose answer was not used yet. */
export interface OpenInterrupt {
  readonly interrupt: InterruptRecord
  readonly turnId: string
  readonly openedAt: string
  readonly expiresAt: string | undefined
  /** The scheduled effect that waits, if it is not a call that waits. */
  readonly effectId: string | undefined
  /** Whether nothing waits for the answer: the call has ended with an unknown outcome, and its session may be over. */
  readonly isDetached: boolean
  /** Whether the end of the thread has closed the question, which must be asked again because it is detached. */
  isDropped: boolean
  /** The write that the question is about, if its session has failed. */
  readonly write: WriteLeft | undefined
  answer: InterruptAnswer | undefined
  answeredAt: string | undefined
  answeredBy: string | undefined
  /** The files that came with the answer of a child. */
  attachments: readonly string[]
}

/** A child as recorded in the log of its parent. */
export interface ChildState {
  readonly created: RuntimeSubagentCreated
  lifecycle: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  statusText: string | undefined
}

/** A variable of the thread. */
export interface EnvEntry {
  readonly type: 'text' | 'secret'
  /** Encrypted when the variable is a secret. */
  readonly value: string
  readonly isScoped: boolean
}

/** A scheduled effect of the thread. */
export interface EffectState {
  readonly scheduled: EffectScheduled
  runAt: string
  /** The number of this run, from 1; a cron expression makes a new run each time that it matches. */
  run: number
  /** The attempts of this run that were started, including those that a crash cut off. */
  attempts: number
  /** The epoch (number of the thread's claim) in which the scheduled effect runs; undefined while it is not running. */
  runningEpoch: number | undefined
  /** The question to a person that the scheduled effect waits for, or whose answer was not used yet. */
  interruptId: string | undefined
  /** How this attempt really ended, if that was reported when its outcome was not known any more. */
  late: Pick<LateResult, 'outcome' | 'result'> | undefined
}

/** A child that cannot be created until a person has provided its variables. */
export interface PendingVariables {
  readonly requested: VariablesRequested
  provided: VariablesProvided | undefined
  reference: string | undefined
  error: string | undefined
}

interface Compaction {
  readonly upTo: string
  readonly summary: string
  readonly seq: number
  /** The last summary before the running session: it is used again if a restart drops the session's messages. */
  readonly before: Compaction | undefined
}

/** The last logged model request of a side of the conversation. */
export interface RequestLog {
  readonly logId: string
  readonly frame: ModelRequested['frame']
  /** Ids of the messages that the request contained. The next `model_requested` event changes this list. */
  readonly messageIds: string[]
}

/** Returns the state of a thread before its first event. */
export function emptyKernelState(): KernelState {
  return {
    seq: 0,
    threadId: '',
    createdAt: '',
    agent: '',
    title: undefined,
    depth: 0,
    parent: undefined,
    arguments: {},
    budget: undefined,
    metadata: {},
    entries: [],
    places: new Map(),
    callPlaces: new Map(),
    queue: [],
    queuedIds: new Map(),
    news: [],
    session: undefined,
    lastSession: undefined,
    stop: 'none',
    stopSeq: 0,
    resume: undefined,
    nextSide: 'a',
    terminated: undefined,
    isErased: false,
    immediateFor: undefined,
    interrupts: new Map(),
    children: new Map(),
    values: new Map(),
    valueSeqs: new Map(),
    env: new Map(),
    files: new Map(),
    fileHashes: new Set(),
    effects: new Map(),
    effectsYield: false,
    variables: new Map(),
    grants: new Map(),
    compacted: { a: undefined, b: undefined },
    usage: {
      tokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      costUsd: 0,
      unpriced: 0,
      startedAt: 0,
    },
    lastLog: { a: undefined, b: undefined },
    status: 'idle',
    statusText: undefined,
    isToldAwaiting: false,
    registryText: { a: undefined, b: undefined },
    envSeq: 0,
    editSeq: 0,
    shownSeq: 0,
  }
}

/** Returns the calls of the running step that have no outcome. */
export function openCalls({ session, entries }: KernelState): readonly CallState[] {
  const place = session?.turn?.step?.entry
  if (place === undefined) return []
  return entries[place]!.calls.filter(({ outcome }) => outcome === undefined)
}

/**
 * Returns how the running turn is cut by queued messages that do not wait for its end; undefined if there are
 * none. With `drops` (a message asked for a restart), models are no longer shown what was said.
 */
export function cutOf({
  session,
  queue,
}: Pick<KernelState, 'session' | 'queue'>): { readonly drops: boolean } | undefined {
  if (!session?.turn || !queue.some(({ ifBusy }) => ifBusy !== undefined)) return undefined
  return { drops: queue.some(({ ifBusy }) => ifBusy === 'restart') }
}

/** Whether a person or a program outside sent the message, and not a parent, a child or the thread itself. */
export function isFromPerson({ resumes, metadata }: MessageQueued): boolean {
  return resumes === true && metadata?.['from'] !== 'parent'
}

/** Whether the agent, on either side, has an `after_thread_created` hook or children that start by themselves. */
export function startsSomething({ a, b }: ResolvedAgent): boolean {
  return [a, b].some(
    (side) =>
      side?.hooks.some(({ hook }) => hook === 'after_thread_created') ||
      side?.prompt.tools.some((tool) => tool.kind === 'subagent' && tool.relation.isImmediate),
  )
}

/** Returns the side of the conversation whose turn it is. An agent that talks with a person has side A only. */
export function sideOf(agent: ResolvedAgent, { side }: Pick<SideTurn, 'side'>): ResolvedSide {
  return side === 'b' && agent.b ? agent.b : agent.a
}

/** Whether the call waits for an answer that has not arrived. */
export function isWaiting({ interrupts }: KernelState, { interruptId }: CallState): boolean {
  return interruptId !== undefined && interrupts.get(interruptId)?.answer === undefined
}

/**
 * Whether the parent waits for the answer to a queued message: a call of the parent, or its first step, which
 * waits for blocking children that start by themselves. The parent must get an answer even if the thread is
 * stopped.
 */
export function isAwaited({ queue, parent, lastSession }: KernelState): boolean {
  if (queue.some(({ parentInterruptId }) => parentInterruptId !== undefined)) return true
  return parent?.isBlocking === true && !lastSession && queue.length > 0
}

/** The id of an attempt of a scheduled effect, for governors and in late results. */
export function attemptId(effectId: string, run: number, attempt: number): string {
  return `${effectId}:${run}.${attempt}`
}

/**
 * Returns the effect to which this attempt belongs if the attempt has no outcome yet: it runs, was cut off, or waits for a
 * person to find out what it did.
 */
export function findLateEffect(
  { effects, interrupts }: KernelState,
  effectId: string,
  attempt: string,
): EffectState | undefined {
  const effect = effects.get(effectId)
  if (!effect || attemptId(effectId, effect.run, effect.attempts) !== attempt) return undefined
  const isAsked = interrupts.get(effect.interruptId ?? '')?.interrupt.kind === 'in_doubt'
  return effect.runningEpoch !== undefined || isAsked ? effect : undefined
}

/**
 * Returns the definitions that a thread uses: those of the previous version, if its session began with them and
 * they differ from the current ones.
 */
export function registryOf(
  registry: Registry,
  {
    agent,
    session,
  }: {
    readonly agent: string
    readonly session?: { readonly definitions?: string | undefined } | undefined
  },
): Registry {
  const { previous } = registry
  const hash = session?.definitions
  if (!previous || hash === undefined || registry.agents.get(agent)?.hash === hash) return registry
  return previous.agents.get(agent)?.hash === hash ? previous : registry
}
