import {
  type Clock,
  type IdSource,
  isPlainObject,
  messageOf,
  systemClock,
  uuidV4,
} from '@skein/base'
import type {
  CheckpointErrorHandler,
  CheckpointMetadata,
  FullCheckpointStore,
  CallRecord,
} from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { KeyedQueue, logCheckpointError, reportError } from './checkpointer.ts'
import {
  fileSystem,
  type FileSystem,
  fromFolderName,
  gunzip,
  gzip,
  isGzip,
  isMissing,
  readIfThere,
  toFolderName,
  writeWhole,
} from './file-system-node.ts'
import { checkpointMetadata, foldJournal, stateText } from './saved-state.ts'

/** Options of `fileCheckpoints`. */
export interface FileCheckpointOptions {
  /** Default `.checkpoints`. */
  readonly dir?: string
  /**
   * Whether to write `checkpoint.json.gz` instead of `checkpoint.json`. Both can always be read. Default
   * false.
   */
  readonly compress?: boolean
  /** Whether to store finished calls in `journal.ndjson`, so that a resumed run does not repeat them. */
  readonly journal?: boolean
  /** Whether to wait until each checkpoint is on the disk, for machines that may lose power. Default true. */
  readonly fsync?: boolean
  /** Called for each file that cannot be read; the file is treated as missing. Default: `console.error`. */
  readonly onError?: CheckpointErrorHandler
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Stores checkpoints as files (UAP §12.4.3): `<dir>/<session>/checkpoint.json` and `metadata.json`, each
 * replaced atomically. Several stores may share a folder.
 *
 *     const coder = agent({ model, checkpoints: fileCheckpoints({ dir: './checkpoints' }) })
 */
export function fileCheckpoints(options: FileCheckpointOptions = {}): FullCheckpointStore {
  const files = new SessionFiles(options)
  return {
    save: (sessionId, state) => files.save(sessionId, state),
    load: (sessionId) => files.load(sessionId),
    loadMetadata: (sessionId) => files.loadMetadata(sessionId),
    delete: (sessionId) => files.delete(sessionId),
    list: () => files.list(),
    record: options.journal ? (sessionId, entry) => files.record(sessionId, entry) : undefined,
  }
}

const PLAIN = 'checkpoint.json'
const PACKED = 'checkpoint.json.gz'
const METADATA = 'metadata.json'
const JOURNAL = 'journal.ndjson'

/** One queue per folder, so that two stores in one process do not write at the same time. */
const locks = new KeyedQueue()

class SessionFiles {
  readonly #options: FileCheckpointOptions
  readonly #system: FileSystem
  readonly #dir: string
  readonly #ids: IdSource
  readonly #fsync: boolean
  /** Folders that this store has written to. */
  readonly #saved = new Set<string>()

  constructor(options: FileCheckpointOptions) {
    this.#options = options
    this.#system = fileSystem()
    this.#dir = this.#system.path.resolve(options.dir ?? '.checkpoints')
    this.#ids = options.ids ?? uuidV4
    this.#fsync = options.fsync ?? true
  }

