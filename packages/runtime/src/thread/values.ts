import { canonicalJson, deepFreeze, type JsonValue, sha256Hex } from '@skein/base'
import { RuntimeError, type RuntimeErrorCode } from '../contract/error.ts'
import type { FileStat, ThreadState, UserState } from '../contract/thread-state.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { RuntimeEvent, ValueSet } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Blob } from '../store/commit.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import type { UserOf, UserValueChange } from '../store/user-value.ts'
import { isStorable } from '../store/storable-text.ts'
import { createGlob, fileMediaType, isTextFile, normalisePath } from './paths.ts'

const MAX_KEY_LENGTH = 256
const MAX_VALUE_BYTES = 256 * 1024

type ValueMembers = Pick<ThreadState, 'getValue' | 'setValue' | 'updateValue' | 'listValues'>

interface FacadeValues extends ValueMembers {
  /** Returns how the code has used values since the last call of `take`, and forgets its pending changes. */
  take(): ValueUse
}

/** How code has used the values of a thread; tells at the commit whether another writer has changed them since. */
export interface ValueUse {
  readonly reads: readonly ValueRead[]
  /** The functions passed to `updateValue`, by the event that contains the result of their first call. */
  readonly updates: ReadonlyMap<RuntimeEvent, ValueUpdate>
  /** The changes to values of the user; absent if there are none. */
  readonly user?: UserValueUse
}

interface ValueRead {
  /** The key that was read, or the prefix of the keys that were listed. */
  readonly key: string
  readonly isPrefix: boolean
  /** The number of the log's last event when the key was first read. */
  readonly seq: number
}

interface ValueUpdate {
  readonly change: (value: JsonValue | undefined) => JsonValue | null
  /** The value with which the function was called. */
  readonly base: JsonValue | undefined
}

/**
 * Creates the methods of a thread's state for values (`getValue`, `setValue` …). Reads include changes
 * that are not committed yet.
 */
export function facadeValues({ kernel, events, at }: FacadeBuffer): FacadeValues {
  const pending = new Map<string, JsonValue | null>()
  let reads = new Map<string, ValueRead>()
  let updates = new Map<RuntimeEvent, ValueUpdate>()
  /** Keys whose pending value was computed from the committed value, so that it depends on other writers. */
  const derived = new Set<string>()

  function noteRead(key: string, isPrefix: boolean): void {
    const name = JSON.stringify([key, isPrefix])
    if (!reads.has(name)) reads.set(name, { key, isPrefix, seq: kernel.seq })
  }

  function put(key: string, value: JsonValue | null): ValueSet {
    checkValueKey(key)
    const copy = value === null ? null : checkedValue(key, value)
    const event: ValueSet = { type: 'value_set', at: at(), key, value: copy }
    events.push(event)
    pending.set(key, copy)
    return event
  }

  return {
    getValue(key) {
      if (!pending.has(key) || derived.has(key)) noteRead(key, false)
      // The value is frozen: a caller that changed it in place would change the thread without an event
      // in the log.
      return deepFreeze(overlaid(pending, kernel.values, key))
    },
    setValue(key, value) {
      put(key, value)
      derived.delete(key)
    },
    updateValue(key, change) {
      const base = deepFreeze(overlaid(pending, kernel.values, key))
      const isDerived = !pending.has(key) || derived.has(key)
      const event = put(key, change(base))
      // If the code has set this value itself before, the result does not depend on other writers.
      if (!isDerived) return
      derived.add(key)
      updates.set(event, { change, base })
    },
    listValues(prefix = '') {
      noteRead(prefix, true)
      const listed = [...allOverlaid(pending, kernel.values)]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => (a < b ? -1 : 1))
      return deepFreeze(Object.fromEntries(listed))
    },
    take() {
      const use = { reads: [...reads.values()], updates }
      reads = new Map()
      updates = new Map()
      derived.clear()
      pending.clear()
      return use
    },
  }
}

/** How code has changed the values of its user. */
export interface UserValueUse {
  readonly of: UserOf
  readonly changes: readonly PendingUserValue[]
}

