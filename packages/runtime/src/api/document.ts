import {
  foldThread,
  isThreadEvent,
  type Thread,
  type FoldedThread,
  type UnknownThreadEvent,
} from '@skein/threads'
import { threadFromEvents } from '@skein/threads/events'
import type { RuntimeEvent } from '../event.ts'
import { headOf, type ApiContext } from './api-context.ts'

/** The thread as a ThreadProtocol document. The runtime's own events are its machinery, not its history. */
export async function documentOf(context: ApiContext, threadId: string): Promise<Thread> {
  const events = await eventsOf(context, threadId)
  const history = events.flatMap((event) => (isThreadEvent(event) ? [event] : []))
  return threadFromEvents(history, { includeRunning: true }).value
}

/** The fold of the whole log, as whoever subscribes to the thread gets it. */
export async function foldedThread(context: ApiContext, threadId: string): Promise<FoldedThread> {
  const events = await eventsOf(context, threadId)
  return foldThread(events as unknown as Iterable<UnknownThreadEvent>) // known ones too are plain JSON
}

async function eventsOf(context: ApiContext, threadId: string): Promise<readonly RuntimeEvent[]> {
  await headOf(context, threadId)
  return (await context.store.events(threadId)).map(({ event }) => event)
}
