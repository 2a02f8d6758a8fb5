export { messageOf, SkeinError, type SkeinErrorOptions } from './error.ts'
export { SseDecoder, type SseDecoderOptions, type SseEvent } from './sse.ts'
export { encodeSse, type SseFields } from './encode-sse.ts'
export { NdjsonDecoder, type NdjsonDecoderOptions } from './ndjson.ts'
export { decodeBase64, decodeBase64Url, encodeBase64, encodeBase64Url } from './base64.ts'
export { canonicalJson } from './canonical-json.ts'
export { createSha256, sha256, sha256Hex, type Sha256 } from './hash.ts'
export { isPlainObject, type JsonObject, type JsonSchema, type JsonValue } from './json.ts'
export {
  isStandardSchema,
  type InferInput,
  type InferOutput,
  type JsonSchemaTarget,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardResult,
  type StandardSchemaV1,
  type StandardTypedProps,
} from './standard-schema.ts'
export { toJsonSchema } from './to-json-schema.ts'
export { manualClock, systemClock, type Clock, type ManualClock } from './clock.ts'
export { seededRandom, type Random } from './random.ts'
export {
  randomIds,
  sequentialIds,
  timeOrderedIds,
  uuidV4,
  uuidV7,
  type IdSource,
  type TimeOrderedIdOptions,
} from './ids.ts'
export { deepFreeze, isDeepFrozen } from './freeze.ts'
export { linkAbort, untilAborted } from './abort.ts'
export { redactSecrets, secretForms } from './redact.ts'
export { parsePartialJson, PartialJson } from './partial-json.ts'
