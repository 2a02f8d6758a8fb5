import { type JsonObject, systemClock } from '@skein/base'
import { acceptedByClaude } from '../catalog/accepted/anthropic.ts'
import { AwsAuthorizer } from '../clouds/aws-authorizer.ts'
import {
  type AwsCredentials,
  findAwsCredentials,
  regionOfEnvironment,
} from '../clouds/aws-credentials.ts'
import { credentialError } from '../clouds/credential-request.ts'
import type { Message } from '../contract/message.ts'
import { invalidRequest } from '../contract/error.ts'
import type { Fetch, ModelReference, Params, Provider, Settings } from '../contract/provider.ts'
import { writeAnthropic } from '../wires/anthropic-messages/settings.ts'
import type { BedrockDialect } from '../wires/bedrock-converse/types.ts'
import { bedrockConverse } from '../wires/bedrock-converse/wire.ts'
import { objectOf, textOf } from '../wires/read-json.ts'
import { notEmpty } from '../wires/settings.ts'
import type { WrittenSettings } from '../wires/wire.ts'
import { defineVendor, type VendorLLM } from './define-vendor.ts'

export type { AwsCredentials } from '../clouds/aws-credentials.ts'

/** Known parameters of Converse, by the names of `@aws-sdk/client-bedrock-runtime 3.1162.0`. */
type BedrockParams = {
  /** What a model takes beyond Converse, e.g. `{ top_k: 5 }` or `{ thinking: … }` for Claude. */
  readonly additionalModelRequestFields?: object
  readonly additionalModelResponseFieldPaths?: readonly string[]
  readonly guardrailConfig?: object
  readonly inferenceConfig?: {
    readonly maxTokens?: number
    readonly temperature?: number
    readonly topP?: number
    readonly stopSequences?: readonly string[]
  }
  readonly outputConfig?: object
  readonly performanceConfig?: object
  readonly promptVariables?: object
  readonly requestMetadata?: Readonly<Record<string, string>>
  readonly serviceTier?: object
  /** Blocks that follow the system prompt, e.g. `[{ cachePoint: { type: 'default' } }]`. */
  readonly system?: readonly object[]
  readonly toolConfig?: { readonly tools?: readonly object[]; readonly toolChoice?: object }
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]
}

/** Where a model is asked. None of this is secret. */
export interface BedrockPlace {
  /** E.g. `eu-central-1`. Default: `AWS_REGION`, `AWS_DEFAULT_REGION`. */
  readonly region?: string
  /** A profile of `~/.aws`, on Node. Default: `AWS_PROFILE`. */
  readonly profile?: string
  /** The address of the service, for private endpoints. Default: that of the region. */
  readonly endpoint?: string
}

/** The settings of `bedrockWith`. */
export interface BedrockOptions extends BedrockPlace {
  /** The keys, or a function that gets them, e.g. from the AWS SDK. It is called again before they end. */
  readonly credentials?: AwsCredentials | (() => Promise<AwsCredentials>)
  /** Asks for credentials of a container, an instance or a web identity. Default: the global `fetch`. */
  readonly fetch?: Fetch
}

interface BedrockVendor extends Pick<Provider, 'name' | 'handlers'> {
  (modelId: string, options?: BedrockPlace): ModelReference<BedrockParams>
}

const SERVICE = 'bedrock'

/**
 * Amazon Bedrock with credentials or an address of its own. The credentials are in no reference, error or log.
 *
 *     const bedrock = bedrockWith({ region: 'eu-central-1', credentials: fromNodeProviderChain() })
 *     llm({ model: bedrock('eu.anthropic.claude-sonnet-4-5-20250929-v1:0') })
 */
