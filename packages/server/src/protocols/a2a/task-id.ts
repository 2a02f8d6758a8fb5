import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { tryParseJson, type JsonValue } from '@skein/base'
import type {} from '@skein/runtime'
import { parseThreadPartId, threadPartId } from '../thread-part-id.ts'

/** The message with which a task began. A thread is a context of A2A; each new message in it is a task. */
export interface TaskStart {
  readonly threadId: string
  readonly queueId: string
  /** Number of the event that queued the message. */
  readonly seq: number
}

/** Encodes the id of a task, which contains all that is needed to find it in the log. */
export function taskId({ threadId, queueId, seq }: TaskStart): string {
  return threadPartId('task', threadId, JSON.stringify([queueId, seq]))
}

/** Decodes the id of a task; undefined when this server did not create it. */
export function parseTaskId(id: unknown): TaskStart | undefined {
  const place = typeof id === 'string' ? parseThreadPartId('task', id) : undefined
  const parts = place && tryParseJson(place.part)
  if (!place || !Array.isArray(parts)) return undefined
  const [queueId, seq] = parts as readonly JsonValue[]
  if (typeof queueId !== 'string' || typeof seq !== 'number') return undefined
  if (!Number.isSafeInteger(seq) || seq < 1) return undefined
  return { threadId: place.threadId, queueId, seq }
}

/** Returns the id of the context: the id that the client chose for the thread, or else the id of the thread. */
export function contextId({ clientId, id }: ThreadIdentity): string {
  return clientId ?? id
}
