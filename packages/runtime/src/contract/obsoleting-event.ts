import type { RuntimeEvent } from './event.ts'

/** A message was edited or removed, or a message was queued that cuts the running turn. */
export type ObsoletingEvent = Extract<
  RuntimeEvent,
  { type: 'message_updated' | 'message_removed' | 'message_queued' }
>
