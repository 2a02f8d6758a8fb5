import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { CommandError } from '../terminal/command.ts'

const UUID_LENGTH = 36

/** Finds the thread with this id, or the only thread whose id begins or ends with the text. */
export async function findThreadByPrefix({ threads }: Client, text: string): Promise<ThreadInfo> {
  if (text.length >= UUID_LENGTH) return threads.get(text)
  const all = await threads.list({ limit: 1000 })
  const exact = all.find(({ id }) => id === text)
  const found = exact ? [exact] : all.filter(({ id }) => isShortFor(text, id))
  const [only, another] = found
  if (!only)
    throw new CommandError(`There is no thread ${text}.`, {
      code: 'THREAD_NOT_FOUND',
      hint: '`skein thread list` lists all threads.',
    })
  if (!another) return only
  const some = found.slice(0, 5).map(({ id }) => id)
  throw new CommandError(`${found.length} threads begin or end with ${text}.`, {
    code: 'THREAD_AMBIGUOUS',
    hint: `Write more of the id: ${some.join(', ')}.`,
  })
}

/**
 * Whether a text abbreviates an id. Ids begin with their creation time, so recent ids differ only at the end.
 */
function isShortFor(text: string, id: string): boolean {
  return text.length >= 2 && (id.startsWith(text) || id.endsWith(text))
}

/** Finds the only waiting call of a kind that matches the ids, which may be abbreviated. */
export async function findWaiting(
  { inbox }: Client,
  wanted: Exclude<WaitingItem['kind'], 'input'>,
  [thread = '', interrupt]: readonly string[],
): Promise<WaitingItem> {
  const matches = (text: string, id: string): boolean => id === text || isShortFor(text, id)
  const waiting = (await inbox.list({ limit: 1000 })).filter(({ kind }) => kind === wanted)
  const found = waiting.filter(
    ({ threadId, interruptId }) =>
      matches(thread, threadId) && (interrupt === undefined || matches(interrupt, interruptId)),
  )
  const [only, another] = found
  if (only && !another) return only
  const meant = [thread, interrupt].filter(Boolean).join(' ')
  if (!only)
    throw new CommandError(`No call that ${ABOUT[wanted]} matches ${meant}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint:
        waiting.length === 0
          ? 'The inbox has none of them; somebody may have decided already.'
          : '`skein inbox` lists the calls that wait.',
    })
  const ids = found.map(({ threadId, interruptId }) => `${threadId} ${interruptId}`)
  throw new CommandError(`${found.length} waiting calls match ${meant}.`, {
    code: 'INTERRUPT_AMBIGUOUS',
    hint: `Name one of them: ${ids.join(', ')}.`,
  })
}

const ABOUT = { approval: 'waits for approval', in_doubt: 'is in doubt' } as const
