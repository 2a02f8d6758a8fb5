import type { Clock } from '@skein/base'
import type { HttpLimits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { OpenStreams } from './stream/open-streams.ts'
import type { Timers } from '../dispatch/dispatcher.ts'

/** What handlers share. */
export interface Services {
  readonly clock: Clock
  readonly timers: Timers
  readonly limits: HttpLimits
  readonly streams: OpenStreams
  readonly metrics: Metrics
  readonly prefix: string
  /** Chats show nothing of a governed agent before it is delivered. */
  readonly holdsGoverned: boolean
  readonly openapi: () => object
  /** Tells whoever runs the server of an error nobody else is told. */
  readonly report: (error: unknown) => void
  /** Whether the server goes down. */
  readonly isClosing: () => boolean
}
