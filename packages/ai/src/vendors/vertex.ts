import { systemClock } from '@skein/base'
import { acceptedByClaude } from '../catalog/accepted/anthropic.ts'
import { acceptedByGemini } from '../catalog/accepted/google.ts'
import { credentialError } from '../clouds/credential-request.ts'
import { GoogleAuthorizer } from '../clouds/google-authorizer.ts'
import { askForGoogleToken, type GoogleCredentials } from '../clouds/google-token.ts'
import { invalidRequest } from '../contract/error.ts'
import type {
  Fetch,
  LLMCapabilities,
  ModelReference,
  Params,
  Provider,
} from '../contract/provider.ts'
import { environment } from '../transport/keys.ts'
import { vertexMessages } from '../wires/anthropic-messages/vertex.ts'
import { unsignedCall } from '../wires/google-generate/unsigned-call.ts'
import { googleGenerate } from '../wires/google-generate/wire.ts'
import { defineVendor, type VendorLLM } from './define-vendor.ts'

export type { GoogleCredentials } from '../clouds/google-token.ts'

/** Where a model is asked. None of this is secret. */
export interface VertexPlace {
  /** Default: `GOOGLE_CLOUD_PROJECT` or `GCLOUD_PROJECT`. */
  readonly project?: string
  /** A region (`europe-west4`), an area (`eu`, `us`) or `global`. Default: `GOOGLE_CLOUD_LOCATION`. */
  readonly location?: string
  /** The address of the service, e.g. of Private Service Connect. Default: that of the location. */
  readonly endpoint?: string
}

/** The settings of `vertexWith`. */
export interface VertexOptions extends VertexPlace {
  /** The content of a JSON file of credentials: of a service account, a user, or an external account. */
  readonly credentials?: GoogleCredentials
  /** Gets a token in another way, e.g. from `google-auth-library`. It is called again before the token ends. */
  readonly token?: () => Promise<{ readonly token: string; readonly expiresAt?: number }>
  /** Asks for tokens. Default: the global `fetch`. */
  readonly fetch?: Fetch
}

interface VertexVendor extends Pick<Provider, 'name' | 'handlers'> {
  (modelId: string, options?: VertexPlace): ModelReference<Params>
}

/**
 * Vertex AI with credentials or an address of its own. The credentials are in no reference, error or log.
 *
 *     const vertex = vertexWith({ project: 'my-project', location: 'europe-west4', credentials: serviceAccount })
 *     llm({ model: vertex('gemini-2.5-pro') })
 */
export function vertexWith(options: VertexOptions = {}): VertexVendor {
  const { credentials, token, fetch = (url, init) => globalThis.fetch(url, init) } = options
  const clock = systemClock
  const load = token ?? (() => askForGoogleToken({ credentials, fetch, clock }))
  // One token for all models, but a check for each place.
  const authorizers = new Map<string, GoogleAuthorizer>()
  const authorizerOf = (missing: string | undefined): GoogleAuthorizer => {
    const key = missing ?? ''
    const known = authorizers.get(key)
    if (known) return known
    const authorizer = new GoogleAuthorizer(load, clock, () => {
      if (missing === undefined) return
      throw credentialError(
        'vertex',
        `no ${missing} is set.`,
        "Set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or pass vertex(id, { project, location: 'europe-west4' }).",
      )
    })
    authorizers.set(key, authorizer)
    return authorizer
  }
  return defineVendor<VertexVendor>({
    name: 'vertex',
    // Never asked: each model has the address of its project and location.
    baseUrl: 'https://project-is-not-set.invalid',
    keyVariables: [],
    llm: ({ modelId, options: place }) => llmAt(modelId, { ...options, ...place }, authorizerOf),
  })
}

/**
 * Vertex AI of Google Cloud: Gemini through `generateContent`, Claude (`claude-…`) through Anthropic's Messages.
 *
 * - Credentials are found as the libraries of Google find them: the file of `GOOGLE_APPLICATION_CREDENTIALS` or of
 *   `gcloud auth application-default login` on Node, then the metadata server. `vertexWith` takes them as an option.
 *   An access token in `config.apiKey` is sent as it is.
 * - `params` are those of the wire: `generationConfig`, `safetySettings`, … of Gemini; `thinking`, … of Claude.
 * - What a model of `google` or `anthropic` said in an earlier turn has no signatures here, and the other way round.
 */
export const vertex: VertexVendor = vertexWith()

export default vertex

const gemini: VendorLLM = {
  wire: googleGenerate,
  dialect: { unsignedCall, accepts: acceptedByGemini },
  capabilities: capabilitiesWith(true),
}

const claude: VendorLLM = {
  wire: vertexMessages,
  dialect: { maxTokens: 4096, accepts: acceptedByClaude },
  capabilities: capabilitiesWith(false),
}

function capabilitiesWith(sound: boolean): LLMCapabilities {
  return {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: true,
    documentInput: true,
    videoInput: sound,
    audioInput: sound,
  }
}

function llmAt(
  modelId: string,
  place: VertexPlace,
  authorizerOf: (missing: string | undefined) => GoogleAuthorizer,
): VendorLLM {
  const project = place.project ?? environment('GOOGLE_CLOUD_PROJECT') ?? environment('GCLOUD_PROJECT') // prettier-ignore
  const location = place.location ?? environment('GOOGLE_CLOUD_LOCATION')
  for (const [name, value] of Object.entries({ project, location }))
    if (value !== undefined && !/^[a-z0-9][a-z0-9.:-]*$/.test(value))
      throw invalidRequest(
        `The ${name} ${JSON.stringify(value)} is no name of a ${name}.`,
        { provider: 'vertex', modality: 'llm' },
        'A project is e.g. my-project-1, a location e.g. europe-west4.',
      )
  const isClaude = modelId.startsWith('claude-')
  const missing =
    project === undefined ? 'project' : location === undefined ? 'location' : undefined
  const origin =
    (place.endpoint?.endsWith('/') ? place.endpoint.slice(0, -1) : place.endpoint) ??
    (location && addressOf(location))
  const publisher = isClaude ? 'anthropic' : 'google'
  const baseUrl =
    missing === undefined
      ? `${origin}/v1/projects/${project}/locations/${location}/publishers/${publisher}`
      : undefined
  return {
    ...(isClaude ? claude : gemini),
    // A caller's address may be anywhere.
    region: place.endpoint === undefined ? location : undefined,
    endpoint: { ...(baseUrl !== undefined && { baseUrl }), authorizer: authorizerOf(missing) },
  }
}

/** The address of a location (docs.cloud.google.com/vertex-ai/generative-ai/docs/learn/locations). */
function addressOf(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  if (location === 'eu' || location === 'us')
    return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}
