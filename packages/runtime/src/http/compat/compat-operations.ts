import { isUPPError } from '@skein/ai'
import { gateway } from '@skein/ai/gateway'
import type { OperationId } from '../../operations/addresses.ts'
import {
  operation,
  raw,
  stream,
  type Call,
  type Probe,
  type OperationRoute,
} from '../../operations/operation.ts'
import { accountOf } from '../../operations/principal.ts'
import { answer, object, string } from '../../operations/shape.ts'
import { agentAnswer } from './agent-answer.ts'
import { COMPATIBLE } from './compat-error.ts'

const whole = raw('The answer in the format of the vendor.', 'application/json', object)
const events = stream('With `stream: true`, the events of the vendor.')
const question = [{ role: 'user', content: 'Hello' }]

/**
 * The operations that serve agents as models to ordinary clients of OpenAI and Anthropic. These clients add
 * their own parameters (`?beta=true`), so the query is not checked.
 */
export const compatOperations: readonly OperationRoute[] = [
  inference('chatCompletions', { body: { model: 'desk', messages: question } }),
  inference('responses', { body: { model: 'desk', input: 'Hello' } }),
  inference('messages', { body: { model: 'desk', max_tokens: 1000, messages: question } }),
  models('listModels', 'Agents as a list of models.'),
  models('getModel', 'One agent as a model.'),
]

function inference(id: OperationId, probe: Probe): OperationRoute {
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

function models(id: OperationId, summary: string): OperationRoute {
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
  const left = new AbortController()
  const agents = [...runtime.registry.agents.keys()]
  const serve = gateway({
    models: Object.fromEntries(agents.map((name) => [name, agentAnswer(call, name)])),
    limits: { maxBodyBytes: services.limits.maxFileBytes },
    clock: services.clock,
    // What was made for the client is sent to it; of all else it is only told that something failed.
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
      signal: AbortSignal.any([request.signal, left.signal]),
      body: method === 'POST' ? JSON.stringify(call.body) : undefined,
    }),
  )
  if (!response.ok) return response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  return isStream && response.body
    ? counted(response, services.streams.add({ end: () => left.abort() }, client))
    : response
}

/** Wraps a stream so that it counts as open until it ends or its reader leaves. */
function counted(response: Response, release: () => void): Response {
  const { status, headers } = response
  const reader = response.body!.getReader() // a stream has a body
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const step = await reader.read()
      if (!step.done) return controller.enqueue(step.value)
      release()
      controller.close()
    },
    cancel(reason) {
      release()
      return reader.cancel(reason)
    },
  })
  return new Response(body, { status, headers })
}
