import { HttpError } from '../operations/http-error.ts'
import { jsonResponse, type Route } from '../operations/operation.ts'
import { answer } from '../operations/schemas.ts'

const status = answer({ status: { type: 'string' } })

export const serverRoutes: readonly Route[] = [
  {
    id: 'getHealth',
    method: 'GET',
    path: '/healthz',
    tag: 'server',
    summary: 'Whether the process answers.',
    scope: 'public',
    addresses: 'nothing',
    answers: [{ status: 200, description: 'It does.', schema: status }],
    handle: () => jsonResponse({ status: 'ok' }),
  },
  {
    id: 'getReadiness',
    method: 'GET',
    path: '/readyz',
    tag: 'server',
    summary: 'Whether requests are taken: the store answers and nothing is going down.',
    scope: 'public',
    addresses: 'nothing',
    answers: [{ status: 200, description: 'They are.', schema: status }],
    errors: ['NOT_READY'],
    async handle({ runtime, services }) {
      if (services.isClosing()) throw notReady()
      await runtime.threads.list({ limit: 1 }).catch((cause: unknown) => {
        throw notReady(cause)
      })
      return jsonResponse({ status: 'ready' })
    },
  },
  {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    tag: 'server',
    summary: 'Counters for Prometheus, over all tenants.',
    scope: 'metrics:read',
    addresses: 'nothing',
    answers: [
      {
        status: 200,
        description: 'Metrics as text.',
        mediaType: 'text/plain',
        schema: { type: 'string' },
      },
    ],
    handle: async ({ services }) =>
      new Response(await services.metrics.toText(), {
        headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
      }),
  },
  {
    id: 'getOpenApi',
    method: 'GET',
    path: '/openapi.json',
    tag: 'server',
    summary: 'This document.',
    scope: 'public',
    addresses: 'nothing',
    answers: [
      {
        status: 200,
        description: 'OpenAPI 3.1.',
        schema: { type: 'object', required: ['openapi', 'paths'] },
      },
    ],
    handle: ({ services }) => jsonResponse(services.openapi()),
  },
]

function notReady(cause?: unknown): HttpError {
  return new HttpError('The server does not take requests now.', {
    code: 'NOT_READY',
    cause,
    headers: { 'retry-after': '5' },
  })
}