interface PendingUserValue {
  readonly key: string
  readonly value: JsonValue | null
  /** The version that the code has read, null if there was no value; absent if the code has not read it. */
  readonly expectVersion?: number | null
  /** The functions passed to `update` that computed the value; they are called again if another writer changed it. */
  readonly changes: readonly ValueUpdate['change'][]
}

/**
 * Creates the values of the thread's user. They are in no log, so they are read from the store. Writes
 * take effect with the commit; reads include writes that are not committed yet.
 */
export function facadeUser(
  { environment: { store } }: Pick<FacadeBuffer, 'environment'>,
  head: ThreadHead,
): { readonly user: UserState; take(): UserValueUse | undefined } {
  let owner: Promise<UserOf> | undefined
  let of: UserOf | undefined
  let pending = new Map<string, PendingUserValue>()
  /** The versions of the values that the code has read, by key. */
  let seen = new Map<string, number | null>()
  let listed: { readonly prefix: string; readonly versions: ReadonlyMap<string, number> }[] = []

  async function ofUser(): Promise<UserOf> {
    of = await (owner ??= userOf(store, head))
    return of
  }

  async function read(key: string) {
    const found = await store.userValues(await ofUser(), key)
    return found.find((one) => one.key === key)
  }

  function versionSeen(key: string): number | null | undefined {
    const own = seen.get(key)
    if (own !== undefined) return own
    const list = listed.find(({ prefix }) => key.startsWith(prefix))
    return list && (list.versions.get(key) ?? null)
  }

  const user: UserState = {
    async get(key) {
      checkUserKey(key)
      await ofUser()
      const own = pending.get(key)
      // A value that the code has set itself, without `update`, does not depend on other writers.
      if (own && own.changes.length === 0) return deepFreeze(own.value ?? undefined)
      const found = own ? undefined : await read(key)
      const version = own ? (own.expectVersion ?? null) : (found?.version ?? null)
      if (!seen.has(key)) seen.set(key, version)
      return deepFreeze(own ? (own.value ?? undefined) : found?.value)
    },
    async set(key, value) {
      checkUserKey(key)
      const copy = value === null ? null : checkedValue(key, value)
      await ofUser()
      pending.set(key, { key, value: copy, expectVersion: versionSeen(key), changes: [] })
    },
    async update(key, change) {
      checkUserKey(key)
      await ofUser()
      const found = pending.has(key) ? undefined : await read(key)
      const own = pending.get(key) // read after the wait, because another call may have set it
      const base = own ? (own.value ?? undefined) : found?.value
      const next = change(deepFreeze(base))
      const value = next === null ? null : checkedValue(key, next)
      if (own && own.changes.length === 0) pending.set(key, { ...own, value })
      else {
        const expectVersion = own ? own.expectVersion : (found?.version ?? null)
        pending.set(key, { key, value, expectVersion, changes: [...(own?.changes ?? []), change] })
      }
    },
    delete: (key) => user.set(key, null),
    async list(prefix = '') {
      const found = await store.userValues(await ofUser(), prefix)
      listed.push({ prefix, versions: new Map(found.map(({ key, version }) => [key, version])) })
      const own = [...pending.values()].filter(({ key }) => key.startsWith(prefix))
      const all = allOverlaid(
        new Map(own.map(({ key, value }) => [key, value])),
        new Map(found.map(({ key, value }) => [key, value])),
      )
      const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : 1))
      return deepFreeze(Object.fromEntries(sorted))
    },
  }
  return {
    user: Object.freeze(user),
    take() {
      // A value that the code has also read must not be computed again: the code may have used the value it read.
      const changes = [...pending.values()].map((one) =>
        versionSeen(one.key) === undefined ? one : { ...one, changes: [] },
      )
      pending = new Map()
      seen = new Map()
      listed = []
      return of && changes.length > 0 ? { of, changes } : undefined
    },
  }
}

