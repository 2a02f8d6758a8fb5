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
  SaveOptions,
} from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { KeyedQueue, logCheckpointError, reportError } from './checkpointer.ts'
import {
  fileSystem,
  type FileSystem,
  gunzip,
  gzip,
  isGzip,
  isMissing,
  readIfThere,
  writeWhole,
} from './file-system-node.ts'
import { fromFolderName, toFolderName } from './folder-name.ts'
import { checkpointMetadata, stateText } from './saved-state.ts'
import { foldJournal } from './fold-journal.ts'
import {
  checkExpected,
  decodeVersions,
  type ReadVersion,
  ownCopy,
  VersionWriter,
} from './versions.ts'

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
  /**
   * How many versions of a session stay readable; older ones are removed now and then. Default: all. Set it
   * if most of a state changes with each save: each version then takes the space of a whole state.
   */
  readonly keepVersions?: number
  /**
   * Called for each file that cannot be read, which is treated as missing, and if `checkpoint.json` cannot be written
   * between two saves. Default: `console.error`.
   */
  readonly onError?: CheckpointErrorHandler
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Stores checkpoints as files (UAP §12.4.3): `<dir>/<session>/checkpoint.json` and `metadata.json`, each
 * replaced atomically. `checkpoint.json` has the newest state, whole. Next to it, `versions/` has every version,
 * as a whole state or as a change, so that their bytes grow linearly with the steps. A save that is already
 * followed by another (`isFollowed`) only adds its version: the save after it replaces `checkpoint.json`, or half a
 * second does. If the process dies in between, `load` reads the newest state from the versions. Several stores may share a folder.
 *
 *     const coder = agent({ model, checkpoints: fileCheckpoints({ dir: './checkpoints' }) })
 */
export function fileCheckpoints(options: FileCheckpointOptions = {}): FullCheckpointStore {
  const files = new SessionFiles(options)
  return {
    save: (sessionId, state, saveOptions) => files.save(sessionId, state, saveOptions),
    load: (sessionId) => files.load(sessionId),
    loadMetadata: (sessionId) => files.loadMetadata(sessionId),
    loadVersion: (sessionId, checkpointId) => files.loadVersion(sessionId, checkpointId),
    history: (sessionId) => files.history(sessionId),
    finish: (sessionId) => files.finish(sessionId),
    delete: (sessionId) => files.delete(sessionId),
    list: () => files.list(),
    record: options.journal ? (sessionId, entry) => files.record(sessionId, entry) : undefined,
  }
}

const PLAIN = 'checkpoint.json'
const PACKED = 'checkpoint.json.gz'
const METADATA = 'metadata.json'
const JOURNAL = 'journal.ndjson'
const VERSIONS = 'versions'
const INDEX = 'index.ndjson'
/** How long the checkpoint file may be behind the newest version. */
const MAX_LATE_MS = 500

/** The versions that this process is writing in a folder: a whole state, then the change of each save. */
interface Chain {
  readonly writer: VersionWriter
  readonly segment: string
  /** The length of the index file after this process's last save; if it is longer now, another process has saved. */
  indexSize: number
}

/** The last chain of versions of each folder, shared by all stores of this process. At most `MAX_CHAINS` are kept. */
const chains = new Map<string, Chain>()
const MAX_CHAINS = 1000

/** A line of the index file: describes one version and names the segment file that contains it. */
interface IndexLine extends CheckpointMetadata {
  readonly segment: string
}