export function bedrockWith(options: BedrockOptions = {}): BedrockVendor {
  const { credentials, fetch = (url, init) => globalThis.fetch(url, init) } = options
  const authorizers = new Map<string, AwsAuthorizer>()
  const authorizerOf = ({ region, profile }: BedrockPlace): AwsAuthorizer => {
    const key = JSON.stringify([region, profile])
    const known = authorizers.get(key)
    if (known) return known
    const authorizer = new AwsAuthorizer({
      service: SERVICE,
      clock: systemClock,
      credentials:
        typeof credentials === 'function'
          ? credentials
          : async () => credentials ?? findAwsCredentials({ profile, fetch }),
      region: async () => {
        if (region !== undefined) return region
        throw credentialError(
          'bedrock',
          'no region is set.',
          "Set AWS_REGION, or pass a region: bedrock(id, { region: 'eu-central-1' }).",
        )
      },
    })
    authorizers.set(key, authorizer)
    return authorizer
  }
  return defineVendor<BedrockVendor>({
    name: 'bedrock',
    // Never asked: each model has the address of its region.
    baseUrl: 'https://region-is-not-set.invalid',
    // Credentials that the caller passes are not replaced by a key of the environment.
    keyVariables: options.credentials ? [] : ['AWS_BEARER_TOKEN_BEDROCK'],
    llm: ({ modelId, options: place }) => llmAt(modelId, { ...options, ...place }, authorizerOf),
  })
}

/**
 * Amazon Bedrock, through Converse. The model id is that of a model, of an inference profile
 * (`eu.anthropic.claude-…`) or an ARN.
 *
 * - A key of Bedrock (`config.apiKey`; `AWS_BEARER_TOKEN_BEDROCK` unless `credentials` are passed) comes before
 *   credentials. These are found as the SDKs
 *   of AWS find them: environment, web identity, profile, container, instance. `bedrockWith` takes them as an option.
 * - `params` are the fields of Converse. What a model takes beyond them is `additionalModelRequestFields`; for Claude,
 *   `reasoning` and `topK` are written there.
 * - Cache points: `metadata: { bedrock: { cachePoint: { type: 'default' } } }` on a block or message, and
 *   `params.system`.
 *
 * Request bodies and signatures are compared with those of `@aws-sdk/client-bedrock-runtime 3.1162.0`.
 */
export const bedrock: BedrockVendor = bedrockWith()

export default bedrock

function llmAt(
  modelId: string,
  place: BedrockPlace,
  authorizerOf: (place: BedrockPlace) => AwsAuthorizer,
): VendorLLM<BedrockDialect> {
  const region = textOf(place.region) ?? regionOfArn(modelId) ?? regionOfEnvironment()
  if (region !== undefined && !/^[a-z0-9-]+$/.test(region))
    throw invalidRequest(
      `The region ${JSON.stringify(region)} is no name of a region.`,
      { provider: 'bedrock', modality: 'llm' },
      'A region is e.g. eu-central-1.',
    )
  const baseUrl = textOf(place.endpoint) ?? (region && addressOf(region))
  return {
    wire: bedrockConverse,
    dialect,
    capabilities: {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: true,
      videoInput: true,
      audioInput: true,
    },
    // A caller's address may be anywhere.
    region: textOf(place.endpoint) === undefined ? residenceOf(modelId, region) : undefined,
    endpoint: {
      ...(baseUrl !== undefined && { baseUrl }),
      authorizer: authorizerOf({ ...place, ...(region !== undefined && { region }) }),
    },
  }
}

function addressOf(region: string): string {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return `https://bedrock-runtime.${region}.${domain}`
}

function regionOfArn(modelId: string): string | undefined {
  return /^arn:aws[\w-]*:bedrock:([a-z0-9-]+):/.exec(modelId)?.[1]
}

/**
 * Returns where requests are processed. An inference profile may answer from any region of its area, wherever it is
 * asked; `global` may answer from anywhere.
 */
