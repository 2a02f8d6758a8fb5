import type { DeliveryStatus } from '@skein/threads'
import type { JsonObject, JsonValue } from '@skein/base'
import type { Message } from '@skein/ai'

/** Side A is an agent, side B another agent or a person. */
export type Side = 'a' | 'b'

/** A message of a thread with the data that the runtime stores about it. */
export interface StoredMessage {
  readonly id: string
  readonly message: Message
  /** The side that wrote the message. */
  readonly side: Side
  /** Whether the message is left out of ordinary lists of messages; models receive it all the same. */
  readonly isSilent: boolean
  readonly at: string
  readonly turnId: string
  readonly attachments: readonly string[]
  /** The thread id of the child that sent the message. */
  readonly subagentId?: string
  readonly metadata?: JsonObject
  /**
   * Whether people may rely on the message, if it is the answer of an agent with a task class: `pending` until the
   * gate has judged it, `refused` if it was not delivered. Absent for messages that no gate checks.
   */
  readonly delivery?: DeliveryStatus
}

/** One child in the list of its parent (Standard Agents §7.11). */
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
  /** `running`, `idle`, `failed`, `terminated`, or the text that the child published. */
  readonly status: string
  readonly parentCommunication?: 'implicit' | 'explicit'
}

/** A message to be queued. */
export interface NewMessage {
  readonly content: string | Message
  /** Who gets the message: for `user` (default) the agent (side A), for `assistant` the person or second agent. */
  readonly role?: 'user' | 'assistant'
  readonly isSilent?: boolean
  /** Paths of files of this thread that belong to the message. */
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

/** Selects the messages to list. */
export interface MessageQuery {
  readonly limit?: number
  readonly offset?: number
  readonly order?: 'asc' | 'desc'
  readonly includeSilent?: boolean
}

/** An effect of a thread. */
export interface ScheduledEffect {
  readonly id: string
  readonly name: string
  readonly args: JsonValue
  /** When the effect runs next (ISO 8601). */
  readonly at: string
  readonly cron?: string
  readonly timeZone?: string
  readonly key?: string
  readonly attempts: number
}

/** When an effect runs: after a delay, or by a cron expression. */
export interface EffectSchedule {
  readonly delayMs?: number
  /**
   * A cron expression with five fields. After a pause the effect runs once, not once per missed time.
   */
  readonly cron?: string
  /**
   * The time zone of `cron`, e.g. `Europe/Zurich`; UTC by default. When clocks change, an effect with one time a
   * day runs once that day.
   */
  readonly timeZone?: string
  /** A new effect with the same key replaces the earlier one. */
  readonly key?: string
}

/**
 * The values of a user: of the owner of the thread or, for a child, of the owner of its root thread. They
 * work like the values of the thread: writes are committed once, together with the outcome of the call. If
 * another writer has set a value after this code read it, a commit that sets it is refused (`STATE_CONFLICT`);
 * `update` has no conflicts. All methods reject with `VALUE_INVALID` in a thread without an owner.
 */
export interface UserState {
  get(key: string): Promise<JsonValue | undefined>
  /** Sets a value; null removes it. */
  set(key: string, value: JsonValue | null): Promise<void>
  /** Changes a value by a function of its current value, which is called again after a conflict. */
  update(key: string, change: (value: JsonValue | undefined) => JsonValue | null): Promise<void>
  delete(key: string): Promise<void>
  list(prefix?: string): Promise<Readonly<Record<string, JsonValue>>>
}

/**
 * The thread as its tools, hooks and effects see it. Changes that a tool makes are committed together with its result,
 * in one transaction; when a tool throws, its changes are dropped. `setStatus` and `emit` take effect immediately.
 */
export interface ThreadState {
  readonly threadId: string
  readonly agentId: string
  readonly userId: string | null
  readonly tenant: string
  /** Microseconds since 1970. */
  readonly createdAt: number
  readonly terminated: number | null
  readonly children: readonly SubagentRegistryEntry[]
  /** The arguments that a child was created with. */
  readonly arguments: JsonObject
  readonly signal: AbortSignal

  getMessages(query?: MessageQuery): readonly StoredMessage[]
  getMessage(id: string): StoredMessage | undefined
  /** Adds a message to the history without waking the thread. */
  injectMessage(message: NewMessage): string
  /** Queues a message. The model sees it before its next step; an idle thread starts a turn. */
  queueMessage(message: NewMessage): string
  updateMessage(id: string, content: string | Message): void
  deleteMessage(id: string): void

  /** Returns the value of a variable; throws when the variable has no value. */
  env(name: string): string
  hasEnv(name: string): boolean
  envType(name: string): 'text' | 'secret' | undefined
  setEnv(name: string, value: string | null, options?: { readonly type?: 'text' | 'secret' }): void

  getValue(key: string): JsonValue | undefined
  /**
   * Sets a value; null removes it. If the same code has read the value before, and another writer has set it
   * since, the commit is refused (`STATE_CONFLICT`), so that no change is lost: an endpoint runs again, the
   * call of a tool ends with an error. `updateValue` has no conflicts.
   */
  setValue(key: string, value: JsonValue | null): void
  /**
   * Changes a value by a function of its current value, e.g. `updateValue('count', (n) => Number(n ?? 0) + 1)`.
   * The function is called again at the commit if the value was changed meanwhile, so it must have no side
   * effects. Null removes the value.
   */
  updateValue(key: string, change: (value: JsonValue | undefined) => JsonValue | null): void
  listValues(prefix?: string): Readonly<Record<string, JsonValue>>

  /** The values of the thread's user, which all threads of that user share. */
  readonly user: UserState
  /** The same as `user.get`. */
  getUserValue(key: string): Promise<JsonValue | undefined>
  /** The same as `user.set`. */
  setUserValue(key: string, value: JsonValue | null): Promise<void>
  /** The same as `user.list`. */
  listUserValues(prefix?: string): Promise<Readonly<Record<string, JsonValue>>>

  /** Runs another tool that is listed in `uses` and returns its result. Nothing is stored in the history. */
  invokeTool(name: string, args: JsonValue): Promise<unknown>

  /**
   * Runs a tool after this code, without a model: as an effect that is due immediately, so it happens once, is judged by
   * the policy like any call, and survives a crash. Its result is added to the history as a message that people are
   * not shown. A tool may queue the tools that are listed in its `uses`; hooks, effects and endpoints may queue every
   * tool. Returns the id of the effect, whose name is `tool:` and the name of the tool.
   */
  queueTool(name: string, args: JsonObject): string

  getParentThread(): { readonly threadId: string } | null
  /** Returns a direct child that can still be reached, by its reference; null if there is none. */
  getChildThread(reference: string): (SubagentRegistryEntry & { readonly threadId: string }) | null
  /** Queues the text at the parent, as a message that people are not shown. */
  notifyParent(content: string, attachments?: readonly string[]): void
  /** Replaces the status text that the parent's list of children shows. */
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
  /** The same as `statFile`. */
  getFileStats(path: string): FileStat | undefined
  /** The same as `listFiles`. */
  readdirFile(prefix?: string): readonly FileStat[]
  /** The same as `removeFile`. */
  unlinkFile(path: string): void
  /** The same as `moveFile`. */
  renameFile(from: string, to: string): void
  /** Returns the files whose paths match the pattern: `*` matches within a segment, `**` across segments. */
  findFiles(pattern: string): readonly FileStat[]
  /** Returns the lines that contain the text, from the thread's text files. */
  grepFiles(
    text: string,
    prefix?: string,
  ): Promise<readonly { readonly path: string; readonly line: number; readonly text: string }[]>
}
