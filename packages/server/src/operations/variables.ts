import { json, operation, type OperationRoute } from './operation.ts'
import { actorOf } from './principal.ts'
import { ref, textMap } from './schemas.ts'
import { answer, string } from '@skein/base/shape'

/**
 * The operations on requests for variables: a child that lacks variables is created once they are
 * provided (Standard Agents §7.8).
 */
export const variableOperations: readonly OperationRoute[] = [
  operation('getVariablesRequest', {
    tag: 'variables',
    summary: 'Which variables a child needs and which are missing. Names only.',
    scope: 'threads:read',
    isAlsoAtRoot: true,
    answers: [json('The names.', ref('VariablesRequest'))],
    errors: ['REQUEST_NOT_FOUND'],
    run: ({ runtime, thread, params }) =>
      runtime.threads.variables.get(thread.id, params.requestId),
  }),
  operation('provideVariables', {
    tag: 'variables',
    summary: 'Stores the values and creates the child with its original payload. Once.',
    scope: 'env:write',
    isAlsoAtRoot: true,
    probe: { body: {} },
    body: { json: textMap },
    answers: [json('The id of the child.', answer({ reference: string }), 201)],
    errors: [
      'REQUEST_NOT_FOUND',
      'REQUEST_EXPIRED',
      'ALREADY_ANSWERED',
      'VARIABLES_MISSING',
      'THREAD_TERMINATED',
    ],
    run: ({ runtime, thread, params, body, principal }) =>
      runtime.threads.variables.provide(thread.id, params.requestId, body, {
        by: actorOf(principal),
      }),
  }),
]
