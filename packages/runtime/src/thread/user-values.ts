import { deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { UserState } from '../contract/thread-state.ts'
import type { Store } from '../store/store.ts'
import { checkValueKey, checkedValue } from './values.ts'
import { type ValueUse, type ValueUpdate } from './value-reads.ts'
import { type FacadeBuffer, allOverlaid } from './facade-buffer.ts'
import type { ThreadHead } from '../store/head.ts'
import type { UserOf, UserValueChange } from '../store/user-value.ts'
import { isStorable } from '../store/storable-text.ts'

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
  let versions = new Map<string, number | null>()
  let lists: { readonly prefix: string; readonly versions: ReadonlyMap<string, number> }[] = []

  async function ofUser(): Promise<UserOf> {
    of = await (owner ??= userOf(store, head))
    return of
  }

  async function read(key: string) {
    const values = await store.userValues(await ofUser(), key)
    return values.find((one) => one.key === key)
  }

  function versionSeen(key: string): number | null | undefined {
    const own = versions.get(key)
    if (own !== undefined) return own
    const list = lists.find(({ prefix }) => key.startsWith(prefix))
    return list && (list.versions.get(key) ?? null)
  }

  const user: UserState = {
    async get(key) {
      checkUserKey(key)
      await ofUser()
      const own = pending.get(key)
      // A value that the code has set itself, without `update`, does not depend on other writers.
      if (own && own.changes.length === 0) return deepFreeze(own.value ?? undefined)
      const stored = own ? undefined : await read(key)
      const version = own ? (own.expectVersion ?? null) : (stored?.version ?? null)
      if (!versions.has(key)) versions.set(key, version)
      return deepFreeze(own ? (own.value ?? undefined) : stored?.value)
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
      const current = pending.has(key) ? undefined : await read(key)
      const own = pending.get(key) // read after the wait, because another call may have set it
      const base = own ? (own.value ?? undefined) : current?.value
      const next = change(deepFreeze(base))
      const value = next === null ? null : checkedValue(key, next)
      if (own && own.changes.length === 0) pending.set(key, { ...own, value })
      else {
        const expectVersion = own ? own.expectVersion : (current?.version ?? null)
        pending.set(key, { key, value, expectVersion, changes: [...(own?.changes ?? []), change] })
      }
    },
    delete: (key) => user.set(key, null),
    async list(prefix = '') {
      const values = await store.userValues(await ofUser(), prefix)
      lists.push({ prefix, versions: new Map(values.map(({ key, version }) => [key, version])) })
      const own = [...pending.values()].filter(({ key }) => key.startsWith(prefix))
      const all = allOverlaid(
        new Map(own.map(({ key, value }) => [key, value])),
        new Map(values.map(({ key, value }) => [key, value])),
      )
      const inOrder = [...all].sort(([a], [b]) => (a < b ? -1 : 1))
      return deepFreeze(Object.fromEntries(inOrder))
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
      versions = new Map()
      lists = []
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
    const current = now.get(key)
    const version = current?.version ?? null
    if (expectVersion === undefined || expectVersion === version) return one
    if (updates.length === 0)
      throw new RuntimeError(
        `The value "${key}" of the user was changed by another writer after it was read.`,
        {
          code: 'STATE_CONFLICT',
          hint: 'Nothing was stored. Read the value again, or change it with `user.update`.',
        },
      )
    let value: JsonValue | null = current?.value ?? null
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
