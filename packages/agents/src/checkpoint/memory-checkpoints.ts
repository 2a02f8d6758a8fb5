import { type Clock, type IdSource, systemClock, uuidV4 } from '@skein/base'
import type {
  CallRecord,
  CheckpointMetadata,
  FullCheckpointStore,
} from '../contract/checkpoint-store.ts'
import { checkpointMetadata } from './saved-state.ts'
import { foldJournal } from './fold-journal.ts'
import {
  checkExpected,
  decodeVersions,
  type EncodedVersion,
  ownCopy,
  VersionWriter,
} from './versions.ts'

/** Options of `memoryCheckpoints`. */
export interface MemoryCheckpointOptions {
  /** Whether to store finished calls, so that a resumed run does not repeat them. Default false. */
  readonly journal?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

interface Session {
  readonly writer: VersionWriter
  readonly versions: Version[]
  /** The index in `versions` of each version, by checkpoint id. */
  readonly positions: Map<string, number>
  journal: CallRecord[]
}

interface Version extends EncodedVersion {
  readonly metadata: CheckpointMetadata
  /** The index in `versions` of the whole state to which this version and those before it add their changes. */
  readonly base: number
}

/** Stores checkpoints in memory until the process ends. For tests, and for undo within one run. */
export function memoryCheckpoints(options: MemoryCheckpointOptions = {}): FullCheckpointStore {
  const { journal = false, clock = systemClock, ids = uuidV4 } = options
  const sessions = new Map<string, Session>()
  const stateAt = ({ versions }: Session, position: number) =>
    decodeVersions(
      versions
        .slice(versions[position]!.base, position + 1)
        .map(({ isWhole, text }) => ({ isWhole, value: JSON.parse(text) as unknown })),
    )
  return {
    async save(sessionId, state, { expected } = {}) {
      const session = sessions.get(sessionId) ?? newSession()
      const { writer, versions, positions } = session
      checkExpected(sessionId, expected, versions.at(-1)?.metadata)
      const metadata = checkpointMetadata(sessionId, state, { clock, ids })
      const record = writer.encode(ownCopy(state))
      const position = versions.length
      const base = record.isWhole ? position : versions[position - 1]!.base
      versions.push({ ...record, metadata, base })
      positions.set(metadata.checkpointId, position)
      session.journal = []
      sessions.set(sessionId, session)
      return metadata
    },
    async load(sessionId) {
      const session = sessions.get(sessionId)
      return session
        ? foldJournal(stateAt(session, session.versions.length - 1), session.journal)
        : null
    },
    async loadMetadata(sessionId) {
      return sessions.get(sessionId)?.versions.at(-1)?.metadata ?? null
    },
    async loadVersion(sessionId, checkpointId) {
      const session = sessions.get(sessionId)
      const position = session?.positions.get(checkpointId)
      return session && position !== undefined ? stateAt(session, position) : null
    },
    async history(sessionId) {
      return sessions.get(sessionId)?.versions.map(({ metadata }) => metadata) ?? []
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

function newSession(): Session {
  return { writer: new VersionWriter(), versions: [], positions: new Map(), journal: [] }
}
