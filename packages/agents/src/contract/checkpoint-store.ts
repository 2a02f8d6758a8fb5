import type { MessageJSON, ToolEffect, Turn } from '@skein/ai'
import type { AgentStateJSON, SubagentExecutionTrace } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'

/** Stores the states of sessions (UAP §12.4). Every save is a version of its session. */
export interface CheckpointStore {
  /**
   * Saves a state as the newest version and returns its description; a store of your own may return nothing.
   * With `expected`, throws a `CheckpointConflict` if another version is the newest.
   */
  save(
    sessionId: string,
    state: AgentStateJSON,
    options?: SaveOptions,
  ): Promise<CheckpointMetadata | void>
  /** Returns the newest state of a session, or null. */
  load(sessionId: string): Promise<AgentStateJSON | null>
  /** Optional: an application's own store may leave this method out. */
  loadMetadata?(sessionId: string): Promise<CheckpointMetadata | null>
  /** Optional: returns the state of one version, or null. */
  loadVersion?(sessionId: string, checkpointId: string): Promise<AgentStateJSON | null>
  /** Optional: describes all versions of a session, oldest first. */
  history?(sessionId: string): Promise<readonly CheckpointMetadata[]>
  /** Optional: makes up for what the last saves have put off because of `isFollowed`. */
  finish?(sessionId: string): Promise<void>
  delete(sessionId: string): Promise<void>
  list(): Promise<string[]>
  /** Optional journal: stores the result of a finished call until the next `save`. */
  record?(sessionId: string, entry: CallRecord): Promise<void>
}

/** Options of one save. */
export interface SaveOptions {
  /**
   * The `checkpointId` that must be the newest version, null if there must be none. Default: nothing is
   * checked.
   */
  readonly expected?: string | null
  /**
   * True if a newer state of the session already waits to be saved. A store may then put off what only the newest
   * state needs; `fileCheckpoints` does not rewrite `checkpoint.json` for this save. Default false.
   */
  readonly isFollowed?: boolean
}

/** The description of a checkpoint, which can be read without its state (UAP §12.4.2). */
export interface CheckpointMetadata {
  readonly sessionId: string
  readonly checkpointId: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly step: number
  readonly agentId: string
}

/** A finished call, recorded before the run continues. */
export interface CallRecord {
  readonly toolCallId: string
  /** The call's result as the JSON of a message, in which bytes are written as text. */
  readonly message: MessageJSON
  /** The traces of the sub-agents that the call ran. */
  readonly traces?: readonly SubagentExecutionTrace[]
}

/** A store that also records finished calls, e.g. `fileCheckpoints({ journal: true })`. */
export type JournalingStore = CheckpointStore & Required<Pick<CheckpointStore, 'record'>>

/** The methods that all stores of this package have; `record` exists only with the option `journal`. */
export type FullCheckpointStore = CheckpointStore &
  Required<Pick<CheckpointStore, 'loadMetadata' | 'loadVersion' | 'history'>> & {
    save(
      sessionId: string,
      state: AgentStateJSON,
      options?: SaveOptions,
    ): Promise<CheckpointMetadata>
  }

/** Called when a session's checkpoint cannot be saved or read. The run continues (UAP §12.4.7). */
export type CheckpointErrorHandler = (error: unknown, sessionId: string) => void

/** One record for a journal: the start or the end of an inference or of a call. */
export type StepEffect =
  | { readonly type: 'inference_start'; readonly step: number; readonly state: AgentState }
  | {
      readonly type: 'inference_end'
      readonly step: number
      readonly turn: Turn
      /** The state with the answer, before its calls run. */
      readonly state: AgentState
    }
  | (ToolEffect & {
      readonly step: number
      /** At the end of a call: the traces of the sub-agents that it ran. */
      readonly traces?: readonly SubagentExecutionTrace[]
    })