/** Returns the user whose values a thread uses: its owner or, for a child without one, the owner of its root thread. */
async function userOf(store: Store, { id, tenant, owner, rootId }: ThreadHead): Promise<UserOf> {
  const user = owner ?? (rootId === id ? null : (await store.head(rootId))?.owner)
  if (user !== null && user !== undefined) return { tenant, user }
  throw new RuntimeError(`Thread ${id} has no owner, so there is no user with values.`, {
    code: 'VALUE_INVALID',
    hint: 'Create the thread with an `owner`, or keep the value in the thread with `setValue`.',
  })
}

/** Returns the changes as a commit has them. */
export function userChanges(
  { user }: Pick<ValueUse, 'user'>,
  at: string,
): readonly UserValueChange[] | undefined {
  return user?.changes.map(({ key, value, expectVersion }) => ({
    ...user.of,
    key,
    value,
    at,
    expectVersion,
  }))
}

/**
 * Computes the changes again from the present values, after a commit was refused with `VALUE_MOVED`. Throws
 * `STATE_CONFLICT` if a value that the code read, and did not only change with `update`, has changed since.
 */
export async function freshUserValues(store: Store, use: UserValueUse): Promise<UserValueUse> {
  const now = new Map((await store.userValues(use.of)).map((one) => [one.key, one]))
  const changes = use.changes.map((one): PendingUserValue => {
    const { key, expectVersion, changes: updates } = one
    const found = now.get(key)
    const version = found?.version ?? null
    if (expectVersion === undefined || expectVersion === version) return one
    if (updates.length === 0)
      throw new RuntimeError(
        `The value "${key}" of the user was changed by another writer after it was read.`,
        {
          code: 'STATE_CONFLICT',
          hint: 'Nothing was stored. Read the value again, or change it with `user.update`.',
        },
      )
    let value: JsonValue | null = found?.value ?? null
    for (const change of updates) value = change(deepFreeze(value ?? undefined))
    const copy = value === null ? null : checkedValue(key, value)
    return { key, value: copy, expectVersion: version, changes: updates }
  })
  return { of: use.of, changes }
}

/** Throws `VALUE_INVALID` for a key that values of users cannot have. */
export function checkUserKey(key: string): void {
  checkValueKey(key)
  if (!isStorable(key))
    throw new RuntimeError('The key of a value of a user cannot be stored.', {
      code: 'VALUE_INVALID',
      hint: 'Keys are well-formed text without the character NUL.',
    })
}

/** Returns the keys of the values that the events set. */
export function writtenKeys(events: readonly RuntimeEvent[]): ReadonlySet<string> {
  return new Set(events.flatMap((event) => (event.type === 'value_set' ? [event.key] : [])))
}

/** Returns the reads of these keys. */
export function readsOf({ reads }: ValueUse, keys: ReadonlySet<string>): readonly ValueRead[] {
  return reads.filter((read) =>
    read.isPrefix ? [...keys].some((key) => key.startsWith(read.key)) : keys.has(read.key),
  )
}

/** Throws `STATE_CONFLICT` if one of the values was set after it was read; `keys` limits the check to these keys. */
export function checkReads(
  { threadId, valueSeqs }: Pick<KernelState, 'threadId' | 'valueSeqs'>,
  reads: readonly ValueRead[],
  keys?: ReadonlySet<string>,
): void {
  for (const { key, isPrefix, seq } of reads) {
    const changed = isPrefix
      ? [...valueSeqs].find(
          ([name, at]) => name.startsWith(key) && at > seq && (keys?.has(name) ?? true),
        )?.[0]
      : (valueSeqs.get(key) ?? 0) > seq
        ? key
        : undefined
    if (changed === undefined) continue
    throw new RuntimeError(
      `The value "${changed}" of thread ${threadId} was changed by another writer after it was read.`,
      {
        code: 'STATE_CONFLICT',
        hint: 'Nothing was stored. Read the value again, or change it with `updateValue`.',
      },
    )
  }
}

