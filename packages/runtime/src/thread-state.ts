import type { JsonObject, JsonValue } from '@skein/base'
import type { Message } from '@skein/ai'

/** The side that spoke: A, or B, which may be a person. */
export type Side = 'a' | 'b'

/** A message of a thread with what the runtime knows about it. */
export interface StoredMessage {
  readonly id: string
  readonly message: Message
  /** Whose speech it is. */
  readonly side: Side
  /** Hidden from ordinary lists; models see it. */
  readonly isSilent: boolean
  readonly at: string
  readonly turnId: string
  readonly attachments: readonly string[]
  /** The child it came from. */
  readonly subagentId?: string
  readonly metadata?: JsonObject
}

/** One child as its parent knows it (Standard Agents §7.11). */
export interface SubagentRegistryEntry {
  readonly reference: string
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly resumable?: boolean
  readonly blocking?: boolean
  readonly threadName?: string
  readonly spawnGroupId?: string
  readonly createdAt?: number
  /** `running`, `idle`, `failed`, `terminated`, or the text that a running child published. */
  readonly status: string
  readonly parentCommunication?: 'implicit' | 'explicit'
}

/** A message to be queued. */
export interface NewMessage {
  readonly content: string | Message
  /** `user` speaks to side A (default), `assistant` to side B. */
  readonly role?: 'user' | 'assistant'
  readonly isSilent?: boolean
  /** Paths of files of this thread. */
  readonly attachments?: readonly string[]
  readonly metadata?: JsonObject
}

/** A file of a thread. */
export interface FileStat {
  readonly path: string
  readonly mediaType: string
  readonly sizeBytes: number
  /** SHA-256 of the content, hex. */
  readonly hash: string
  readonly writtenAt: string
}

/** Which messages to list. */
export interface MessageQuery {
  readonly limit?: number
  readonly offset?: number
  readonly order?: 'asc' | 'desc'
  readonly includeSilent?: boolean
}

/** Scheduled work of a thread. */
export interface ScheduledEffect {
  readonly id: string
  readonly name: string
  readonly args: JsonValue
  /** When it runs next; ISO 8601. */
  readonly at: string
  readonly cron?: string
  readonly key?: string
  readonly attempts: number
}

/** When an effect runs: after a delay, or by a calendar. */
export interface EffectSchedule {
  readonly delayMs?: number
  /** Five fields, UTC. After a pause it runs once, not once per missed time. */
  readonly cron?: string
  /** A second effect with this key replaces the first. */
  readonly key?: string
}

/**
 * What tools, hooks and effects see of their thread. What a tool changes becomes true together with
 * its result, in one transaction; a tool that throws has changed nothing. `setStatus` and `emit` show
 * at once.
 */
export interface ThreadState {
  readonly threadId: string
  readonly agentId: string
  readonly userId: string | null
  readonly tenant: string
  /** Microseconds since the epoch. */
  readonly createdAt: number
  readonly terminated: number | null
  readonly children: readonly SubagentRegistryEntry[]
  /** What a child was created with. */
  readonly arguments: JsonObject
  readonly signal: AbortSignal

  getMessages(query?: MessageQuery): readonly StoredMessage[]
  getMessage(id: string): StoredMessage | undefined
  /** Adds a message to the history at once, without waking anyone. */
  injectMessage(message: NewMessage): string
  /** Queues a message: seen before the next step, or starts a turn. */
  queueMessage(message: NewMessage): string
  updateMessage(id: string, content: string | Message): void
  deleteMessage(id: string): void

  /** Throws when the variable has no value. */
  env(name: string): string
  hasEnv(name: string): boolean
  envType(name: string): 'text' | 'secret' | undefined
  setEnv(name: string, value: string | null, options?: { readonly type?: 'text' | 'secret' }): void

  getValue(key: string): JsonValue | undefined
  /** Null removes it. */
  setValue(key: string, value: JsonValue | null): void
  listValues(prefix?: string): Readonly<Record<string, JsonValue>>

  /** Runs another tool listed in `uses` and gives its result; nothing is stored in the history. */
  invokeTool(name: string, args: JsonValue): Promise<unknown>

  getParentThread(): { readonly threadId: string } | null
  /** Queues raw text to the parent, silently. */
  notifyParent(content: string, attachments?: readonly string[]): void
  /** Replaces the text that the parent's registry shows. */
  setStatus(status: string): Promise<void>
  terminate(): void
  /** Ends the session after this call. */
  stopSession(options?: {
    readonly result?: string
    readonly failed?: boolean
    readonly attachments?: readonly string[]
  }): void

  scheduleEffect(name: string, args: JsonValue, when: number | EffectSchedule): string
  getScheduledEffects(name?: string): readonly ScheduledEffect[]
  removeScheduledEffect(id: string): boolean

  /** Publishes an event to subscribers; it is kept in the log unless `transient`. */
  emit(type: string, data: JsonValue, options?: { readonly transient?: boolean }): Promise<void>

  writeFile(
    path: string,
    data: string | Uint8Array,
    options?: { readonly mediaType?: string },
  ): Promise<FileStat>
  readFile(path: string): Promise<Uint8Array>
  readTextFile(path: string): Promise<string>
  statFile(path: string): FileStat | undefined
  listFiles(prefix?: string): readonly FileStat[]
  removeFile(path: string): void
  moveFile(from: string, to: string): void
  /** Paths that match: `*` within a segment, `**` across. */
  findFiles(pattern: string): readonly FileStat[]
  /** Lines that contain the text, in text files. */
  grepFiles(
    text: string,
    prefix?: string,
  ): Promise<readonly { readonly path: string; readonly line: number; readonly text: string }[]>
}
