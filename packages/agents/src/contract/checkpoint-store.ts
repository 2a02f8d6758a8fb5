import type { MessageJSON } from '@skein/ai'
import type { AgentStateJSON } from '../state/state-types.ts'

/** Keeps the state of sessions (UAP §12.4). */
export interface CheckpointStore {
  save(sessionId: string, state: AgentStateJSON): Promise<void>
  /** The newest state of a session, null if there is none. */
  load(sessionId: string): Promise<AgentStateJSON | null>
  /** Optional: stores of your own may leave it out. */
  loadMetadata?(sessionId: string): Promise<CheckpointMetadata | null>
  delete(sessionId: string): Promise<void>
  list(): Promise<string[]>
  /** Optional journal: keeps the result of a finished call until the next `save`. */
  record?(sessionId: string, entry: JournalEntry): Promise<void>
}

/** What is known of a checkpoint without reading the state (UAP §12.4.2). */
export interface CheckpointMetadata {
  readonly sessionId: string
  readonly checkpointId: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly step: number
  readonly agentId: string
}

/** A finished call, recorded before the run continues. */
export interface JournalEntry {
  readonly toolCallId: string
  /** The call's result as a message, so that bytes survive JSON. */
  readonly message: MessageJSON
}

/** A store that also records finished calls, e.g. `fileCheckpoints({ journal: true })`. */
export type JournalingStore = CheckpointStore & Required<Pick<CheckpointStore, 'record'>>

/** What the stores of this package can do; `record` only with the option `journal`. */
export type FullCheckpointStore = CheckpointStore & Required<Pick<CheckpointStore, 'loadMetadata'>>

/** Called with what went wrong with the checkpoints of a session. The run continues (UAP §12.4.7). */
export type CheckpointErrorHandler = (error: unknown, sessionId: string) => void
