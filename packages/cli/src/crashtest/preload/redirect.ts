import { fitsRequest } from './request-pattern.ts'
import {
  type Crashtest,
  type Preloaded,
  STEP_HEADER,
  TARGET_HEADER,
  TOKEN_HEADER,
} from './protocol.ts'

/**
 * Counts a request as a step, unless it is ignored. Returns the headers with which it goes to the recorder. May not
 * return, because the process may die before the request leaves.
 */
export function redirected(
  { token, ignored }: Preloaded,
  steps: Crashtest,
  request: { readonly method: string; readonly url: string },
): Readonly<Record<string, string>> {
  const target = { [TARGET_HEADER]: request.url, [TOKEN_HEADER]: token }
  if (ignored.some((pattern) => fitsRequest(pattern, request))) return target
  const number = steps.step('request', `${request.method.toUpperCase()} ${request.url}`)
  return { ...target, [STEP_HEADER]: String(number) }
}
