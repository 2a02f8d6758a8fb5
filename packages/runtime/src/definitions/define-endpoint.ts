import type { EndpointDefinition } from './types.ts'

/** What answers a route. */
export type EndpointHandler = EndpointDefinition['execute']

/**
 * Defines a route of every thread. Beneath `endpoints/` a file's name gives path and method, so that
 * the handler alone is enough there.
 */
export function defineEndpoint(handler: EndpointHandler): EndpointHandler
export function defineEndpoint(endpoint: Omit<EndpointDefinition, 'kind'>): EndpointDefinition
export function defineEndpoint(
  endpoint: EndpointHandler | Omit<EndpointDefinition, 'kind'>,
): EndpointHandler | EndpointDefinition {
  if (typeof endpoint === 'function') return endpoint
  return Object.freeze({ ...endpoint, kind: 'endpoint' as const })
}