/** Returns the events with the functions passed to `updateValue` applied to the values as they are now. */
export function withUpdates(
  events: readonly RuntimeEvent[],
  { updates }: ValueUse,
  values: ReadonlyMap<string, JsonValue>,
): readonly RuntimeEvent[] {
  if (updates.size === 0) return events
  const pending = new Map<string, JsonValue | null>()
  return events.map((event) => {
    if (event.type !== 'value_set') return event
    const update = updates.get(event)
    const now = update && deepFreeze(overlaid(pending, values, event.key))
    const isSame = !update || canonicalJson(now ?? null) === canonicalJson(update.base ?? null)
    const next = isSame ? event.value : update.change(now)
    const value = isSame || next === null ? next : checkedValue(event.key, next)
    pending.set(event.key, value)
    return isSame ? event : { ...event, value }
  })
}

/** Throws `VALUE_INVALID` for a key that is empty, too long or not a string. */
export function checkValueKey(key: string): void {
  if (typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH) return
  throw new RuntimeError('The key of a value is empty, too long or no text.', {
    code: 'VALUE_INVALID',
    hint: `Keys have 1 to ${MAX_KEY_LENGTH} characters.`,
  })
}

/** Returns a copy of a value that can be stored; throws `VALUE_INVALID` for other values. */
export function checkedValue(key: string, value: unknown): JsonValue {
  return jsonCopy(value, {
    subject: `The value "${key}"`,
    code: 'VALUE_INVALID',
    maxBytes: MAX_VALUE_BYTES,
  })
}

/** What all parts of a thread's state object share: the state that they read, and the buffers to which they write. */
export interface FacadeBuffer {
  readonly kernel: KernelState
  readonly environment: KernelEnvironment
  /** The turn and the call in which the user's code runs, for events that name them. */
  readonly turnId?: string
  readonly toolCallId?: string
  readonly events: RuntimeEvent[]
  readonly blobs: Map<string, Blob>
  /** Returns the current time in the form in which events have it. */
  at(): string
}

/**
 * Returns the pending value of a key, else the committed one. A pending null means that the value is removed.
 */
function overlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
  key: Key,
): Value | undefined {
  const own = pending.get(key)
  return own === undefined ? kept.get(key) : (own ?? undefined)
}

/** Returns all committed values, overridden by the pending ones. */
export function allOverlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
): Map<Key, Value> {
  const all = new Map(kept)
  for (const [key, value] of pending) {
    if (value === null) all.delete(key)
    else all.set(key, value)
  }
  return all
}

/**
 * Copies a value through JSON, so that later changes to the original do not affect the copy. Throws for
 * values that JSON would silently change, and for values that are too large.
 */
export function jsonCopy(
  value: unknown,
  limits: {
    /** What errors call the value, e.g. `The value "cart"`. */
    readonly subject: string
    readonly code: RuntimeErrorCode
    readonly maxBytes: number
  },
): JsonValue {
  const { subject, code, maxBytes } = limits
  let text: string
  try {
    canonicalJson(value)
    text = JSON.stringify(value)
  } catch (cause) {
    throw new RuntimeError(`${subject} is not JSON.`, { code, cause })
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new RuntimeError(`${subject} has ${bytes} bytes.`, {
      code,
      hint: `At most ${maxBytes} are kept; write large things to a file.`,
    })
  }
  return JSON.parse(text) as JsonValue // `text` comes from JSON.stringify above
}

/** The part of a thread's state that concerns files. */
type FileMembers = Pick<
  ThreadState,
  | 'writeFile'
  | 'readFile'
  | 'readTextFile'
  | 'statFile'
  | 'listFiles'
  | 'removeFile'
  | 'moveFile'
  | 'findFiles'
  | 'grepFiles'
>

/** The file methods of a thread's state, and two methods that are internal. */
export interface FacadeFiles extends FileMembers {
  /** Returns the normalised paths; throws `FILE_NOT_FOUND` for a path without a file. */
  existing(paths: readonly string[] | undefined): readonly string[]
  clear(): void
}

