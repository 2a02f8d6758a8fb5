import { load, type ApiContext } from './api-context.ts'
import { bufferOf, editWith } from './edit-thread.ts'
import type { ThreadValues } from '../contract/thread-contents.ts'
import { facadeValues } from '../thread/values.ts'

/** Creates the value functions of the API. They make the same checks as the value functions of tools. */
export function valuesApi(context: ApiContext): ThreadValues {
  const open = async (threadId: string) =>
    facadeValues(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listValues(prefix),
    get: async (threadId, key) => (await open(threadId)).getValue(key),
    set: (threadId, key, value) =>
      editWith(context, { threadId, point: 'set_value' }, (buffer) => {
        // Removing a value that does not exist writes no event.
        if (value === null && !buffer.kernel.values.has(key)) return
        facadeValues(buffer).setValue(key, value)
      }),
  }
}
