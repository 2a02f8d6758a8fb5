import type { JournalEntry } from './checkpoint/journal.ts'
import type { AgentStateJSON } from './state.ts'

/** Keeps the state of sessions (UAP §12.4). */
export interface CheckpointStore {
  save(sessionId: string, state: AgentStateJSON): Promise<void>
  /** The newest state of a session, null if there is none. */
  load(sessionId: string): Promise<AgentStateJSON | null>
  /** Optional: stores of your own may leave it out. */
  loadMetadata?(sessionId: string): Promise<CheckpointMetadata | null>
  delete(sessionId: string): Promise<void>
  list(): Promise<string[]>
  /** Optional journal: keeps the result of a call that is over, until the next `save` (A25). */
  record?(sessionId: string, entry: JournalEntry): Promise<void>
}

export interface CheckpointMetadata {
  readonly sessionId: string
  readonly checkpointId: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly step: number
  readonly agentId: string
}
