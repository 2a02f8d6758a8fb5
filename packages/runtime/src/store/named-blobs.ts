import type { Commit } from './store.ts'

/**
 * Hashes that the JSON of an event names: each whole string that is one, with or without `sha256:`.
 * Taking one too many keeps a blob for longer; missing one would lose a file.
 */
export function namedBlobs(json: string): readonly string[] {
  return Array.from(json.matchAll(/"(?:sha256:)?([0-9a-f]{64})"/g), (match) => match[1] ?? '')
}

/** A thread and a blob that it needs. */
export interface BlobName {
  readonly hash: string
  readonly threadId: string
}

/**
 * Which threads need which blobs after a commit. A blob that no event names, such as evidence, belongs
 * to the first thread of the commit that brought it.
 */
export function blobNames(
  commit: Commit,
  events: readonly { readonly threadId: string; readonly json: string }[],
): readonly BlobName[] {
  const names = events.flatMap(({ threadId, json }) =>
    namedBlobs(json).map((hash) => ({ hash, threadId })),
  )
  const named = new Set(names.map(({ hash }) => hash))
  const first = commit.threads[0]
  if (!first) return names
  const others = (commit.blobs ?? []).filter(({ hash }) => !named.has(hash))
  return [...names, ...others.map(({ hash }) => ({ hash, threadId: first.id }))]
}
