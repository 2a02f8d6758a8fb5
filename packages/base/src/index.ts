export { messageOf, SkeinError } from './error.ts'
export { wellFormed, wellFormedJson } from './well-formed.ts'
export { SseDecoder, type SseEvent } from './sse.ts'
export { encodeSse } from './encode-sse.ts'
export { NdjsonDecoder } from './ndjson.ts'
export { decodeBase64, decodeBase64Url, encodeBase64, encodeBase64Url } from './base64.ts'
export { canonicalJson } from './canonical-json.ts'
export { createSha256, sha256, sha256Hex, type Sha256 } from './hash.ts'
export type {
  UppMetadata,
  UppTextBlock,
  UppReasoningBlock,
  UppImageSource,
  UppImageBlock,
  UppDocumentSource,
  UppDocumentBlock,
  UppMediaBlock,
  UppNativeBlock,
} from './upp-blocks.ts'
export type {
  BytesJSON,
  MetadataJSON,
  ImageBlockJSON,
  DocumentBlockJSON,
  MediaBlockJSON,
  NativeBlockJSON,
  ContentBlockJSON,
  ToolCallJSON,
  ToolResultJSON,
  UserMessageJSON,
  AssistantMessageJSON,
  MessageJSON,
} from './upp-json.ts'
export {
  isObject,
  isOfType,
  isPlainObject,
  tryParseJson,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from './json.ts'
export {
  isStandardSchema,
  toJsonSchema,
  type InferInput,
  type InferOutput,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardResult,
  type StandardSchemaV1,
} from './standard-schema.ts'
export {
  argumentParserMember,
  argumentParserOf,
  isParsedBy,
  parsedByMember,
  type ArgumentParser,
  type RecordedArguments,
} from './argument-parser.ts'
export { manualClock, systemClock, type Clock, type ManualClock } from './clock.ts'
export { randomIds, sequentialIds, timeOrderedIds, uuidV4, uuidV7, type IdSource } from './ids.ts'
export { seededRandom, type Random } from './random.ts'
export { frozenCopy } from './json.ts'
export { deepFreeze, freezeTree, FrozenData, isDeepFrozen } from './freeze.ts'
export { defaultInputLimits, type InputLimits } from './input-limits.ts'
export { isInNetwork, isPrivateAddress } from './address.ts'
export { linkAbort, untilAborted } from './abort.ts'
export { isPromise, type MaybePromise } from './maybe-promise.ts'
export { systemTimer, TimeLimitError, type TimeLimitOptions, withTimeLimit } from './time-limit.ts'
export { closest } from './closest.ts'
export { unknownOptions, type OptionNames } from './unknown-options.ts'
export { isSameJson } from './same-json.ts'
export { redactSecrets, secretForms } from './redact.ts'
export { parsePartialJson, PartialJson } from './partial-json.ts'
export type { TestFunctions } from './ids.ts'
