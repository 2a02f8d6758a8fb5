import { load, type ApiContext } from './api-context.ts'
import { editThread } from './edit-thread.ts'
import { requestedVariables } from './waiting-item.ts'
import { RuntimeError } from '../contract/error.ts'
import type { VariablesProvided } from '../contract/event.ts'
import type { ThreadVariables } from '../contract/thread-variables.ts'
import { type KernelState, type PendingVariables } from '../state/kernel-state.ts'
import { envSet } from '../thread/env.ts'
import { waitingCount } from '../state/questions.ts'

/**
 * Creates the functions that read a request for missing variables and provide their values; the child that
 * needs them is created afterwards.
 */
export function variablesApi(context: ApiContext): ThreadVariables {
  return {
    async get(threadId, requestId) {
      const { state } = await load(context, threadId)
      const { requested, provided } = pendingRequest(state, requestId)
      const { required, missing, expiresAt } = requested
      const status = provided ? 'provided' : isExpired(context, expiresAt) ? 'expired' : 'open'
      return { requestId, required, missing, expiresAt, status }
    },
    async provide(threadId, requestId, values, { by } = {}) {
      const target = { threadId, point: 'provide_variables' }
      await editThread(context, target, ({ state }) => {
        const pending = pendingRequest(state, requestId)
        checkProvided(context, pending, values)
        const event: VariablesProvided = {
          type: 'variables_provided',
          at: context.at(),
          requestId,
          values: sealed(context, state, pending, values),
          by,
        }
        const wake = { by: context.clock.now() }
        const head = { waiting: waitingCount(state, context.clock.now()) - 1 }
        return { result: undefined, change: { append: [event], head, wake } }
      })
      // The child is created by the process that works on the thread; this loop waits until that is done or
      // failed.
      for await (const _ of context.live.watch([threadId])) {
        const { state } = await load(context, threadId)
        const { reference, error } = pendingRequest(state, requestId)
        if (reference !== undefined) return { reference }
        if (error !== undefined)
          throw new RuntimeError(`The child of request ${requestId} was not created: ${error}`, {
            code: 'INPUT_INVALID',
          })
        if (state.terminated) break
      }
      throw new RuntimeError(`Thread ${threadId} ended before it created the child.`, {
        code: 'THREAD_TERMINATED',
      })
    },
  }
}

function pendingRequest({ variables, threadId }: KernelState, requestId: string): PendingVariables {
  const pending = variables.get(requestId)
  if (pending) return pending
  throw new RuntimeError(`Thread ${threadId} has no request ${requestId} for variables.`, {
    code: 'REQUEST_NOT_FOUND',
    hint: 'The request is named in the error of the call that needs the variables.',
  })
}

function isExpired({ clock }: ApiContext, expiresAt: string): boolean {
  return Date.parse(expiresAt) <= clock.now()
}

type Values = Readonly<Record<string, string>>

/** Throws unless the request is unanswered, not expired, and all required values are provided. */
function checkProvided(context: ApiContext, pending: PendingVariables, values: Values): void {
  const { requestId, required, missing, expiresAt } = pending.requested
  if (pending.provided)
    throw new RuntimeError(`The variables of request ${requestId} were provided before.`, {
      code: 'ALREADY_ANSWERED',
      hint: 'A request is answered once; the child was created from the first answer.',
    })
  if (isExpired(context, expiresAt))
    throw new RuntimeError(`The request ${requestId} expired at ${expiresAt}.`, {
      code: 'REQUEST_EXPIRED',
      hint: 'Let the agent call the tool again; that makes a new request.',
    })
  const absent = missing.filter((name) => !Object.hasOwn(values, name))
  if (absent.length > 0)
    throw new RuntimeError(`The request ${requestId} also needs ${absent.join(', ')}.`, {
      code: 'VARIABLES_MISSING',
      hint: 'Give all of them in one request; nothing was stored.',
    })
  const unknown = Object.keys(values).filter((name) => !required.includes(name))
  if (unknown.length > 0)
    throw new RuntimeError(`The request ${requestId} does not ask for ${unknown.join(', ')}.`, {
      code: 'ENV_INVALID',
      hint: `It asks for ${required.join(', ')}.`,
    })
}

/**
 * Encrypts the values for this thread. When the child is created, they are decrypted, and encrypted again for
 * the child.
 */
function sealed(
  context: ApiContext,
  state: KernelState,
  { requested }: PendingVariables,
  values: Values,
): VariablesProvided['values'] {
  const { vault } = context
  const { threadId } = state
  const declarations = requestedVariables(context, state, requested)
  // A variable that is declared as a secret, or not declared at all, is treated as a secret.
  const texts = new Set(declarations.filter(({ type }) => type !== 'secret').map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(values).map(([name, given]) => {
      const valueType = texts.has(name) ? ('text' as const) : ('secret' as const)
      const at = requested.at
      const { value } = envSet({ name, value: given, valueType, threadId, vault, at })
      return [name, { valueType, value: value ?? '' }]
    }),
  )
}
