import type { Commit } from './commit.ts'

/**
 * Matches a JSON string of hexadecimal digits, with or without `sha256:`; with 64 digits it may be the
 * hash of a blob. A false match only keeps a blob for longer, while a missed match would lose a file.
 */
const HEX_IN_JSON = /"(?:sha256:)?[0-9a-f]+"/g

const HASH_LENGTHS: ReadonlySet<number> = new Set(
  ['""', '"sha256:"'].map((text) => text.length + 64),
)

/** A thread and a blob that it needs. */
export interface BlobName {
  readonly hash: string
  readonly threadId: string
}

/**
 * Lists which threads need which blobs after a commit. A blob that no event names, e.g. evidence,
 * belongs to the first thread of the commit.
 */
export function blobNames(
  commit: Commit,
  events: readonly { readonly threadId: string; readonly json: string }[],
): readonly BlobName[] {
  const names: BlobName[] = []
  for (const { threadId, json } of events)
    // The hash is before the last quote.
    for (const digits of json.match(HEX_IN_JSON) ?? [])
      if (HASH_LENGTHS.has(digits.length)) names.push({ hash: digits.slice(-65, -1), threadId })
  const hashes = new Set(names.map(({ hash }) => hash))
  const first = commit.threads[0]
  if (!first) return names
  const others = (commit.blobs ?? []).filter(({ hash }) => !hashes.has(hash))
  return [...names, ...others.map(({ hash }) => ({ hash, threadId: first.id }))]
}