function residenceOf(modelId: string, region: string | undefined): string | undefined {
  // The ARN does not say which models, and so which regions, are behind these.
  if (/^arn:.*:(application-inference-profile|(default-)?prompt-router|prompt)\//.test(modelId))
    return undefined
  const area = /^(?:arn:.*\/)?([a-z-]+)\.[a-z0-9-]+\./.exec(modelId)?.[1]
  if (area === undefined || !Object.hasOwn(areaRegions, area)) return region
  if (area === 'global' || region === undefined) return area
  // The request goes to the region first, so a region outside of the area says nothing that a rule could rely on.
  if (!areaRegions[area]!.test(region)) return undefined
  // London and Zurich are asked by profiles of Europe too, and are not in the Union.
  return area === 'eu' && /^eu-(west|central)-2$/.test(region) ? region : area
}

/** The areas of inference profiles, and the regions that they are asked in. */
const areaRegions: Readonly<Record<string, RegExp>> = {
  global: /./,
  us: /^us-(?!gov-)/,
  'us-gov': /^us-gov-/,
  eu: /^eu-/,
  apac: /^ap-/,
  jp: /^ap-northeast-/,
  au: /^ap-southeast-/,
  ca: /^ca-/,
}

const dialect: BedrockDialect = {
  takesSchema: (modelId) => !schemaless.test(modelId),
  writeSettings(settings, modelId, params, messages) {
    const name = claudeOf(modelId)
    return name === undefined ? undefined : writeClaude(settings, name, params, messages)
  },
}

/** The models that take no schema for their answer (docs.aws.amazon.com/bedrock, structured outputs, November 2026). */
const schemaless =
  /amazon\.|meta\.|cohere\.|ai21\.|claude-(?:v|instant|3|opus-4-1|(?:opus|sonnet)-4-2025)/

/** Returns the name that Anthropic gives a Claude, e.g. `claude-sonnet-4-5-20250929`; undefined for other models. */
function claudeOf(modelId: string): string | undefined {
  return /anthropic\.(claude-[a-z0-9-]+)/.exec(modelId)?.[1]?.replace(/-v\d+$/, '')
}

/** Writes settings for a Claude: as for Anthropic, in the places that Converse has for them. */
function writeClaude(
  settings: Settings,
  modelId: string,
  params: Params,
  messages: readonly Message[],
): WrittenSettings {
  const own = objectOf(params['additionalModelRequestFields']) ?? {}
  const last = messages.findLastIndex(({ type }) => type === 'user')
  // A tool loop that Bedrock began has thinking of its own format, which the writer for Anthropic does not know.
  const isOwnLoop = messages.slice(last + 1).some((message) => message.metadata?.['bedrock']?.['api'] === 'bedrock-converse') // prettier-ignore
  const target = { provider: 'bedrock', modelId, dialect: { accepts: acceptedByClaude } }
  const written = writeAnthropic(settings, target, own, isOwnLoop ? [] : messages)
  const { max_tokens, temperature, top_p, stop_sequences, tool_choice, ...more } = written.params
  const choice = toolChoiceOf(objectOf(tool_choice))
  // Converse has neither a choice of no tool nor a way to ask for one call at a time.
  const absent = [
    ...(settings.toolChoice === 'none' ? (['toolChoice'] as const) : []),
    ...(settings.parallelToolCalls === undefined ? [] : (['parallelToolCalls'] as const)),
  ]
  const dropped = [...new Set([...written.dropped, ...absent])]
  const fields = { ...more, ...own }
  return {
    ...written,
    dropped,
    params:
      notEmpty({
        inferenceConfig: notEmpty({
          maxTokens: max_tokens,
          temperature,
          topP: top_p,
          stopSequences: stop_sequences,
        }),
        toolConfig: choice && { toolChoice: choice },
        additionalModelRequestFields: notEmpty(fields),
      }) ?? {},
  }
}

function toolChoiceOf(choice: JsonObject | undefined): JsonObject | undefined {
  switch (choice?.['type']) {
    case 'auto':
      return { auto: {} }
    case 'any':
      return { any: {} }
    case 'tool':
      return { tool: { name: choice['name'] } }
    default:
      return undefined
  }
}
