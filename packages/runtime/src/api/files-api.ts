import { load, type ApiContext } from './api-context.ts'
import { bufferOf, editWith } from './edit-thread.ts'
import type { ThreadFiles } from '../contract/thread-contents.ts'
import { facadeFiles } from '../thread/facade-files.ts'

/** Creates the file functions of the API. They make the same checks as the file functions of tools. */
export function filesApi(context: ApiContext): ThreadFiles {
  const open = async (threadId: string) =>
    facadeFiles(bufferOf(context, (await load(context, threadId)).state))
  return {
    list: async (threadId, prefix) => (await open(threadId)).listFiles(prefix),
    stat: async (threadId, path) => (await open(threadId)).statFile(path),
    async read(threadId, path) {
      const files = await open(threadId)
      const [normal = path] = files.existing([path])
      const stat = files.statFile(normal)!
      return { stat, bytes: await files.readFile(normal) }
    },
    write: (threadId, path, bytes, { mediaType } = {}) =>
      editWith(context, { threadId, point: 'write_file' }, (buffer) =>
        facadeFiles(buffer).writeFile(path, bytes, { mediaType: mediaType || undefined }),
      ),
    remove: (threadId, path) =>
      editWith(context, { threadId, point: 'remove_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        if (!files.statFile(path)) return false
        files.removeFile(path)
        return true
      }),
    move: (threadId, from, to) =>
      editWith(context, { threadId, point: 'move_file' }, (buffer) => {
        const files = facadeFiles(buffer)
        files.moveFile(from, to)
        return files.statFile(to)!
      }),
  }
}