/**
 * Creates the methods of a thread's state for files (`writeFile`, `readFile` …). Reads include changes
 * that are not committed yet.
 */
export function facadeFiles(buffer: FacadeBuffer): FacadeFiles {
  const { kernel, environment, events, blobs } = buffer
  const pending = new Map<string, FileStat | null>()

  function find(path: string): FileStat {
    const normal = normalisePath(path)
    const stat = overlaid(pending, kernel.files, normal)
    if (stat) return stat
    throw new RuntimeError(`There is no file ${normal} in thread ${kernel.threadId}.`, {
      code: 'FILE_NOT_FOUND',
      hint: 'listFiles() names the files there are.',
    })
  }

  function put(file: Omit<FileStat, 'writtenAt'>): FileStat {
    const at = buffer.at()
    const { turnId, toolCallId } = buffer
    events.push({ type: 'file_written', at, ...file, turnId, toolCallId })
    const stat = { ...file, writtenAt: at }
    pending.set(file.path, stat)
    return stat
  }

  function drop(path: string): void {
    events.push({ type: 'file_removed', at: buffer.at(), path, turnId: buffer.turnId })
    pending.set(path, null)
  }

  async function read({ path, hash }: FileStat): Promise<Uint8Array> {
    const bytes = blobs.get(hash)?.bytes ?? (await environment.store.blob(hash))
    if (bytes) return Uint8Array.from(bytes)
    throw new RuntimeError(`The content of ${path} in thread ${kernel.threadId} is gone.`, {
      code: 'FILE_NOT_FOUND',
    })
  }

  function list(prefix = '/'): FileStat[] {
    const from = prefix.normalize('NFC')
    return [...allOverlaid(pending, kernel.files).values()]
      .filter(({ path }) => path.startsWith(from))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  return {
    // All methods that return promises are `async`, so that an error rejects the promise and is never
    // thrown directly.
    async writeFile(path, data, { mediaType } = {}) {
      const normal = normalisePath(path)
      // The bytes are copied, because the caller may change its own array later.
      const bytes =
        typeof data === 'string' ? new TextEncoder().encode(data) : Uint8Array.from(data)
      const { maxFileBytes } = environment.limits
      if (bytes.length > maxFileBytes)
        throw new RuntimeError(`The file ${normal} has ${bytes.length} bytes.`, {
          code: 'FILE_TOO_LARGE',
          hint: `At most ${maxFileBytes} are allowed; the limit is maxFileBytes of the runtime.`,
        })
      const hash = sha256Hex(bytes)
      blobs.set(hash, { hash, bytes })
      const type = mediaType ?? fileMediaType(normal, bytes)
      return put({ path: normal, mediaType: type, sizeBytes: bytes.length, hash })
    },
    readFile: async (path) => read(find(path)),
    readTextFile: async (path) => new TextDecoder().decode(await read(find(path))),
    statFile: (path) => overlaid(pending, kernel.files, normalisePath(path)),
    listFiles: list,
    removeFile: (path) => drop(find(path).path),
    moveFile(from, to) {
      const { writtenAt: _then, ...file } = find(from)
      const path = normalisePath(to)
      if (path === file.path) return
      put({ ...file, path })
      drop(file.path)
    },
    findFiles(pattern) {
      const isMatch = createGlob(pattern)
      return list().filter(({ path }) => isMatch(path))
    },
    async grepFiles(text, prefix) {
      const found = []
      for (const stat of list(prefix)) {
        const bytes = await read(stat)
        if (isTextFile(bytes))
          found.push(...linesWith(text, stat.path, new TextDecoder().decode(bytes)))
      }
      return found
    },
    existing: (paths = []) => paths.map((path) => find(path).path),
    clear: () => pending.clear(),
  }
}

function linesWith(
  text: string,
  path: string,
  content: string,
): { path: string; line: number; text: string }[] {
  if (!content.includes(text)) return []
  return content
    .split(/\r?\n/)
    .map((line, index) => ({ path, line: index + 1, text: line }))
    .filter((line) => line.text.includes(text))
}
