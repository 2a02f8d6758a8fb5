import {
  type Clock,
  type IdSource,
  isStandardSchema,
  type JsonSchema,
  type StandardSchemaV1,
  toJsonSchema,
  type MessageJSON,
} from '@skein/base'
import type { ContentBlock, DocumentBlock, ImageBlock, UserContent } from '../contract/content.ts'
import { asMessage } from '../contract/message-json.ts'
import { type AssistantMessage, isMessage, type Message, UserMessage } from '../contract/message.ts'
import {
  ErrorCode,
  type ErrorOrigin,
  hookError,
  invalidRequest,
  UPPError,
} from '../contract/error.ts'
import type { BoundLLMModel, LLMCapabilities, LLMRequest } from '../contract/provider.ts'
import { type DataIssue, pointerSegment } from '../contract/structure.ts'
import type { Tool } from '../contract/tool.ts'

/** One input of `generate` and `stream` (UPP §5.3). Messages may also be parsed JSON. */
export type InferenceInput = string | Message | MessageJSON | ContentBlock

/** A list of messages, or an object with `messages`, such as a thread. */
export type History =
  readonly (Message | MessageJSON)[] | { readonly messages: readonly (Message | MessageJSON)[] }

/** The sources of ids and times for new messages, and the provider that errors name. */
interface MessageSources {
  readonly ids: IdSource
  readonly clock: Clock
  readonly origin: ErrorOrigin
}

/** The messages of one call. */
export interface CallMessages {
  /** All messages to send. Other calls do not share the list. */
  readonly messages: Message[]
  /** The messages that are new in this call, and so belong to its turn. */
  readonly inputs: readonly Message[]
}

/**
 * Returns all messages of a call (the history, if the first argument is one, followed by the inputs) and,
 * separately, the inputs. The given history is neither stored nor changed.
 */
export function toMessages(
  given: readonly (History | InferenceInput)[],
  sources: MessageSources,
): CallMessages {
  const [first, ...rest] = given
  const past = historyOf(first)
  const history = past ? past.map((message) => toMessage(message, sources)) : []
  const inputs = toInputs((past ? rest : given) as readonly InferenceInput[], sources)
  const messages = [...history, ...inputs]
  if (messages.length === 0)
    throw invalidRequest('There is nothing to send.', sources.origin, 'Pass at least one input.')
  return { messages, inputs }
}

function historyOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value
  if (typeof value !== 'object' || value === null || isMessage(value)) return undefined
  return 'messages' in value && Array.isArray(value.messages) ? value.messages : undefined
}

/** Converts inputs to messages. Consecutive strings and blocks become one user message. */
function toInputs(inputs: readonly InferenceInput[], sources: MessageSources): Message[] {
  const messages: Message[] = []
  let blocks: UserContent[] = []
  const flush = (): void => {
    if (blocks.length > 0) messages.push(new UserMessage(blocks, sources))
    blocks = []
  }
  for (const input of inputs) {
    if (typeof input === 'string') blocks.push({ type: 'text', text: input })
    else if (isBlock(input)) blocks.push(input)
    else {
      flush()
      messages.push(toMessage(input, sources))
    }
  }
  flush()
  return messages
}

/**
 * True for an object with a `type` that is not a message.
 * `UserMessage` checks whether users may send the block.
 */
function isBlock(input: unknown): input is UserContent {
  return (
    typeof input === 'object' &&
    input !== null &&
    'type' in input &&
    typeof input.type === 'string' &&
    !isMessage(input)
  )
}

function toMessage(value: unknown, sources: MessageSources): Message {
  if (!isMessage(value))
    throw invalidRequest(
      `Expected a message but got ${describe(value)}.`,
      sources.origin,
      isRoleMessage(value)
        ? 'Use new UserMessage(…) or new AssistantMessage(…), or give the message a type instead of a role.'
        : 'The history is a list of messages; pass text and blocks after it, one argument each.',
    )
  return asMessage(value, sources)
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? typeof value
  if ('type' in value) return `an object of type ${JSON.stringify(value.type)}`
  return isRoleMessage(value)
    ? `an object with a role (${JSON.stringify(value.role)})`
    : 'an object'
}

/** True for a message as the SDKs of vendors have it: `{ role, content }`. */
function isRoleMessage(value: unknown): value is { readonly role: unknown } {
  return typeof value === 'object' && value !== null && 'role' in value && 'content' in value
}

/**
 * Throws if tool names are not unique, or if the model does not support tools or structured output although
 * they are used (UPP §11.1, §12.2).
 */
export function checkOptions(
  { tools, structure }: { tools: readonly Tool[]; structure?: JsonSchema | undefined },
  capabilities: LLMCapabilities,
  origin: ErrorOrigin,
): void {
  if (tools.length > 0 && !capabilities.tools) throw unsupported('tools', origin)
  if (structure && !capabilities.structuredOutput) throw unsupported('structured output', origin)
  const names = new Set<string>()
  for (const { name } of tools) {
    if (names.has(name))
      throw invalidRequest(`Two tools are named "${name}".`, origin, 'Tool names must be unique.')
    names.add(name)
  }
}

/**
 * Throws if a request cannot be sent to this model. Hooks may have changed it, so it is checked as the caller's
 * is. Media are checked only in the input; those of earlier messages are replaced, see `fitRequest`.
 */
