import type { ApiContext } from './api-context.ts'
import { toRuntimeError } from './edit-thread.ts'
import { checkLabel } from './labels.ts'
import type { UserValues } from '../contract/user-values.ts'
import { checkedValue } from '../thread/values.ts'
import { checkUserKey } from '../thread/user-values.ts'

/** Creates the functions for the JSON values that are kept per user, for all threads. */
export function userValuesApi(context: ApiContext): UserValues {
  const { store } = context
  const get: UserValues['get'] = async (of, key) => {
    checkUserKey(key)
    return (await store.userValues(of, key)).find((one) => one.key === key)
  }
  return {
    list: (of, prefix) => store.userValues(of, prefix),
    get,
    async set(of, key, value, { expectVersion } = {}) {
      const { tenant, user } = of
      checkUserKey(key)
      checkLabel(user, 'The name of the user')
      const copy = value === null ? null : checkedValue(key, value)
      const change = { tenant, user, key, value: copy, at: context.at(), expectVersion }
      try {
        await context.commit({ point: 'set_user_value', threads: [], userValues: [change] })
      } catch (error) {
        throw toRuntimeError(error)
      }
      return get(of, key)
    },
    erase: (of) => store.eraseUserValues(of),
  }
}
