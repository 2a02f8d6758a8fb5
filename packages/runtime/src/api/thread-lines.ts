import type { RuntimeEvent } from '../event.ts'

/** The first line of an exported thread. */
export interface ThreadLinesHeader {
  readonly skein: 'thread'
  /** Version of the events. */
  readonly version: number
  readonly threadId: string
  readonly agent: string
  readonly title: string | null
  readonly tags: readonly string[]
  readonly exportedAt: string
  readonly events: number
  readonly blobs: number
}

/** A content that the events name. */
export interface BlobLine {
  readonly blob: string
  readonly base64: string
}

/** An event as it may leave the installation: without secrets, sealed or not, and without tokens. */
export function withoutSecrets(event: RuntimeEvent): RuntimeEvent {
  switch (event.type) {
    case 'env_set':
      return event.valueType === 'secret' ? { ...event, value: null } : event
    case 'variables_provided': {
      const texts = Object.entries(event.values).filter(([, { valueType }]) => valueType === 'text')
      return { ...event, values: Object.fromEntries(texts) }
    }
    case 'custom_event': // approvals of a quorum hold sealed tokens
      return event.isTransient ? { ...event, data: null } : event
    case 'interrupt_answered': {
      if (event.answer.type !== 'approve') return event
      const { token: _, ...answer } = event.answer
      return { ...event, answer }
    }
    default:
      return event
  }
}

/** False for what ends a thread, and for bookkeeping of things that are over: a copy begins a life of its own. */
export function isCopied(event: RuntimeEvent): boolean {
  const { type } = event
  if (type === 'custom_event') return event.isTransient !== true
  return type !== 'thread_terminated' && type !== 'thread_erased'
}

/** Hashes of contents that events name. */
export function blobsOf(events: readonly RuntimeEvent[]): readonly string[] {
  const hashes = new Set<string>()
  for (const event of events) {
    if (event.type === 'file_written' && event.hash !== undefined) hashes.add(event.hash)
    if (event.type === 'model_requested') hashes.add(event.frame)
  }
  return [...hashes]
}
