import type { JsonObject, JsonValue } from '@skein/base'
import type { Message, ToolCall, ToolOutcome } from '@skein/ai'
import type { InterruptRecord, InterruptAnswer, ThreadStatus } from '@skein/threads'
import type {
  EffectScheduled,
  InferenceRecorded,
  MessageQueued,
  ModelRequested,
  ParentLink,
  RuntimeSubagentCreated,
  SessionOutcome,
  SessionStopRequested,
  VariablesProvided,
  VariablesRequested,
} from './event.ts'
import type { Budget } from '../definitions/types.ts'
import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { FileStat, Side } from './thread-state.ts'

/**
 * What the kernel knows of a thread: the fold of its log, and nothing else. The maps and lists belong
 * to the fold and are only read outside of it.
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
  /** Limits of the thread itself, which stand for those of its agent. */
  budget: Budget | undefined
  metadata: Readonly<Record<string, unknown>>
  readonly entries: Entry[]
  /** Place of each message in `entries`. */
  readonly places: Map<string, number>
  /** Place of the latest call with an id: vendors promise unique ids within one message only. */
  readonly callPlaces: Map<string, number>
  readonly queue: MessageQueued[]
  /** Ids of every message ever queued, so that sending twice queues once. */
  readonly queuedIds: Map<string, number>
  session: Session | undefined
  lastSession: EndedSession | undefined
  /**
   * What became of the stop button. `requested` without a session: a session begins and ends at once, so
   * that the parent's call that waits for it gets an answer.
   */
  stop: 'none' | 'requested' | 'after_step' | 'stopped'
  /** Number of the event that asked for the stop: messages queued before it stay queued. */
  stopSeq: number
  /** Set by `resume`; cleared when a session begins. */
  resume: { readonly side: Side | undefined } | undefined
  /** The side that speaks next: the other one after a completed turn, else the same one. */
  nextSide: Side
  terminated: { readonly at: string; readonly isDetached: boolean } | undefined
  isErased: boolean
  /** The agent whose immediate children were created last. */
  immediateFor: string | undefined
  readonly interrupts: Map<string, OpenInterrupt>
  readonly children: Map<string, ChildState>
  readonly values: Map<string, JsonValue>
  readonly env: Map<string, EnvEntry>
  readonly files: Map<string, FileStat>
  readonly effects: Map<string, EffectState>
  readonly variables: Map<string, PendingVariables>
  readonly compacted: { a: Compaction | undefined; b: Compaction | undefined }
  readonly usage: { tokens: number; costUsd: number; startedAt: number }
  readonly lastLog: { a: RequestLog | undefined; b: RequestLog | undefined }
  status: ThreadStatus
  statusText: string | undefined
  /** What models were told last about the children. */
  readonly registryText: { a: string | undefined; b: string | undefined }
  /** Number of the last change to the variables. */
  envSeq: number
}

/** One message, in the order of the log. */
export interface Entry {
  message: Message
  readonly side: Side
  readonly at: string
  readonly turnId: string
  /** The step that made it; absent for what came from outside. */
  readonly stepId: string | undefined
  readonly agent: string | undefined
  readonly isSilent: boolean
  readonly attachments: readonly string[]
  readonly subagentId: string | undefined
  readonly metadata: JsonObject | undefined
  /** Calls of an assistant message, in call order. */
  readonly calls: readonly CallState[]
  /** Built when the last call is settled. */
  results: Message | undefined
  isRemoved: boolean
}

/** One call of an assistant message. */
export interface CallState {
  readonly call: ToolCall
  /** Epoch of the drain that started it; undefined until it runs. */
  startedEpoch: number | undefined
  outcome: Exclude<ToolOutcome, { type: 'deferred' }> | undefined
  /** The call ran when a process died, and whether it had an effect is not known. */
  isUnknown: boolean
  interruptId: string | undefined
  isHidden: boolean
}

