import type { ThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from './event.ts'

/** The name of an event, stored or only streamed. */
export type EventType = RuntimeEvent['type'] | ThreadEvent['type']

/**
 * The stored events with these names. A switch that handles only some events ends with
 * `event satisfies EventOf<…the others…>`, so that the compiler names the switch when an event is added.
 */
export type EventOf<Type extends RuntimeEvent['type']> = Extract<RuntimeEvent, { type: Type }>
