import type { JsonObject } from '@skein/base'
import type { ResolvedAgent } from '@skein/runtime'
import { HttpError } from '../../operations/http-error.ts'
import { operation, raw, type Call, type OperationRoute } from '../../operations/operation.ts'
import { object } from '@skein/base/shape'

const card = raw('An agent card of A2A.', 'application/json', object)

/** The operations that describe agents to clients of the A2A protocol. */
export const agentCardOperations: readonly OperationRoute[] = [
  operation('getServerCard', {
    tag: 'a2a',
    summary: 'The A2A agent card of the only agent, or of the one that the server names.',
    scope: 'threads:read',
    isAlsoAtRoot: true,
    answers: [card],
    errors: ['AGENT_NOT_FOUND'],
    run(call) {
      const { runtime, services } = call
      const agents = [...runtime.registry.agents.keys()]
      const name = services.a2a.agent ?? (agents.length === 1 ? agents[0] : undefined)
      if (name === undefined)
        throw new HttpError('This server has several agents, and none of them is its own.', {
          code: 'AGENT_NOT_FOUND',
          hint: 'Each has a card: GET /agents/{agent}/.well-known/agent-card.json. The option `a2a.agent` chooses the one for this address.',
        })
      return cardResponse(call, runtime.registry.agent(name))
    },
  }),
  operation('getAgentCard', {
    tag: 'a2a',
    summary: 'The A2A agent card of an agent.',
    scope: 'threads:read',
    answers: [card],
    errors: ['AGENT_NOT_FOUND'],
    run: (call) => cardResponse(call, call.runtime.registry.agent(call.params.agent)),
  }),
]

/**
 * A client of A2A 1.0 names its version and gets the card of 1.0. Others get a card with the fields of 0.3
 * too, because a missing header means 0.3 (A2A 1.0, section 3.6.2).
 */
function cardResponse(
  { request, services }: Pick<Call, 'request' | 'services'>,
  { name, definition }: ResolvedAgent,
): Response {
  const base = services.a2a.url ?? `${new URL(request.url).origin}${services.prefix}`
  const url = `${base}/agents/${encodeURIComponent(name)}/a2a`
  const { title = name, description = `The agent ${title}.` } = definition
  const modes = ['text/plain', 'application/json']
  const isNew = /^1(\.|$)/.test(request.headers.get('a2a-version') ?? '')
  const common: JsonObject = {
    name: title,
    description,
    version: '0.1.0',
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [{ id: name, name: title, description, tags: ['agent'] }],
    supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    capabilities: { streaming: true, pushNotifications: false },
  }
  const scheme = isNew
    ? { httpAuthSecurityScheme: { scheme: 'Bearer' } }
    : { type: 'http', scheme: 'bearer' }
  const body: JsonObject = isNew
    ? { ...common, securityRequirements: [{ schemes: { key: { list: [] } } }] }
    : {
        ...common,
        protocolVersion: '0.3.0',
        url,
        preferredTransport: 'JSONRPC',
        security: [{ key: [] }],
      }
  return new Response(JSON.stringify({ ...body, securitySchemes: { key: scheme } }), {
    headers: { 'content-type': 'application/json; charset=utf-8', vary: 'a2a-version' },
  })
}
