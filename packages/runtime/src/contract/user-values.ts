import type { JsonValue } from '@skein/base'
import type { UserOf, UserValue } from '../store/user-value.ts'

/**
 * The values of users. They belong to a user of a tenant and to no thread, so erasing a thread keeps them and
 * erasing the user removes them.
 */
export interface UserValues {
  /** Returns the values with their versions, by key; without a prefix all of them, e.g. to export them. */
  list(of: UserOf, prefix?: string): Promise<readonly UserValue[]>
  get(of: UserOf, key: string): Promise<UserValue | undefined>
  /**
   * Sets a value; null removes it. With `expectVersion` only if the value has this version, or does not exist
   * (null); otherwise the promise rejects with `STATE_CONFLICT`. Resolves to the value as it is stored.
   */
  set(
    of: UserOf,
    key: string,
    value: JsonValue | null,
    options?: { readonly expectVersion?: number | null },
  ): Promise<UserValue | undefined>
  /** Removes all values of a user and overwrites their bytes. Resolves to how many values there were. */
  erase(of: UserOf): Promise<number>
}