  async save(sessionId: string, state: AgentStateJSON): Promise<void> {
    const { compress = false, clock = systemClock } = this.#options
    const folder = this.#folder(sessionId)
    const text = stateText(state)
    const metadata = checkpointMetadata(sessionId, state, { clock, ids: this.#ids })
    await locks.run(folder, async () => {
      const data = compress ? await gzip(this.#system, text) : text
      await this.#write(folder, compress ? PACKED : PLAIN, data)
      await this.#write(folder, METADATA, JSON.stringify(metadata))
      await this.#removeOld(folder, compress ? PLAIN : PACKED)
    })
  }

  async load(sessionId: string): Promise<AgentStateJSON | null> {
    const folder = this.#folder(sessionId)
    return locks.run(folder, async () => {
      const file = await this.#newest(folder)
      const state = file && (await this.#read(sessionId, file, isState))
      if (!state) return null
      try {
        return foldJournal(state, await this.#journal(sessionId, folder))
      } catch (error) {
        this.#report(error, sessionId, this.#file(folder, JOURNAL))
        return state
      }
    })
  }

  async loadMetadata(sessionId: string): Promise<CheckpointMetadata | null> {
    const file = this.#file(this.#folder(sessionId), METADATA)
    return (await this.#read(sessionId, file, isMetadata)) ?? null
  }

  async delete(sessionId: string): Promise<void> {
    const folder = this.#folder(sessionId)
    await locks.run(folder, () => this.#system.files.rm(folder, { recursive: true, force: true }))
    this.#saved.delete(folder)
  }

  async list(): Promise<string[]> {
    const names = await this.#names()
    const ids = await Promise.all(
      names.map(async (name) => {
        const sessionId = fromFolderName(name)
        const isSession = sessionId && (await this.#newest(this.#file(this.#dir, name)))
        return isSession ? sessionId : undefined
      }),
    )
    return ids.filter((id) => id !== undefined).sort()
  }

  async record(sessionId: string, entry: CallRecord): Promise<void> {
    const folder = this.#folder(sessionId)
    const { files } = this.#system
    await locks.run(folder, async () => {
      await files.mkdir(folder, { recursive: true, mode: 0o700 })
      const handle = await files.open(this.#file(folder, JOURNAL), 'a', 0o600)
      try {
        // The entry starts with a line break, so that it does not continue a line that a crashed process left
        // half-written.
        await handle.writeFile(`\n${JSON.stringify(entry)}\n`)
        if (this.#fsync) await handle.sync()
      } finally {
        await handle.close()
      }
    })
  }

  #folder(sessionId: string): string {
    return this.#file(this.#dir, toFolderName(sessionId))
  }

  #file(folder: string, name: string): string {
    return this.#system.path.join(folder, name)
  }

  async #write(folder: string, name: string, data: string | Uint8Array): Promise<void> {
    const file = this.#file(folder, name)
    // Metadata can be restored from the checkpoint, so it is not flushed to the disk.
    const options = { fsync: this.#fsync && name !== METADATA, unique: uuidV4() }
    try {
      await writeWhole(this.#system, file, data, options)
    } catch (error) {
      if (!isMissing(error)) throw error
      await this.#system.files.mkdir(folder, { recursive: true, mode: 0o700 })
      await writeWhole(this.#system, file, data, options)
    }
  }

  /**
   * Removes the files that a save replaces: the journal, and a checkpoint that an earlier store wrote in the
   * other form (compressed or plain).
   */
  async #removeOld(folder: string, otherForm: string): Promise<void> {
    const { files } = this.#system
    const isFirst = !this.#saved.has(folder)
    this.#saved.add(folder)
    if (isFirst) await files.rm(this.#file(folder, otherForm), { force: true })
    if (isFirst || this.#options.journal)
      await files.rm(this.#file(folder, JOURNAL), { force: true })
  }

  /**
   * Returns the path of the newer checkpoint file, compressed or plain. Both files exist if a process died
   * after writing one and before removing the other.
   */
  async #newest(folder: string): Promise<string | undefined> {
    const found = await Promise.all(
      [PLAIN, PACKED].map(async (name) => {
        const file = this.#file(folder, name)
        const time = await this.#modified(file)
        return time === undefined ? [] : [{ file, time }]
      }),
    )
    return found.flat().sort((a, b) => b.time - a.time)[0]?.file
  }

  async #modified(file: string): Promise<number | undefined> {
    try {
      return (await this.#system.files.stat(file)).mtimeMs
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** Reads a JSON file. An invalid file is reported and treated as missing. */
  async #read<T>(
    sessionId: string,
    file: string,
    isExpected: (value: unknown) => value is T,
  ): Promise<T | undefined> {
    const bytes = await readIfThere(this.#system, file)
    if (!bytes) return undefined
    try {
      const text = isGzip(bytes) ? await gunzip(this.#system, bytes) : bytes
      const value: unknown = JSON.parse(new TextDecoder().decode(text))
      if (isExpected(value)) return value
      throw new TypeError('its content has another form')
    } catch (error) {
      this.#report(error, sessionId, file)
      return undefined
    }
  }

  async #journal(sessionId: string, folder: string): Promise<CallRecord[]> {
    const file = this.#file(folder, JOURNAL)
    const bytes = await readIfThere(this.#system, file)
    const lines = bytes ? new TextDecoder().decode(bytes).split('\n') : []
    return lines.flatMap((line) => {
      if (line === '') return []
      try {
        return [JSON.parse(line) as CallRecord] // `foldJournal` checks the fields of the entry
      } catch (error) {
        this.#report(error, sessionId, file)
        return []
      }
    })
  }

  async #names(): Promise<string[]> {
    try {
      return await this.#system.files.readdir(this.#dir)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  #report(error: unknown, sessionId: string, file: string): void {
    const { onError = logCheckpointError } = this.#options
    const failure = new Error(`${file} cannot be read: ${messageOf(error)}`, { cause: error })
    reportError(onError, failure, sessionId)
  }
}

function isState(value: unknown): value is AgentStateJSON {
  return (
    isPlainObject(value) && typeof value['version'] === 'string' && Array.isArray(value['messages'])
  )
}

function isMetadata(value: unknown): value is CheckpointMetadata {
  return isPlainObject(value) && typeof value['checkpointId'] === 'string'
}