/** The running session: from the first queued message to the end of the work. */
export interface Session {
  readonly id: string
  readonly agent: string
  readonly startedAt: string
  /** Where its messages begin in `entries`. */
  readonly firstEntry: number
  /** Interrupts of the parent that wait for its end. */
  readonly waiters: string[]
  /** Whether a call of it went through the gates, so that its end has to as well. */
  isGoverned: boolean
  /** A tool asked to end it. */
  stopRequest: SessionStopRequested | undefined
  turn: SideTurn | undefined
  /** Completed turns of both sides. */
  turns: number
  /** Steps taken, per side. */
  readonly steps: { a: number; b: number }
  /** Calls of the same tool that failed in a row with the same words. */
  sameErrors: number
  lastError: string | undefined
}

/** The running turn of a side. */
export interface SideTurn {
  readonly id: string
  readonly side: Side
  step: Step | undefined
  /** Of a side that is an `agent()`: the inferences of the strategy's running run, in order. */
  inferences: InferenceRecorded[]
}

/** The running step: one model request and the calls it asked for. */
export interface Step {
  readonly id: string
  attempt: number
  /** The drain that opened it and has not asked yet, or is asking; undefined after a failure. */
  epoch: number | undefined
  /** Place of its message in `entries`; undefined while the model speaks. */
  entry: number | undefined
  /** When the model is asked again after a failure, and what failed; undefined while it is asked. */
  retry: { readonly at: string; readonly reason: string } | undefined
  /** Failed requests of this step, over all its models. */
  failures: number
}

interface EndedSession {
  readonly id: string
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string | undefined
  readonly attachments: readonly string[]
  readonly data: JsonValue | undefined
  readonly firstEntry: number
  readonly seq: number
}

/** A call that waits for an answer, or has one that was not used yet. */
export interface OpenInterrupt {
  readonly interrupt: InterruptRecord
  readonly turnId: string
  readonly openedAt: string
  readonly expiresAt: string | undefined
  answer: InterruptAnswer | undefined
  answeredBy: string | undefined
}

/** A child as its parent knows it. */
export interface ChildState {
  readonly created: RuntimeSubagentCreated
  lifecycle: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  statusText: string | undefined
}

/** A variable of the thread. */
export interface EnvEntry {
  readonly type: 'text' | 'secret'
  /** Sealed when it is a secret. */
  readonly value: string
  readonly isScoped: boolean
}

/** Scheduled work. */
export interface EffectState {
  readonly scheduled: EffectScheduled
  runAt: string
  attempts: number
  /** Epoch of the drain that runs it. */
  runningEpoch: number | undefined
}

/** A child that waits for variables. */
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
}

/** The last logged model request of a side. */
export interface RequestLog {
  readonly logId: string
  readonly frame: ModelRequested['frame']
  /** Ids of the messages it sent. */
  readonly messageIds: readonly string[]
}

/** The state before the first event. */
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
    env: new Map(),
    files: new Map(),
    effects: new Map(),
    variables: new Map(),
    compacted: { a: undefined, b: undefined },
    usage: { tokens: 0, costUsd: 0, startedAt: 0 },
    lastLog: { a: undefined, b: undefined },
    status: 'idle',
    statusText: undefined,
    registryText: { a: undefined, b: undefined },
    envSeq: 0,
  }
}

/** Calls of the running step without an outcome. */
export function openCalls({ session, entries }: KernelState): readonly CallState[] {
  const place = session?.turn?.step?.entry
  if (place === undefined) return []
  return entries[place]!.calls.filter(({ outcome }) => outcome === undefined)
}

/** Whether there is anything to do when a prompt of this agent becomes active. */
export function startsSomething({ a, b }: ResolvedAgent): boolean {
  return [a, b].some(
    (side) =>
      side?.hooks.some(({ hook }) => hook === 'after_thread_created') ||
      side?.prompt.tools.some((tool) => tool.kind === 'subagent' && tool.relation.isImmediate),
  )
}

/** The side of a turn. Agents with one side have side A only. */
export function sideOf(agent: ResolvedAgent, { side }: Pick<SideTurn, 'side'>): ResolvedSide {
  return side === 'b' && agent.b ? agent.b : agent.a
}

/** Whether the call waits for an answer that has not come. */
export function isWaiting({ interrupts }: KernelState, { interruptId }: CallState): boolean {
  return interruptId !== undefined && interrupts.get(interruptId)?.answer === undefined
}
