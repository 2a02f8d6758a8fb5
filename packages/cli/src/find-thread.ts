import type { ThreadHead } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { CommandError } from './command-error.ts'

const UUID_LENGTH = 36

/** The thread with this id, or the only one whose id begins or ends like this. */
export async function findThread({ threads }: Client, text: string): Promise<ThreadHead> {
  if (text.length >= UUID_LENGTH) return threads.get(text)
  const all = await threads.list({ limit: 1000 })
  const exact = all.find(({ id }) => id === text)
  return (
    exact ??
    theOnly(
      all.filter(({ id }) => isShortFor(text, id)),
      text,
    )
  )
}

/** Ids begin with the time, so their ends are shorter to tell apart. */
export function isShortFor(text: string, id: string): boolean {
  return text.length >= 2 && (id.startsWith(text) || id.endsWith(text))
}

function theOnly(found: readonly ThreadHead[], text: string): ThreadHead {
  const [only, another] = found
  if (!only)
    throw new CommandError(`There is no thread ${text}.`, {
      code: 'THREAD_NOT_FOUND',
      hint: '`skein thread list` lists those there are.',
    })
  if (another)
    throw new CommandError(`${found.length} threads begin or end with ${text}.`, {
      code: 'THREAD_AMBIGUOUS',
      hint: `Write more of the id: ${found
        .slice(0, 5)
        .map(({ id }) => id)
        .join(', ')}.`,
    })
  return only
}