/** A line of a segment file, e.g. `00000001.ndjson`: one version. The first line has a whole state. */
interface SegmentLine {
  readonly checkpointId: string
  readonly stateId: string
  /** Set on the first line: the id of the state in the checkpoint file when the segment was begun. */
  readonly checkpointFile?: string
  readonly whole?: unknown
  readonly change?: unknown
}

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
  /** Folders whose checkpoint file is older than their newest version: what writes it if no save does so before. */
  readonly #late = new Map<string, ReturnType<typeof setTimeout>>()

  constructor(options: FileCheckpointOptions) {
    this.#options = options
    this.#system = fileSystem()
    this.#dir = this.#system.path.resolve(options.dir ?? '.checkpoints')
    this.#ids = options.ids ?? uuidV4
    this.#fsync = options.fsync ?? true
  }

  async save(
    sessionId: string,
    given: AgentStateJSON,
    { expected, isFollowed = false }: SaveOptions = {},
  ): Promise<CheckpointMetadata> {
    const { compress = false, clock = systemClock } = this.#options
    const folder = this.#folder(sessionId)
    const state = ownCopy(given)
    const metadata = checkpointMetadata(sessionId, state, { clock, ids: this.#ids })
    await locks.run(folder, async () => {
      if (expected !== undefined)
        checkExpected(sessionId, expected, await this.loadMetadata(sessionId))
      // The first save of each store object writes the checkpoint file as its options say, packed or plain.
      const writesCheckpoint = !isFollowed || !this.#saved.has(folder)
      // If the checkpoint file is written next, only that file is flushed to the disk.
      await this.#append(folder, state, metadata, { fsync: this.#fsync && !writesCheckpoint })
      if (writesCheckpoint) await this.#writeCheckpoint(folder, state)
      else this.#writeLater(sessionId, folder)
      await this.#write(folder, METADATA, JSON.stringify(metadata))
      await this.#removeOld(folder, writesCheckpoint ? (compress ? PLAIN : PACKED) : undefined)
    })
    return metadata
  }

  async #writeCheckpoint(folder: string, state: AgentStateJSON): Promise<void> {
    const { compress = false } = this.#options
    const text = stateText(state)
    const data = compress ? await gzip(this.#system, text) : text
    await this.#write(folder, compress ? PACKED : PLAIN, data)
    this.#forgetLate(folder)
  }

  /** Bounds how long the checkpoint file is behind: the next save may come after a call that takes an hour. */
  #writeLater(sessionId: string, folder: string): void {
    if (this.#late.has(folder)) return
    const timer = setTimeout(() => {
      this.#late.delete(folder)
      const { onError = logCheckpointError } = this.#options
      this.finish(sessionId).catch((error: unknown) => reportError(onError, error, sessionId))
    }, MAX_LATE_MS)
    timer.unref() // the run itself writes the file at its end
    this.#late.set(folder, timer)
  }

  #forgetLate(folder: string): void {
    clearTimeout(this.#late.get(folder))
    this.#late.delete(folder)
  }

  /** Writes the checkpoint file that the last save left to a save after it. The journal stays as it is. */
  async finish(sessionId: string): Promise<void> {
    const folder = this.#folder(sessionId)
    await locks.run(folder, async () => {
      const chain = chains.get(folder)
      const state = chain?.writer.last
      // If another process has saved since, the checkpoint file is its own.
      const index = this.#file(this.#file(folder, VERSIONS), INDEX)
      if (!state || chain?.indexSize !== (await this.#size(index))) return
      if ((await this.#checkpointFileId(folder)) !== state.id)
        await this.#writeCheckpoint(folder, state)
    })
  }

  /** Appends a version to the newest segment file of its session. */
  async #append(
    folder: string,
    state: AgentStateJSON,
    metadata: CheckpointMetadata,
    { fsync }: { readonly fsync: boolean },
  ): Promise<void> {
    const versions = this.#file(folder, VERSIONS)
    const index = this.#file(versions, INDEX)
    let chain = chains.get(folder)
    chains.delete(folder) // comes back when everything is written
    if (chain && chain.indexSize !== (await this.#size(index))) chain = undefined
    const writer = chain?.writer ?? new VersionWriter()
    const { isWhole, text } = writer.encode(state)
    const segment = !chain || isWhole ? await this.#newSegment(versions) : chain.segment
    const head: SegmentLine = {
      checkpointId: metadata.checkpointId,
      stateId: state.id,
      checkpointFile: isWhole ? await this.#checkpointFileId(folder) : undefined,
    }
    const line = `${JSON.stringify(head).slice(0, -1)},"${isWhole ? 'whole' : 'change'}":${text}}`
    await this.#appendLine(this.#file(versions, segment), line, fsync)
    const { sessionId: _, ...described } = metadata
    await this.#appendLine(index, JSON.stringify({ ...described, segment }), false)
    if (isWhole) await this.#removeOldVersions(versions)
    chains.set(folder, { writer, segment, indexSize: await this.#size(index) })
    if (chains.size > MAX_CHAINS) chains.delete(chains.keys().next().value!)
  }

  /** Returns the id of the state in the checkpoint file. A new segment file stores it, to show what it continues. */
  async #checkpointFileId(folder: string): Promise<string | undefined> {
    const file = await this.#newest(folder)
    const bytes = file && (await readIfThere(this.#system, file))
    if (!bytes) return undefined
    try {
      const text = isGzip(bytes) ? await gunzip(this.#system, bytes) : bytes
      const value: unknown = JSON.parse(new TextDecoder().decode(text))
      return isState(value) ? value.id : undefined
    } catch {
      return undefined // the file is damaged, and this save is about to replace it
    }
  }

  /** Creates the next segment file. If another process has just created that file, the next number is tried. */
  async #newSegment(versions: string): Promise<string> {
    const { files } = this.#system
    await files.mkdir(versions, { recursive: true, mode: 0o700 })
    const names = await this.#segments(versions)
    for (let number = Number.parseInt(names.at(-1) ?? '0', 10) + 1; ; number++) {
      const name = `${String(number).padStart(8, '0')}.ndjson`
      try {
        await (await files.open(this.#file(versions, name), 'wx', 0o600)).close()
        return name
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'EEXIST') throw error
      }
    }
  }

  async #segments(versions: string): Promise<string[]> {
    const names = await this.#names(versions)
    return names.filter((name) => /^\d{8,}\.ndjson$/.test(name)).sort()
  }

  /** Removes the oldest segments, as long as at least `keepVersions` versions remain. */
  async #removeOldVersions(versions: string): Promise<void> {
    const { keepVersions = Infinity } = this.#options
    if (keepVersions === Infinity) return
    const file = this.#file(versions, INDEX)
    const lines = await this.#lines<IndexLine>('', file)
    const first = lines.at(-Math.max(1, keepVersions))
    if (!first || first === lines[0]) return
    const liveLines = lines.filter(({ segment }) => segment >= first.segment)
    if (liveLines.length === lines.length) return
    const data = liveLines.map((line) => `\n${JSON.stringify(line)}\n`).join('')
    await writeWhole(this.#system, file, data, { fsync: false, unique: uuidV4() })
    for (const name of await this.#segments(versions))
      if (name < first.segment)
        await this.#system.files.rm(this.#file(versions, name), { force: true })
  }

  async load(sessionId: string): Promise<AgentStateJSON | null> {
    const folder = this.#folder(sessionId)
    return locks.run(folder, async () => {
      const file = await this.#newest(folder)
      const content = file && (await this.#read(sessionId, file, isState))
      if (!content) return null
      const state = await this.#withVersions(sessionId, folder, content)
      try {
        return foldJournal(state, await this.#journal(sessionId, folder))
      } catch (error) {
        this.#report(error, sessionId, this.#file(folder, JOURNAL))
        return state
      }
    })
  }

  /**
   * Returns the newest state: that of the last segment file with content, if it continues the state in the
   * checkpoint file. Otherwise another program has written the checkpoint file, and its state is the newest.
   */
  async #withVersions(
    sessionId: string,
    folder: string,
    content: AgentStateJSON,
  ): Promise<AgentStateJSON> {
    const versions = this.#file(folder, VERSIONS)
    let file = ''
    let lines: readonly SegmentLine[] = []
    for (const segment of (await this.#segments(versions)).toReversed()) {
      file = this.#file(versions, segment)
      lines = await this.#lines<SegmentLine>(sessionId, file)
      if (lines.length > 0) break // a process that died may have left a file without a whole line
    }
    const isContinued =
      lines[0]?.checkpointFile === content.id || lines.some(({ stateId }) => stateId === content.id)
    if (!isContinued) return content
    try {
      return decodeVersions(lines.map(toVersion))
    } catch (error) {
      this.#report(error, sessionId, file)
      return content
    }
  }

  async loadVersion(sessionId: string, checkpointId: string): Promise<AgentStateJSON | null> {
    const folder = this.#folder(sessionId)
    return locks.run(folder, async () => {
      const versions = this.#file(folder, VERSIONS)
      const index = await this.#lines<IndexLine>(sessionId, this.#file(versions, INDEX))
      const entry = index.find((line) => line.checkpointId === checkpointId)
      if (!entry || !/^\d{8,}\.ndjson$/.test(entry.segment)) return null
      const file = this.#file(versions, entry.segment)
      const lines = await this.#lines<SegmentLine>(sessionId, file)
      const last = lines.findIndex((line) => line.checkpointId === checkpointId)
      if (last < 0) return null
      try {
        return decodeVersions(lines.slice(0, last + 1).map(toVersion))
      } catch (error) {
        this.#report(error, sessionId, file)
        return null
      }
    })
  }

  async history(sessionId: string): Promise<readonly CheckpointMetadata[]> {
    const folder = this.#folder(sessionId)
    return locks.run(folder, async () => {
      const versions = this.#file(folder, VERSIONS)
      const lines = await this.#lines<IndexLine>(sessionId, this.#file(versions, INDEX))
      return lines.map(({ checkpointId, timestamp, step, agentId }) => ({
        sessionId,
        checkpointId,
        timestamp,
        step,
        agentId,
      }))
    })
  }

  async loadMetadata(sessionId: string): Promise<CheckpointMetadata | null> {
    const file = this.#file(this.#folder(sessionId), METADATA)
    return (await this.#read(sessionId, file, isMetadata)) ?? null
  }

  async delete(sessionId: string): Promise<void> {
    const folder = this.#folder(sessionId)
    this.#forgetLate(folder)
    await locks.run(folder, () => this.#system.files.rm(folder, { recursive: true, force: true }))
    this.#saved.delete(folder)
    chains.delete(folder)
  }

  async list(): Promise<string[]> {
    const names = await this.#names(this.#dir)
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
    await locks.run(folder, async () => {
      await this.#system.files.mkdir(folder, { recursive: true, mode: 0o700 })
      await this.#appendLine(this.#file(folder, JOURNAL), JSON.stringify(entry), this.#fsync)
    })
  }

  /** Appends one line of JSON to a file. */
  async #appendLine(file: string, line: string, fsync: boolean): Promise<void> {
    const handle = await this.#system.files.open(file, 'a', 0o600)
    try {
      // The line starts with a line break, so that it does not continue a line that a crashed process left
      // half-written.
      await handle.writeFile(`\n${line}\n`)
      if (fsync) await handle.sync()
    } finally {
      await handle.close()
    }
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
   * Removes the files that a save replaces: the journal and, if this save wrote a checkpoint file, the one
   * that an earlier store wrote in the other form (compressed or plain).
   */
  async #removeOld(folder: string, otherForm: string | undefined): Promise<void> {
    const { files } = this.#system
    const isFirst = !this.#saved.has(folder)
    this.#saved.add(folder)
    if (otherForm !== undefined) await files.rm(this.#file(folder, otherForm), { force: true })
    if (isFirst || this.#options.journal)
      await files.rm(this.#file(folder, JOURNAL), { force: true })
  }

  /**
   * Returns the path of the newer checkpoint file, compressed or plain. Both files exist if a process died
   * after writing one and before removing the other.
   */
  async #newest(folder: string): Promise<string | undefined> {
    const entry = await Promise.all(
      [PLAIN, PACKED].map(async (name) => {
        const file = this.#file(folder, name)
        const time = await this.#modified(file)
        return time === undefined ? [] : [{ file, time }]
      }),
    )
    return entry.flat().sort((a, b) => b.time - a.time)[0]?.file
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
    return this.#lines(sessionId, this.#file(folder, JOURNAL)) // `foldJournal` checks the fields
  }

  /** Reads a file with one JSON value per line. A line that a crash cut off is reported and left out. */
  async #lines<T>(sessionId: string, file: string): Promise<T[]> {
    const bytes = await readIfThere(this.#system, file)
    const lines = bytes ? new TextDecoder().decode(bytes).split('\n') : []
    return lines.flatMap((line) => {
      if (line === '') return []
      try {
        return [JSON.parse(line) as T] // written by this store; a missing field is found when it is used
      } catch (error) {
        this.#report(error, sessionId, file)
        return []
      }
    })
  }

  async #size(file: string): Promise<number> {
    try {
      return (await this.#system.files.stat(file)).size
    } catch (error) {
      if (isMissing(error)) return 0
      throw error
    }
  }

  async #names(folder: string): Promise<string[]> {
    try {
      return await this.#system.files.readdir(folder)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  #report(error: unknown, sessionId: string, file: string): void {
    const { onError = logCheckpointError } = this.#options
    const failure = new Error(`${file} cannot be read: ${messageOf(error)}`, { cause: error })
    void reportError(onError, failure, sessionId)
  }
}

function toVersion({ whole, change }: SegmentLine): ReadVersion {
  return { isWhole: whole !== undefined, value: whole ?? change }
}

function isState(value: unknown): value is AgentStateJSON {
  return (
    isPlainObject(value) && typeof value['version'] === 'string' && Array.isArray(value['messages'])
  )
}

function isMetadata(value: unknown): value is CheckpointMetadata {
  return isPlainObject(value) && typeof value['checkpointId'] === 'string'
}
