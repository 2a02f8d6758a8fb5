import type { RuntimeEvent } from '@skein/runtime'
import { threadTree } from '../recorded/facts-of.ts'
import type { RecordedThread } from '../recorded/recorded-thread.ts'
import type { PlayBackReport } from './play-back-report.ts'
import { Player, type PlayerOptions, type Stuck } from './player.ts'

/** The recorded definitions, and the options of the runtime that recorded the thread. */
export type PlayBackOptions = Pick<PlayerOptions, 'registry' | 'runtime'>

/**
 * Plays a recorded thread back: the loop runs on the recorded answers, ids and times, and has to make the same events.
 * Nothing is sent, and no tool runs. A difference is a bug of the loop, or the definitions are not those of the recording.
 *
 *     const report = await playBack(await readRecording(store, threadId), { registry })
 *     if (!report.isSame) console.log(report.difference)
 */
export async function playBack(
  recorded: RecordedThread,
  options: PlayBackOptions,
): Promise<PlayBackReport> {
  const player = new Player(recorded, options)
  try {
    await player.open()
    const stuck = await player.play()
    const events = [...player.played.tracks.values()].reduce((sum, { place }) => sum + place, 0)
    const left = [...player.played.tracks.values()].find(
      ({ place, events: all }) => place < all.length,
    )
    const place = stuck ?? (left && { track: left, mismatch: undefined, hasUnknownRequest: false })
    const difference = place
      ? differenceOf(place, player.errors)
      : requestDifference(player.otherRequests.values().next().value, recorded)
    return { threadId: recorded.threadId, isSame: !difference, events, difference }
  } finally {
    await player.close()
  }
}

/** A request that was answered as recorded although it is another one. */
function requestDifference(
  other: { readonly threadId: string; readonly seq: number; readonly part: string } | undefined,
  recorded: RecordedThread,
): PlayBackReport['difference'] {
  if (!other) return undefined
  const { threadId, seq, part } = other
  for (const thread of threadTree(recorded)) {
    const event = thread.events[seq - 1]?.event
    if (thread.threadId === threadId && event)
      return {
        threadId,
        seq,
        recorded: event,
        produced: undefined,
        message: `The ${part} of the request differs.`,
      }
  }
  return undefined
}

function differenceOf(
  { track, mismatch, hasUnknownRequest }: Stuck,
  errors: readonly unknown[],
): NonNullable<PlayBackReport['difference']> {
  const recorded = mismatch?.recorded ?? track.events[track.place]?.event
  const produced = mismatch?.produced
  const threadId = mismatch?.threadId ?? track.threadId
  const seq = mismatch?.seq ?? track.place + 1
  return {
    threadId,
    seq,
    recorded,
    produced,
    message:
      hasUnknownRequest && !produced
        ? 'The loop asked a model, and the log has no such request.'
        : messageOf({ recorded, produced, path: mismatch?.path, error: errors.at(-1) }),
  }
}

function messageOf({
  recorded,
  produced,
  path,
  error,
}: {
  readonly recorded: RuntimeEvent | undefined
  readonly produced: RuntimeEvent | undefined
  readonly path: string | undefined
  readonly error: unknown
}): string {
  const cause = error instanceof Error ? ` Last error: ${error.message}` : ''
  if (!produced)
    return `The log has ${recorded?.type ?? 'no more event'} here, and the loop made no event.${cause}`
  if (!recorded) return `The loop made ${produced.type}, and the log has no more events.${cause}`
  if (recorded.type !== produced.type)
    return `The log has ${recorded.type} here, and the loop made ${produced.type}.${cause}`
  return `The event ${recorded.type} differs at ${path}.${cause}`
}
