import { type Clock, type IdSource, isDeepFrozen, systemClock, uuidV4 } from '@skein/base'
import type {
  CheckpointMetadata,
  FullCheckpointStore,
  CallRecord,
} from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { checkpointMetadata, foldJournal } from './saved-state.ts'

/** Options of `memoryCheckpoints`. */
export interface MemoryCheckpointOptions {
  /** Whether to store finished calls, so that a resumed run does not repeat them. Default false. */
  readonly journal?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

interface Session {
  readonly state: AgentStateJSON
  readonly metadata: CheckpointMetadata
  readonly journal: CallRecord[]
}

/** Stores checkpoints in memory until the process ends. For tests, and for undo within one run. */
export function memoryCheckpoints(options: MemoryCheckpointOptions = {}): FullCheckpointStore {
  const { journal = false, clock = systemClock, ids = uuidV4 } = options
  const sessions = new Map<string, Session>()
  return {
    async save(sessionId, state) {
      const metadata = checkpointMetadata(sessionId, state, { clock, ids })
      sessions.set(sessionId, { state: ownCopy(state), metadata, journal: [] })
    },
    async load(sessionId) {
      const session = sessions.get(sessionId)
      if (!session) return null
      return foldJournal(ownCopy(session.state), session.journal)
    },
    async loadMetadata(sessionId) {
      return sessions.get(sessionId)?.metadata ?? null
    },
    async delete(sessionId) {
      sessions.delete(sessionId)
    },
    async list() {
      return [...sessions.keys()]
    },
    record: journal
      ? async (sessionId, entry) => void sessions.get(sessionId)?.journal.push(entry)
      : undefined,
  }
}

/** Returns a copy that nobody else can change: deep-frozen messages are shared, everything else is copied. */
function ownCopy({ messages, ...rest }: AgentStateJSON): AgentStateJSON {
  return {
    ...plainCopy(rest),
    messages: messages.map((message) => (isDeepFrozen(message) ? message : plainCopy(message))),
  }
}

function plainCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T // JSON data does not change in a round trip
}
