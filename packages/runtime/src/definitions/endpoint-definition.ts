import type { ThreadState } from '../contract/thread-state.ts'

/** A route of a thread: `{prefix}/threads/{threadId}/x/{path}`. */
export interface EndpointDefinition {
  readonly kind: 'endpoint'
  /** E.g. `orders/[id]`; `[*]` matches the rest of the path. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Whether `execute` may be called again if a value that it read was changed before its own changes were
   * stored. Set it to false for code with side effects that must not be repeated; such a request is then
   * answered with `STATE_CONFLICT` (409). Default true.
   */
  readonly isRepeatable?: boolean
  readonly execute: (
    request: Request,
    state: ThreadState,
    params: Readonly<Record<string, string>>,
  ) => Response | Promise<Response>
}
