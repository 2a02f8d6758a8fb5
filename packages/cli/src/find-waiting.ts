import type { WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { CommandError } from './command-error.ts'
import { isShortFor } from './find-thread.ts'

/** The one call that is meant; parts of ids will do where they leave no doubt. */
export async function findWaiting(
  { inbox }: Client,
  thread: string,
  interrupt: string | undefined,
): Promise<WaitingItem> {
  const waiting = (await inbox.list({ limit: 1000 })).filter(({ kind }) => kind === 'approval')
  const found = waiting.filter(
    ({ threadId, interruptId }) =>
      isMeant(thread, threadId) && (interrupt === undefined || isMeant(interrupt, interruptId)),
  )
  const [only, another] = found
  if (only && !another) return only
  const meant = [thread, interrupt].filter(Boolean).join(' ')
  if (!only)
    throw new CommandError(`Nothing waits for approval by the name ${meant}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint:
        waiting.length === 0
          ? 'The inbox is empty; somebody may have decided already.'
          : '`skein inbox` lists what waits.',
    })
  throw new CommandError(`${found.length} calls that wait match ${meant}.`, {
    code: 'INTERRUPT_AMBIGUOUS',
    hint: `Name the one you mean: ${found.map(({ threadId, interruptId }) => `${threadId} ${interruptId}`).join(', ')}.`,
  })
}

function isMeant(text: string, id: string): boolean {
  return id === text || isShortFor(text, id)
}
