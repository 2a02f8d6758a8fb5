import type { ThreadValues } from '../runtime-api.ts'
import { facadeValues } from '../thread/values.ts'
import { load, type ApiContext } from './api-context.ts'
import { bufferOf, editWith } from './facade-edit.ts'

/** The values of threads, by the rules that tools have. */
export function valuesApi(context: ApiContext): ThreadValues {
  const open = async (threadId: string) =>
    facadeValues(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listValues(prefix),
    get: async (threadId, key) => (await open(threadId)).getValue(key),
    set: (threadId, key, value) =>
      editWith(context, { threadId, point: 'set_value' }, (buffer) => {
        // Removing what is not there says nothing.
        if (value === null && !buffer.kernel.values.has(key)) return
        facadeValues(buffer).setValue(key, value)
      }),
  }
}
