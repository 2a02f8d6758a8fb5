import { jsonResponse, type Route } from './operation.ts'
import { actorOf } from './principal.ts'
import { answer, envName, ref, text } from './schemas.ts'

const path = '/threads/{threadId}/variables/{requestId}'

/** Standard Agents §7.8: a child that lacked variables is created when they are given. */
export const variableRoutes: readonly Route[] = [
  {
    id: 'getVariablesRequest',
    method: 'GET',
    path,
    tag: 'variables',
    summary: 'Which variables a child needs and which are missing. Names only.',
    scope: 'threads:read',
    addresses: 'thread',
    isAlsoAtRoot: true,
    probe: {},
    answers: [{ status: 200, description: 'The names.', schema: ref('VariablesRequest') }],
    errors: ['REQUEST_NOT_FOUND'],
    async handle({ runtime, thread, params }) {
      const found = await runtime.threads.variables.get(thread.id, params['requestId']!)
      const { requestId, required, missing, expiresAt, status } = found
      return jsonResponse({ requestId, required, missing, expiresAt, status })
    },
  },
  {
    id: 'provideVariables',
    method: 'POST',
    path,
    tag: 'variables',
    summary: 'Stores the values and creates the child with its original payload. Once.',
    scope: 'env:write',
    addresses: 'thread',
    isAlsoAtRoot: true,
    probe: { body: {} },
    body: {
      json: {
        type: 'object',
        propertyNames: envName,
        additionalProperties: text(65_536),
        maxProperties: 200,
      },
    },
    answers: [
      {
        status: 201,
        description: 'The id of the child.',
        schema: answer({ reference: { type: 'string' } }),
      },
    ],
    errors: [
      'REQUEST_NOT_FOUND',
      'REQUEST_EXPIRED',
      'ALREADY_ANSWERED',
      'VARIABLES_MISSING',
      'THREAD_TERMINATED',
    ],
    async handle({ runtime, thread, params, body, principal }) {
      const provided = await runtime.threads.variables.provide(
        thread.id,
        params['requestId']!,
        body as Record<string, string>, // checked by the schema
        { by: actorOf(principal) },
      )
      return jsonResponse(provided, { status: 201 })
    },
  },
]
