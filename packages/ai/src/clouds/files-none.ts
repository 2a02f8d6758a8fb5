/** Replaces `files-node.ts` on platforms without files: there are none. */
export async function readCredentialFile(_path: string): Promise<string | undefined> {
  return undefined
}
