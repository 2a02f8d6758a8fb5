import type { Tool, ToolCall } from '@skein/ai'
import type { ExecutionContext } from '../contract/agent-types.ts'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import type { AgentContext } from '../contract/event.ts'
import type { LedgerRun, RunLedger } from './ledger.ts'
import type { SubagentSink } from './live-events.ts'

// The functions of this file link the run of a sub-agent to the run that called it. The links are kept under
// symbols: they are passed on when a context is spread, but are no part of the public types.

/**
 * Makes the ledger of a run, which counts the tokens of the run and its sub-agents. The function comes with
 * the tools that `subagent()` makes, so that a bundle of an agent without sub-agents contains no code of
 * ledgers.
 */
export type OpenLedger = (run: LedgerRun) => RunLedger

/** What a call's context says about the run that makes the call. */
export interface CallerLink {
  /** The id of the run; the idempotency keys of its calls begin with it. */
  readonly root: string
  /** The id of the message that contains the call. Absent under an application's own strategy. */
  readonly messageId?: string
  /** True if the call was already open when the run was resumed, so that an earlier attempt may have run it. */
  readonly isResumed?: boolean
  /** Returns the ledger, which counts what the run and its sub-agents use. Absent under an application's strategy. */
  readonly ledgerOf?: (open: OpenLedger) => RunLedger
  /** The function `settle` of the run's execution context. */
  readonly settle?: ExecutionContext['settle']
}

/** What the run of a sub-agent knows about the call for which it runs. */
export interface ChildLink {
  /** The id of the sub-agent's run. */
  readonly root: string
  readonly origin?: string
  /** Makes the ledger that counts what the sub-agent uses, below the ledger of its caller. */
  readonly openLedger: OpenLedger
  /** Called with each object that collects the traces of the sub-agent's own sub-agents. */
  readonly onSubagents?: (sink: SubagentSink) => void
}

const caller = Symbol.for('skein.caller')
const child = Symbol.for('skein.child')
const session = Symbol.for('skein.subagent')

/** Returns a property for a call's context that names the calling run. */
function withCaller(link: CallerLink): object {
  return { [caller]: link }
}

/**
 * Returns the fields that an agent adds to a tool's context (UAP §8.4, UAP §8.7), for tools whose `run` has a
 * second parameter.
 */
export function agentContext(
  { agent, state, sessionId, parentContext, settle }: ExecutionContext,
  { toolCallId }: Pick<ToolCall, 'toolCallId'>,
  { root, messageId, isResumed, ledgerOf, ...facts }: RunFacts,
): Partial<AgentContext> {
  return {
    ...withCaller({ root, messageId, isResumed, ledgerOf, settle }),
    parentModel: agent.model,
    parentConfig: agent.config,
    agentId: agent.id,
    stateId: state.id,
    sessionId,
    parentContext,
    ...facts,
    idempotencyKey: `${root}:${toolCallId}`,
  }
}

/** Data about the run that its execution context does not contain. */
interface RunFacts
  extends Pick<AgentContext, 'step' | 'streaming' | 'shouldStop'>, Omit<CallerLink, 'settle'> {}

/** Returns the run that made a call, if its context names one. */
export function callerOf(context: object): CallerLink | undefined {
  return (context as { [caller]?: CallerLink })[caller]
}

/** Returns a property for an execution context that names the call for which a sub-agent runs. */
export function withChild(link: ChildLink | undefined): object {
  return link ? { [child]: link } : {}
}

/** Returns the call for which a sub-agent runs; undefined for any other run. */
export function childOf(context: object): ChildLink | undefined {
  return (context as { [child]?: ChildLink })[child]
}

/** The data that `subagent()` attaches to its tool. A tool made by an older copy of this package may lack fields. */
interface Mark {
  /** Absent if the sub-agent saves nothing, or saves into a session that the application has named. */
  readonly store?: CheckpointStore
  readonly idOf?: (root: string, toolCallId: string) => string
  readonly openLedger?: OpenLedger
}

/** A session in which a sub-agent saves the work of one call. */
export interface SubagentSession {
  readonly store: CheckpointStore
  readonly sessionId: string
}

/** Returns the properties that mark a tool as a sub-agent. */
export function subagentMark(mark: Mark): object {
  return { [session]: mark }
}

/** True for a tool made by `subagent()`, also by another copy of this package. */
export function isSubagent(tool: Tool): boolean {
  return session in tool
}

/** Returns the session of one call of a tool, if it is a sub-agent that saves its work. */
export function sessionOf(
  tool: Tool | undefined,
  root: string,
  toolCallId: string,
): SubagentSession | undefined {
  const { store, idOf } = (tool as { [session]?: Mark } | undefined)?.[session] ?? {}
  return store && idOf && { store, sessionId: idOf(root, toolCallId) }
}

/** Returns the function that makes ledgers (which count what runs use), if one of the tools is a sub-agent. */
export function ledgerMakerOf(tools: readonly Tool[]): OpenLedger | undefined {
  const tool = tools.find(isSubagent) as { [session]?: Mark } | undefined
  return tool?.[session]?.openLedger
}