export function checkRequest(request: LLMRequest, model: BoundLLMModel, streaming: boolean): void {
  const { capabilities, provider } = model
  const origin: ErrorOrigin = { provider, modality: 'llm' }
  if (streaming && !capabilities.streaming) throw unsupported('streaming', origin)
  checkOptions(request, capabilities, origin)
  const { messages } = request
  const start = inputStart(messages)
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.type !== 'user') continue
    for (const block of message.content) {
      const { type } = block
      if (type === 'text') continue // most blocks, and a history has many
      if (type === 'image' || type === 'document') checkSource(block, origin)
      if (index < start) continue
      const needed = mediaCapability(block)
      if (needed && !capabilities[needed]) throw unsupported(`${type} input`, origin)
      const refusal = model.refuse?.(block)
      if (refusal) throw refusal
    }
  }
}

/**
 * Returns the index of the first message after the last finished answer (one without open calls). What the user
 * says from there on is the input that the next answer is about; everything before is history.
 */
export function inputStart(messages: readonly Message[]): number {
  return (
    messages.findLastIndex((message) => message.type === 'assistant' && !message.hasToolCalls) + 1
  )
}

/** Returns the capability that a model needs for a block of a user; undefined if none says. */
export function mediaCapability({ type }: UserContent): MediaCapability | undefined {
  return type === 'text' || type === 'binary' ? undefined : `${type}Input`
}

type MediaCapability = 'imageInput' | 'documentInput' | 'videoInput' | 'audioInput'

const knownSources = {
  image: ['bytes', 'base64', 'url'],
  document: ['base64', 'url', 'text'],
} as const

/** Throws for a kind of source that this package does not have, e.g. a vendor's id of an uploaded file. */
function checkSource({ type, source }: ImageBlock | DocumentBlock, origin: ErrorOrigin): void {
  const known: readonly string[] = knownSources[type]
  if (known.includes(source?.type)) return
  throw invalidRequest(
    `The source of the ${type} has the type ${JSON.stringify(source?.type)}.`,
    origin,
    `Known: ${known.join(', ')}. For a file that was uploaded to a vendor: Document.fromUpload({ provider, fileId }), Image.fromUpload(…).`,
  )
}

function unsupported(what: string, origin: ErrorOrigin): Error {
  return invalidRequest(
    `The provider "${origin.provider}" does not support ${what}.`,
    origin,
    'See `capabilities` of the instance.',
  )
}

/**
 * The shape of a structured answer: a Standard Schema that can convert itself to JSON Schema, or JSON Schema
 * itself. `Data` is the schema's input type, because answers are not transformed (UPP §12.2).
 */
export type Structure<Data = unknown> = StandardSchemaV1<Data, unknown> | JsonSchema

/** Returns the JSON Schema of a structure, or of something else that is declared with a schema. */
export function toStructure(
  structure: Structure,
  origin: ErrorOrigin,
  what = 'structure',
): JsonSchema {
  try {
    return toJsonSchema(structure)
  } catch (error) {
    throw hookError(error, `Reading the ${what}`, origin)
  }
}

/**
 * Parses the data of a structured answer. It is not validated here: JSON that breaks the schema passes (UPP
 * §12.2).
 */
export function parseData(
  { text }: AssistantMessage,
  stopReason: string,
  origin: ErrorOrigin,
): unknown {
  try {
    // JSON that ends with a digit is one number. In an answer that was cut off, more of its digits may be missing.
    if (/max_tokens|context_window|content_filter/.test(stopReason) && /\d$/.test(text))
      throw new Error('The number at its end may be incomplete.')
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new UPPError(`The structured answer is not JSON (stop reason: ${stopReason}).`, {
      code: ErrorCode.InvalidResponse,
      ...origin,
      cause,
      hint: 'error.turn holds the answer. With "max_tokens" it was cut off: allow more tokens.',
    })
  }
}

/** Checks the data of a structured answer against its schema; returns an empty list if it fits. */
export type DataCheck = (data: unknown) => Promise<readonly DataIssue[]>

/**
 * Returns the check for `validate: true`, which is the validation of the schema itself. Throws if the
 * structure is plain JSON Schema, which cannot validate.
 */
export function checkOf(structure: unknown, origin: ErrorOrigin): DataCheck {
  if (!isStandardSchema(structure))
    throw invalidRequest(
      '`validate` needs a `structure` that can validate; raw JSON Schema cannot.',
      origin,
      "Pass a Zod, Valibot or ArkType schema, or jsonSchema({ … }) of '@skein/ai/json-schema'.",
    )
  return async (data) => {
    try {
      const { issues = [] } = await structure['~standard'].validate(data)
      return issues.map(({ message, path = [] }) => ({
        pointer: path.map((part) => pointerSegment(keyOf(part))).join(''),
        message,
      }))
    } catch (error) {
      throw hookError(error, 'The validation of the structured answer', origin)
    }
  }
}

function keyOf(part: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof part === 'object' ? part.key : part)
}

/** The error of data that does not fit its schema. */
export function mismatchError(issues: readonly DataIssue[], origin: ErrorOrigin): UPPError {
  const [first] = issues
  const rest = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return new UPPError(
    `The structured answer does not fit its schema: ${first?.pointer || 'the answer'}: ${first?.message}${rest}`,
    {
      code: ErrorCode.InvalidResponse,
      ...origin,
      issues,
      hint: 'error.issues lists every place, error.turn holds the answer; `repair: 1` asks the model once more.',
    },
  )
}

/** Returns the message that tells the model what is wrong with its structured answer. */
export function repairText(issues: readonly DataIssue[] | undefined): string {
  const lines = issues?.map(
    ({ pointer, message }) => `- ${pointer || '(the whole answer)'}: ${message}`,
  )
  return lines
    ? `Your answer does not fit the schema:\n${lines.join('\n')}\nAnswer again with the whole, corrected JSON and nothing else.`
    : 'Your answer is not JSON. Answer again with the whole JSON that the schema asks for and nothing else.'
}
