import { sha256Hex } from '@skein/base'
import type { Tool } from '@skein/ai'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import type { RunLedger } from './ledger.ts'

// How the runs of a tree find each other. The links are kept under symbols: they are passed on when a context
// is spread, but are no part of the public types.

/** What a call's context says about the run that makes the call. */
export interface CallerLink {
  /** The account id of the run: it begins the idempotency keys of its calls. */
  readonly root: string
  /** The id of the message that contains the call. Absent under an application's own strategy. */
  readonly messageId?: string
  readonly ledger?: RunLedger
}

/** What a sub-agent's run knows of the call that it carries out. */
export interface ChildLink {
  /** The account id of the sub-agent's run. */
  readonly root: string
  readonly origin?: string
  readonly toolCallId: string
  readonly ledger?: RunLedger
  readonly sharesBudget: boolean
  /** Called with the ledger of the sub-agent's run. */
  readonly onLedger?: (ledger: RunLedger) => void
}

const caller = Symbol.for('skein.caller')
const child = Symbol.for('skein.child')
const session = Symbol.for('skein.subagent')

/** Returns a property for a call's context that names the calling run. */
export function withCaller(link: CallerLink): object {
  return { [caller]: link }
}

/** Returns the run that made a call, if its context names one. */
export function callerOf(context: object): CallerLink | undefined {
  return (context as { [caller]?: CallerLink })[caller]
}

/** Returns a property for an execution context that names the call which the run carries out. */
export function withChild(link: ChildLink | undefined): object {
  return link ? { [child]: link } : {}
}

/** Returns the call that a run carries out, if it is the run of a sub-agent. */
export function childOf(context: object): ChildLink | undefined {
  return (context as { [child]?: ChildLink })[child]
}

/** Returns the properties that mark a tool as a sub-agent, with the store of its sessions. */
export function subagentMark(store: CheckpointStore | undefined): object {
  return { [session]: { store } }
}

/** True for a tool made by `subagent()`, also by another copy of this package. */
export function isSubagent(tool: Tool): boolean {
  return session in tool
}

/** Returns the store in which a sub-agent saves the session of each call, if it has one. */
export function sessionStoreOf(tool: Tool | undefined): CheckpointStore | undefined {
  return (tool as { [session]?: { store?: CheckpointStore } } | undefined)?.[session]?.store
}

/** The longest session id that is readable; file names have at most 255 characters. */
const MAX_LENGTH = 200

/**
 * Returns the account id of a sub-agent's run, which is also its session id: the caller's id and the call id,
 * so that it is the same in every attempt. An id that cannot be a file name is replaced by its hash.
 */
export function childRoot(root: string, toolCallId: string): string {
  try {
    const id = `${root}/${encodeURIComponent(toolCallId)}`
    if (encodeURIComponent(id).length <= MAX_LENGTH) return id
  } catch {
    // The id contains half of a surrogate pair, which no file name can contain.
  }
  return `sub-${sha256Hex(JSON.stringify([root, toolCallId]))}`
}
