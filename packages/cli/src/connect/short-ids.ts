import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/server/client'
import { CommandError } from '../terminal/command.ts'

const UUID_LENGTH = 36

/** Finds the thread with this id, or the only thread whose id begins or ends with the text. */
export async function findThreadByPrefix({ threads }: Client, text: string): Promise<ThreadInfo> {
  if (text.length >= UUID_LENGTH) return threads.get(text)
  // A single letter abbreviates nothing.
  const isPart = text.length >= MIN_SHORT_LENGTH
  const matches = isPart ? await threads.list({ idPart: text, limit: MOST_MATCHES }) : []
  const exact =
    matches.find(({ id }) => id === text) ??
    (!isPart || matches.length === MOST_MATCHES ? await threadOf(threads, text) : undefined)
  const candidates = exact ? [exact] : matches
  const [only, another] = candidates
  if (!only)
    throw new CommandError(`There is no thread ${text}.`, {
      code: 'THREAD_NOT_FOUND',
      hint: '`skein thread list` lists all threads.',
    })
  if (!another) return only
  const some = candidates.slice(0, 5).map(({ id }) => id)
  const count =
    candidates.length < MOST_MATCHES ? candidates.length : `At least ${candidates.length}`
  throw new CommandError(`${count} threads begin or end with ${text}.`, {
    code: 'THREAD_AMBIGUOUS',
    hint: `Write more of the id: ${some.join(', ')}.`,
  })
}

/** The thread with this whole id; undefined if there is none. */
async function threadOf({ get }: Client['threads'], id: string): Promise<ThreadInfo | undefined> {
  if (id === '') return undefined
  return get(id).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code === 'THREAD_NOT_FOUND') return undefined
    throw error
  })
}

/** How many of the last characters of an id lists show: enough to differ among millions of threads. */
const SHORT_LENGTH = 8

/**
 * Abbreviates ids to their ends, which are random: their beginnings are times, and alike. All ids of a list are cut to
 * the same length, at which they differ.
 */
export function shortIdsOf(ids: readonly string[]): readonly string[] {
  const all = [...new Set(ids)]
  let length = SHORT_LENGTH
  while (new Set(all.map((id) => id.slice(-length))).size < all.length) length++
  return ids.map((id) => id.slice(-length))
}

/** The shortest text that abbreviates an id. */
const MIN_SHORT_LENGTH = 2

/**
 * Whether a text abbreviates an id. The end counts too: ids begin with their creation time, so recent ids begin alike.
 */
function isShortFor(text: string, id: string): boolean {
  return text.length >= MIN_SHORT_LENGTH && (id.startsWith(text) || id.endsWith(text))
}

/** Finds the only waiting call of a kind that matches the ids, which may be abbreviated. */
export async function findWaiting(
  { inbox }: Client,
  wanted: Exclude<WaitingItem['kind'], 'input'>,
  [thread = '', interrupt]: readonly string[],
): Promise<WaitingItem> {
  const matches = (text: string, id: string): boolean => id === text || isShortFor(text, id)
  const about = thread.length < MIN_SHORT_LENGTH ? { threadId: thread } : { threadIdPart: thread }
  const query = { ...about, kind: wanted, interruptIdPart: interrupt }
  const candidates = (await inbox.list({ ...query, limit: MOST_MATCHES })).filter(
    ({ threadId, interruptId }) =>
      matches(thread, threadId) && (interrupt === undefined || matches(interrupt, interruptId)),
  )
  const [only, another] = candidates
  if (only && !another) return only
  const wantedIds = [thread, interrupt].filter(Boolean).join(' ')
  if (!only)
    throw new CommandError(`No ${ABOUT[wanted]} matches ${wantedIds}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint:
        (await inbox.list({ kind: wanted, limit: 1 })).length === 0
          ? NONE_WAITS
          : '`skein inbox` lists the calls that wait.',
    })
  const ids = candidates
    .slice(0, 5)
    .map(({ threadId, interruptId }) => `${threadId} ${interruptId}`)
  throw new CommandError(`${candidates.length} waiting calls match ${wantedIds}.`, {
    code: 'INTERRUPT_AMBIGUOUS',
    hint: `Name one of them: ${ids.join(', ')}.`,
  })
}

/** How many calls are read that match abbreviated ids: enough to tell one from several. */
const MOST_MATCHES = 100

const NONE_WAITS =
  'It may have been decided already: `skein inbox` lists the calls that wait, and there are none.'
const ABOUT = {
  approval: 'call that waits for approval',
  in_doubt: 'call that is in doubt',
  variables: 'request for variables',
} as const
