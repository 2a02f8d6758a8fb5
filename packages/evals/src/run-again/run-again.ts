import { SkeinError } from '@skein/base'
import type { Runtime } from '@skein/runtime'
import { factsOf } from '../recorded/facts-of.ts'
import { type RecordedSource, readRecording } from '../recorded/read-recording.ts'
import type { RunFacts } from '../recorded/run-facts.ts'
import { recordedEffects } from './recorded-effects.ts'
import type { ListedEffect } from './listed-effect.ts'

/** How a thread is run again. */
export interface RunAgainOptions {
  /** A runtime that has started, with the store of the thread. */
  readonly runtime: Runtime & { readonly store: RecordedSource }
  readonly threadId: string
  /** The message of a person with which the run begins anew. Default: the first. */
  readonly message?: string
  /** Another text for that message. */
  readonly text?: string
  /**
   * Names the person who has seen the list and accepts the high-risk writes in it. Each of them is still approved by
   * itself when it is made; an old approval is never used again.
   */
  readonly acceptedBy?: string
  readonly signal?: AbortSignal
}

/** What running a thread again would do, and has done. */
export interface RunAgainReport {
  readonly fork: string
  readonly effects: readonly ListedEffect[]
  readonly facts: RunFacts
}

/** The effects that running a thread again would have, if it did the same. Nothing runs. */
export async function listEffects({
  runtime,
  threadId,
  message,
}: RunAgainOptions): Promise<readonly ListedEffect[]> {
  const recorded = await readRecording(runtime.store, threadId)
  const begin = recorded.events.find(({ event }) => isMessage(event, message))
  return recordedEffects(recorded, runtime.registry, begin?.seq)
}

/**
 * Runs a thread again as a fork, with everything live: models, tools, children. Rejects with `EFFECTS_NOT_ACCEPTED` if the
 * recording has high-risk writes and no one has accepted them.
 */
export async function runAgain(options: RunAgainOptions): Promise<RunAgainReport> {
  const { runtime, threadId, message, text, acceptedBy, signal } = options
  const effects = await listEffects(options)
  const risky = effects.filter(({ needsApproval }) => needsApproval)
  if (risky.length > 0 && acceptedBy === undefined)
    throw new SkeinError(
      `Running thread ${threadId} again would make ${risky.length} high-risk writes: ${[...new Set(risky.map(({ toolName }) => toolName))].join(', ')}.`,
      {
        code: 'EFFECTS_NOT_ACCEPTED',
        hint: 'Look at listEffects, then pass acceptedBy; or use replay, which runs no tool.',
      },
    )
  const { threads } = runtime
  const recorded = await readRecording(runtime.store, threadId)
  const begin = recorded.events.find(({ event }) => isMessage(event, message))?.event
  if (begin?.type !== 'message_added')
    throw new SkeinError(`Thread ${threadId} has no message to begin with.`, {
      code: 'INPUT_INVALID',
    })
  const said = text ?? textOfContent(begin.message.content)
  const fork = await threads.fork(threadId, { before: begin.message.id, message: said })
  await threads.settled(fork.id, { signal })
  const facts = factsOf(await readRecording(runtime.store, fork.id))
  return { fork: fork.id, effects, facts }
}

function isMessage(
  event: { readonly type: string; readonly queueId?: string; readonly message?: unknown },
  id: string | undefined,
): boolean {
  if (event.type !== 'message_added' || event.queueId === undefined) return false
  return id === undefined || (event.message as { readonly id: string }).id === id
}

function textOfContent(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((block: { readonly text?: string }) => block.text ?? '').join('')
}
