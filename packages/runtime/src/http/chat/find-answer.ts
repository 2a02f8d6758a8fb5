import type { StoredEvent } from '../../event.ts'
import type { Runtime } from '../../runtime-api.ts'
import { isUserMessage, isVisible } from './chat-view.ts'

/** Where the last answer of a thread begins. */
export interface AnswerPlace {
  /** Number of the event before it. */
  readonly after: number
  /** Id of its message: its first turn. Absent while nobody has begun to answer. */
  readonly messageId?: string
  /** The last event of the log. */
  readonly seq: number
}

const FIRST_WINDOW = 256

/**
 * Finds the beginning of the answer that is being given, or was given last. Turns that follow one
 * another are one answer; a person who speaks begins the next. Reads the log from its end.
 */
export async function findAnswer(
  runtime: Runtime,
  threadId: string,
  seq: number,
): Promise<AnswerPlace> {
  for (let width = FIRST_WINDOW; ; width *= 4) {
    const after = Math.max(seq - width, 0)
    const events = await eventsAfter(runtime, threadId, after)
    const start = after === 0 ? 0 : events.findLastIndex((_, index) => isOpening(events, index))
    if (start >= 0)
      return foldAnswer(events.slice(start), start === 0 ? after : events[start]!.seq - 1)
  }
}

async function eventsAfter(
  runtime: Runtime,
  threadId: string,
  after: number,
): Promise<readonly StoredEvent[]> {
  const all: StoredEvent[] = []
  for (let last = after; ;) {
    const page = await runtime.threads.events(threadId, { after: last, limit: 1000 })
    all.push(...page)
    if (page.length < 1000) return all
    last = page.at(-1)!.seq
  }
}

/** A session that begins with what a person said: before it, no turn is open. */
function isOpening(events: readonly StoredEvent[], index: number): boolean {
  if (events[index]!.event.type !== 'session_start') return false
  for (let next = index + 1; next < events.length; next++) {
    const { event } = events[next]!
    if (isUserMessage(event)) return true
    if (event.type === 'turn_start') return false
  }
  return false
}

function foldAnswer(events: readonly StoredEvent[], before: number): AnswerPlace {
  let place: { after: number; messageId?: string } = { after: before }
  let isNew = true
  let openTurn: string | undefined
  const queued = new Set<string>()
  for (const { seq, event } of events) {
    if (event.type === 'message_queued' && isVisible(event)) queued.add(event.queueId)
    if (event.type === 'message_unqueued') queued.delete(event.queueId)
    if (event.type === 'message_added' && event.queueId !== undefined) queued.delete(event.queueId)
    if (isUserMessage(event)) isNew = true
    if (event.type === 'turn_end') openTurn = undefined
    if (event.type !== 'turn_start') continue
    openTurn = event.turnId
    if (isNew) place = { after: seq - 1, messageId: event.turnId }
    isNew = false
  }
  const seq = events.at(-1)?.seq ?? before
  // Something was said that nobody has begun to answer.
  const isUnanswered = openTurn === undefined && (isNew || queued.size > 0)
  return isUnanswered ? { after: seq, seq } : { ...place, seq }
}
