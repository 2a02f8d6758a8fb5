import type { Side } from '../contract/thread-state.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { CallState, Entry, Step } from './kernel-state.ts'
import type { StepDecision } from './step-decision.ts'

/**
 * One action of a drain, the loop that works on one thread. A function in `drain.ts` performs each
 * action and ends it with a commit.
 */
export type KernelAction =
  /**
   * The work ends: there is nothing to do until another thread or a person writes to the log, or until the time
   * `wakeAt`. `retry` is set when the thread waits to ask its model again: it contains that time and the failure.
   */
  | { readonly type: 'park'; readonly wakeAt: number | null; readonly retry?: Step['retry'] }
  /** The thread was terminated, so its children have to be terminated too. */
  | { readonly type: 'cascade'; readonly references: readonly string[] }
  /** The thread's agent is not defined in this process: the thread waits for a process that defines it. */
  | { readonly type: 'await_agent' }
  /** Ends the session early: the user stopped it, or the thread was terminated. Answers calls of the parent that wait. */
  | { readonly type: 'close'; readonly outcome: 'stopped' | 'terminated' }
  /** Ends a session that fails once the subagents that work for it have stopped. */
  | { readonly type: 'end_failing' }
  /** Carries out a person's decision about a write that was left when its session failed. */
  | { readonly type: 'decide_undo'; readonly interruptId: string }
  /** Decides what became of calls that were running when a process died, or whose results came late. */
  | { readonly type: 'settle_in_doubt'; readonly calls: readonly CallState[] }
  /** Closes an interrupt that no one answered in time. */
  | { readonly type: 'expire'; readonly interruptId: string }
  /** Creates a child thread that was waiting for variables, now that a person has provided them. */
  | { readonly type: 'boot_child'; readonly requestId: string }
  | { readonly type: 'run_effect'; readonly effectId: string }
  /**
   * Decides what became of an effect that ran when a process died, or applies a
   * person's answer about it.
   */
  | { readonly type: 'settle_effect'; readonly effectId: string }
  /**
   * The thread was created or handed to another agent: runs the hooks of a new thread and creates the
   * children that start by themselves.
   */
  | { readonly type: 'activate' }
  | { readonly type: 'begin_session'; readonly side: Side }
  /** Ends the running turn early, because new messages ask for it, and begins the turn that answers them. */
  | { readonly type: 'cut_turn'; readonly side: Side; readonly drops: boolean }
  | { readonly type: 'infer'; readonly side: ResolvedSide }
  /**
   * Continues the turn of an `agent()`, as side A or B of the conversation. Its strategy makes the requests and
   * runs the calls.
   */
  | { readonly type: 'run_agent'; readonly side: ResolvedSide }
  | { readonly type: 'run_calls'; readonly side: ResolvedSide; readonly entry: Entry }
  | { readonly type: 'end_step'; readonly side: ResolvedSide; readonly decision: StepDecision }
