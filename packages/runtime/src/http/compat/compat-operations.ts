import { isPlainObject, type JsonSchema } from '@skein/base'
import { gateway } from '@skein/ai/gateway'
import { agentAnswer } from './agent-answer.ts'
import type { ErrorCode } from '../../operations/http-error.ts'
import { accountOf } from '../../operations/principal.ts'
import type { Call, OpenRoute, Probe, Route, RouteAnswer } from '../../operations/operation.ts'

const question = [{ role: 'user', content: 'Hello' }]
const anything: JsonSchema = { type: 'object' }
const stream: RouteAnswer = {
  status: 200,
  description: 'With `stream: true`, the events of the vendor.',
  mediaType: 'text/event-stream',
  schema: { type: 'string' },
}
const whole: RouteAnswer = {
  status: 200,
  description: 'The answer in the words of the vendor.',
  schema: anything,
}
const errors: readonly ErrorCode[] = ['THREAD_NOT_FOUND', 'APPROVAL_REQUIRED', 'STREAM_LIMIT']

/** Agents as models for ordinary clients of OpenAI and Anthropic. */
export const compatRoutes: readonly Route[] = [
  inference('chatCompletions', '/v1/chat/completions', {
    body: { model: 'desk', messages: question },
  }),
  inference('responses', '/v1/responses', { body: { model: 'desk', input: 'Hello' } }),
  inference('messages', '/v1/messages', {
    body: { model: 'desk', max_tokens: 1000, messages: question },
  }),
  models('listModels', '/v1/models', 'Agents as a list of models.'),
  models('getModel', '/v1/models/{agent}', 'One agent as a model.'),
]

function inference(id: string, path: string, probe: Probe): OpenRoute {
  return {
    id,
    method: 'POST',
    path,
    tag: 'compatible',
    summary: 'Asks an agent as the API of a vendor asks a model; `model` is its name.',
    scope: 'threads:write',
    addresses: 'nothing',
    probe,
    body: {
      json: { type: 'object', properties: { model: { type: 'string' } }, required: ['model'] },
      isLarge: true,
    },
    answers: [whole, stream],
    errors,
    handle: answer,
  }
}

function models(id: string, path: string, summary: string): OpenRoute {
  return {
    id,
    method: 'GET',
    path,
    tag: 'compatible',
    summary,
    scope: 'threads:read',
    addresses: 'nothing',
    answers: [whole],
    errors: ['AGENT_NOT_FOUND'],
    handle: answer,
  }
}

/** The gateway with the agents of this moment, for a client that was let in. */
async function answer(call: Call): Promise<Response> {
  const { request, runtime, principal, services } = call
  const client = accountOf(principal)
  services.streams.checkRoom(client)
  const left = new AbortController()
  const agents = [...runtime.registry.agents.keys()]
  const serve = gateway({
    models: Object.fromEntries(agents.map((name) => [name, agentAnswer(call, name)])),
    limits: { maxBodyBytes: services.limits.maxFileBytes },
    clock: services.clock,
    onError: () => undefined, // each is told to the client
  })
  const { url, method, headers } = request
  const response = await serve(
    new Request(url, {
      method,
      headers: withoutLength(headers),
      signal: AbortSignal.any([request.signal, left.signal]),
      ...(method === 'POST' && { body: JSON.stringify(call.body) }),
    }),
  )
  if (!response.ok) return withCode(response)
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  return isStream && response.body
    ? counted(response, services.streams.add({ end: () => left.abort() }, client))
    : response
}

/** The stream, which counts as one until it ends or its reader leaves. */
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

function withoutLength(headers: Headers): Headers {
  const copy = new Headers(headers)
  copy.delete('content-length')
  copy.delete('transfer-encoding')
  return copy
}

/** An error of a vendor's format with the code that all our errors have; vendors leave it out at times. */
async function withCode(response: Response): Promise<Response> {
  const { status, headers } = response
  const body: unknown = await response.json()
  if (!isPlainObject(body) || !isPlainObject(body['error'])) return response
  const { code, type } = body['error']
  const error = { ...body['error'], code: code ?? type ?? 'error' }
  return new Response(JSON.stringify({ ...body, error }), { status, headers })
}
