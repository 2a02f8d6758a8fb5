import { HttpError } from '../operations/http-error.ts'
import { json, operation, raw, type OperationRoute } from '../operations/operation.ts'
import {
  answer,
  arrayOf,
  choice,
  integer,
  number,
  object,
  outline,
  string,
} from '@skein/base/shape'

const status = answer({ status: string })

const amounts = answer({ costUsd: number, tokens: integer, inferences: integer })

const limitsReport = answer({
  spending: arrayOf(
    answer({
      per: choice('tenant', 'user'),
      tenant: string,
      'user?': string,
      from: string,
      until: string,
      spent: amounts,
      reserved: amounts,
      max: answer({ 'costUsd?': number, 'tokens?': integer, 'inferences?': integer }),
      refused: integer,
      delayed: integer,
    }),
  ),
  retention: arrayOf(
    answer({ tenant: string, erased: integer, removed: integer, kept: integer, failed: integer }),
  ),
})

/**
 * The operations about the server itself. Monitors add their own parameters to these addresses, so the query
 * is not checked.
 */
export const serverOperations: readonly OperationRoute[] = [
  operation('getHealth', {
    tag: 'server',
    summary: 'Whether the process answers.',
    scope: 'public',
    query: 'any',
    answers: [json('The process answers.', status)],
    run: () => ({ status: 'ok' }),
  }),
  operation('getReadiness', {
    tag: 'server',
    summary: 'Whether the server accepts requests: the store answers and nothing is shutting down.',
    scope: 'public',
    query: 'any',
    answers: [json('The server accepts requests.', status)],
    errors: ['NOT_READY'],
    async run({ runtime, services }) {
      if (services.isClosing() || runtime.stopping?.aborted)
        throw notReady('The server is shutting down.')
      await runtime.threads.list({ limit: 1 }).catch((cause: unknown) => {
        throw notReady('The store does not answer.', cause)
      })
      return { status: 'ready' }
    },
  }),
  operation('getMetrics', {
    tag: 'server',
    summary: 'Counters for Prometheus, over all tenants.',
    scope: 'metrics:read',
    query: 'any',
    answers: [raw('Metrics as text.', 'text/plain', string)],
    run: async ({ services }) =>
      new Response(await services.metrics.toText(), {
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
      }),
  }),
  operation('getLimits', {
    tag: 'server',
    summary: 'What the tenant has spent of its limits, and what was refused and removed.',
    scope: 'admin',
    answers: [json('The report.', limitsReport)],
    run: ({ runtime, principal }) => runtime.limits.report({ tenant: principal.tenant }),
  }),
  operation('getOpenApi', {
    tag: 'server',
    summary: 'The OpenAPI document of this server.',
    scope: 'public',
    query: 'any',
    answers: [json('OpenAPI 3.1.', outline<object>({ openapi: string, paths: object }))],
    run: ({ services }) => services.openapi(),
  }),
]

function notReady(message: string, cause?: unknown): HttpError {
  return new HttpError(message, {
    code: 'NOT_READY',
    hint: 'Try again in a few seconds.',
    cause,
    headers: { 'retry-after': '5' },
  })
}
