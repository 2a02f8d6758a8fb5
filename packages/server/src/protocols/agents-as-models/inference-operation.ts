import { isUPPError } from '@skein/ai'
import { gateway, type GatewayAnswer } from '@skein/ai/gateway'
import type { OperationId } from '../../operations/addresses.ts'
import {
  operation,
  raw,
  stream,
  type Call,
  type OperationRoute,
  type Probe,
} from '../../operations/operation.ts'
import { accountOf } from '../../operations/principal.ts'
import { answer, object, string } from '@skein/base/shape'
import { agentEvents } from './agent-events.ts'
import { ApprovalRequiredError, toRefusal } from './refusal.ts'
import { COMPATIBLE } from './vendor-fields.ts'
import { threadPartId, threadPartToken } from '../thread-part-id.ts'
import { askThread } from './ask-thread.ts'
import { sweepEphemeral } from './sweep-ephemeral.ts'

const whole = raw('The answer in the format of the vendor.', 'application/json', object)

const events = stream('With `stream: true`, the events of the vendor.')

/**
 * An operation that answers a request for a model with an agent. Clients of vendors add their own parameters
 * (`?beta=true`), so the query is not checked.
 */
export function inferenceOperation(id: OperationId, probe: Probe): OperationRoute {
  return operation(id, {
    tag: COMPATIBLE,
    summary: 'Asks an agent as the API of a vendor asks a model; `model` is the name of the agent.',
    scope: 'threads:write',
    probe,
    query: 'any',
    body: { json: answer({ model: string }), isLarge: true },
    answers: [whole, events],
    errors: ['THREAD_NOT_FOUND', 'APPROVAL_REQUIRED', 'STREAM_LIMIT', 'SPENDING_LIMIT'],
    run: answerVendor,
  })
}

/** The operations that list agents as models, for the clients of all vendors. */
export const modelOperations: readonly OperationRoute[] = [
  modelOperation('listModels', 'Agents as a list of models.'),
  modelOperation('getModel', 'One agent as a model.'),
]

function modelOperation(id: OperationId, summary: string): OperationRoute {
  return operation(id, {
    tag: COMPATIBLE,
    summary,
    scope: 'threads:read',
    query: 'any',
    answers: [whole],
    errors: ['AGENT_NOT_FOUND'],
    run: answerVendor,
  })
}

/**
 * Passes the request to the gateway of `@skein/ai`, which implements the vendor formats, with our agents as
 * its models.
 */
async function answerVendor(
  call: Pick<Call, 'request' | 'runtime' | 'principal' | 'services'> & { readonly body: unknown },
): Promise<Response> {
  const { request, runtime, principal, services } = call
  const client = accountOf(principal)
  services.streams.checkRoom(client)
  const disconnect = new AbortController()
  const agents = [...runtime.registry.agents.keys()]
  const serve = gateway({
    models: Object.fromEntries(agents.map((name) => [name, agentAnswer(call, name)])),
    limits: { maxBodyBytes: services.limits.maxFileBytes },
    clock: services.clock,
    // Errors that are meant for the client are sent to it. All others are reported here, and the client learns
    // only that something failed.
    onError: (error) => void (isUPPError(error) || services.report(error)),
  })
  const { url, method } = request
  const headers = new Headers(request.headers)
  headers.delete('content-length')
  headers.delete('transfer-encoding')
  const response = await serve(
    new Request(url, {
      method,
      headers,
      signal: AbortSignal.any([request.signal, disconnect.signal]),
      body: method === 'POST' ? JSON.stringify(call.body) : undefined,
    }),
  )
  if (!response.ok) return response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  return isStream && response.body
    ? counted(response, services.streams.add({ end: () => disconnect.abort() }, client))
    : response
}

/** Wraps a stream so that it counts as open until it ends, fails or its reader leaves. */
export function counted(response: Response, release: () => void): Response {
  const { status, headers } = response
  const reader = response.body!.getReader() // a stream has a body
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      let step: ReadableStreamReadResult<Uint8Array> | undefined
      try {
        step = await reader.read()
      } finally {
        if (step?.done !== false) release()
      }
      if (step.done) controller.close()
      else controller.enqueue(step.value)
    },
    cancel(reason) {
      release()
      return reader.cancel(reason)
    },
  })
  return new Response(body, { status, headers })
}

const DAY_MS = 24 * 3_600_000

/** Serves an agent as a model: each request is answered by a thread of the agent. */
function agentAnswer(
  call: Pick<Call, 'runtime' | 'principal' | 'services'>,
  agent: string,
): GatewayAnswer {
  const { runtime, principal, services } = call
  return async (request) => {
    try {
      await sweepEphemeral(runtime, principal.tenant, { now: services.clock.now(), ttlMs: DAY_MS })
      const { thread, after, queueId, isDurable } = await askThread({
        runtime,
        principal,
        agent,
        request,
      })
      const { signal, stream } = request
      // A thread that was created only for this answer stops when its client disconnects.
      const stop = (): void =>
        void runtime.threads
          .stop(thread.id, { by: principal.user ?? principal.tenant })
          .catch(services.report)
      if (!isDurable) signal.addEventListener('abort', stop, { once: true })
      return {
        events: agentEvents(runtime, thread, {
          after,
          queueId,
          isStream: stream,
          signal,
          prefix: services.prefix,
        }),
        droppedParams: Object.keys(request.params).filter((name) => !KNOWN.has(name)),
        id: threadPartToken(thread.id, queueId ?? String(after)),
        fields: isDurable
          ? { conversation: { id: threadPartId('conv', thread.id) }, store: true }
          : undefined,
        toServerError: (error) => {
          if (!(error instanceof ApprovalRequiredError)) return undefined
          const { code, message, statusCode = 409, fields } = error
          return { code, message, statusCode, fields }
        },
      }
    } catch (error) {
      throw toRefusal(error)
    }
  }
}

/** The parameters that agents support. */
const KNOWN: ReadonlySet<string> = new Set([
  'conversation',
  'previous_response_id',
  'store',
  'max_tokens', // Anthropic requires it
])
