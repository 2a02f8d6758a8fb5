import { crc32 } from 'node:zlib'

/**
 * Texts that are frequent in events and audit lines. A text is packed as its place in this list, so places never
 * change and nothing is removed: new texts are added at the end, up to `MAX_WORDS`. The first 26 take one byte, the
 * others two.
 */
export const words: readonly string[] = [
  '","turnId":"',
  '","stepId":"',
  '{"type":"message_added","at":"',
  '","toolCallId":"',
  '","logId":"',
  '{"identity":{"agent_id":"',
  '","uaicp:actor":{"id":"',
  '"}},"metadata":{"uaicp:attempt":',
  '","type":"system',
  ',"uaicp:data":{"from":"',
  '"},"uaicp:event":"transition","uaicp:seq":',
  '},"outcome":"pending","request_id":"',
  '","trace_id":"',
  '","uaicp_version":"0.3"}',
  '","control_class":"human-supervised","owner_id":"',
  '","skein:thread":"',
  '{"type":"model_requested","at":"',
  '{"type":"model_answered","at":"',
  '{"type":"step_start","at":"',
  '{"type":"step_end","at":"',
  '","side":"a","attempt":',
  '","timestamp":"',
  ',"usage":{"input_tokens":',
  ',"output_tokens":',
  '","message":{"id":"',
  '","type":"user","content":[{"type":"text","text":"',
  '","type":"assistant","content":[',
  '{"type":"text","text":"',
  '"}],"timestamp":"',
  '"}},"timestamp":"',
  '"toolCalls":[{"toolCallId":"',
  '","toolName":"',
  '","arguments":{',
  '"metadata":{"',
  '":{"api":"',
  '","model":"',
  '","id":"',
  '"},"modelName":"',
  '","providerName":"',
  '","finishReason":"',
  ',"finishReason":"',
  'end_turn"',
  'tool_use"',
  '","side":"a","agentId":"',
  '","side":"b","agentId":"',
  '"},"side":"a","queueId":"',
  '"},"side":"b","queueId":"',
  ',"side":"a","prompt":"',
  ',"side":"b","prompt":"',
  '","provider":"',
  '","frame":"',
  '","previous":{"logId":"',
  '","keeps":',
  '},"adds":["',
  '.results"]}',
  '","durationMs":',
  ',"messageId":"',
  '","firstTokenMs":',
  ',"firstTokenMs":',
  '","attempt":',
  ',"epoch":',
  '{"type":"status_changed","at":"',
  '","status":"running"}',
  '","status":"idle"}',
  '{"type":"gate_decided","gate":"pre_deliver","decision":"delivered","at":"',
  '{"type":"gate_decided","gate":"pre_action","decision":"allow","turnId":"',
  '{"type":"gate_decided","gate":"',
  '","decision":"',
  '{"type":"tool_execution_start","at":"',
  '{"type":"tool_execution_end","at":"',
  '","outcome":"success","result":',
  '","outcome":"failed","result":',
  '{"type":"evidence_added","evidenceId":"',
  '","kind":"tool_result","summary":"tool_result of ',
  '","data":{"hash":"sha256:',
  '{"type":"turn_start","at":"',
  '","agentId":"',
  '","side":"a"}',
  '","side":"b"}',
  '{"type":"turn_end","at":"',
  '","outcome":"completed","reason":"response"',
  '{"type":"session_start","at":"',
  '","sessionId":"',
  '","agent":"',
  '","definitions":"',
  '{"type":"session_end","at":"',
  ',"message":"',
  '{"type":"message_queued","at":"',
  '","queueId":"',
  '","role":"user","message":{"id":"',
  '"},"resumes":true}',
  '},"outcome":"success","request_id":"',
  '},"outcome":"failed","request_id":"',
  '","state":"intake","timestamp":"',
  '","state":"plan","timestamp":"',
  '","state":"execute","timestamp":"',
  '","state":"verify","timestamp":"',
  '","state":"deliver","timestamp":"',
  '","type":"agent',
  ',"uaicp:data":{"depth":',
  ',"governor":"skein","input_hash":"sha256:',
  '","limits":{"ceiling":"',
  '","depth":',
  '},"policy_hash":"sha256:',
  '","task":"session"},"uaicp:event":"opened","uaicp:seq":',
  ',"uaicp:data":{"args_hash":"sha256:',
  '","call":"',
  '","effect":"none","evidence":{"hash":"sha256:',
  '","type":"tool_result"},"risk":"',
  '","tool":"',
  '"},"uaicp:event":"call_settled","uaicp:seq":',
  '"},"uaicp:event":"',
  '","uaicp:seq":',
  ',"uaicp:data":{"evidence":["',
  '"],"hash":"sha256:',
  '","reports":[]},"uaicp:event":"delivered","uaicp:seq":',
  '{"type":"effect_',
  '{"type":"interrupt_opened","at":"',
  '{"type":"interrupt_answered","at":"',
  '{"type":"value_set","at":"',
  '{"type":"file_written","at":"',
  '{"type":"subagent_',
  '{"type":"usage_recorded","at":"',
  '{"type":"message_updated","at":"',
  '{"type":"inference_recorded","at":"',
  '","mediaType":"',
  '","sizeBytes":',
  '","hash":"',
  '","interruptId":"',
  '","at":"',
  'read_only',
  'write_low_risk',
  'write_high_risk',
  'openai-chat',
  'sha256:',
]

const [UUID, TIME, HASH, HALF_HASH, LONG, FIRST] = [1, 2, 3, 4, 5, 6]
const SHORT = 32 - FIRST
/** The largest number of words. */
export const MAX_WORDS: number = SHORT + 256

const codes = new Map(
  words.map((word, place) => [
    word,
    place < SHORT ? String.fromCharCode(FIRST + place) : String.fromCharCode(LONG, place - SHORT),
  ]),
)

const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const AT = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
const longestFirst = words.toSorted((a, b) => b.length - a.length)
const quoted = longestFirst.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
const PACKABLE = new RegExp([...quoted, ID, AT, '[0-9a-f]{64}', '[0-9a-f]{32}'].join('|'), 'g')
const PACKED = /\x01([^]{16})|\x02([^]{6})|\x03([^]{32})|\x04([^]{16})|\x05([^])|([\x06-\x1f])/g
/** Bytes that mark something packed. JSON never contains them. */
const CODE = /[\0-\x1f]/
const NOT_PLAIN = /[^\x20-\x7f]/
const NOT_ASCII = /[^\0-\x7f]/

/**
 * Packs a JSON text into fewer bytes: frequent texts, ids, times and hashes. Returns the text itself if it cannot be
 * packed. `unpackText` returns exactly the same text again.
 */
export function packText(text: string): string | Uint8Array {
  if (text.length < 32) return text
  const isPlain = !NOT_PLAIN.test(text)
  if (!isPlain && CODE.test(text)) return text
  // Each character of this text is a byte.
  const bytes = isPlain ? text : Buffer.from(text).toString('latin1')
  return Buffer.from(bytes.replace(PACKABLE, pack), 'latin1')
}

/** Unpacks what `packText` has returned. */
export function unpackText(packed: string | Uint8Array): string {
  if (typeof packed === 'string') return packed
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.length).toString('latin1')
  const text = bytes.replace(PACKED, unpack)
  return NOT_ASCII.test(text) ? Buffer.from(text, 'latin1').toString() : text
}

function pack(found: string): string {
  const code = codes.get(found)
  if (code !== undefined) return code
  switch (found.length) {
    case 36:
      return packId(found)
    case 24:
      return packTime(found)
    case 64:
      return String.fromCharCode(HASH) + Buffer.from(found, 'hex').toString('latin1')
    default:
      return String.fromCharCode(HALF_HASH) + Buffer.from(found, 'hex').toString('latin1')
  }
}

const ids = new Map<string, string>()

/** The ids of a turn and of its steps are in many events. */
function packId(id: string): string {
  const known = ids.get(id)
  if (known !== undefined) return known
  const code =
    String.fromCharCode(UUID) + Buffer.from(id.replaceAll('-', ''), 'hex').toString('latin1')
  if (ids.size >= 256) ids.clear()
  ids.set(id, code)
  return code
}

let lastTime = { text: '', code: '' }

/** Events that are written together mostly have the same time. */
function packTime(text: string): string {
  if (lastTime.text === text) return lastTime.code
  const ms = Date.parse(text)
  // Not every text of this form is a time, e.g. of February 30.
  if (!(ms >= 0) || new Date(ms).toISOString() !== text) return text
  const bytes = Buffer.allocUnsafe(6)
  bytes.writeUIntBE(ms, 0, 6)
  const code = String.fromCharCode(TIME) + bytes.toString('latin1')
  lastTime = { text, code }
  return code
}

function unpack(
  _found: string,
  id: string | undefined,
  time: string | undefined,
  hash: string | undefined,
  half: string | undefined,
  long: string | undefined,
  short: string | undefined,
): string {
  if (short !== undefined) return words[short.charCodeAt(0) - FIRST] ?? ''
  if (long !== undefined) return words[long.charCodeAt(0) + SHORT] ?? ''
  if (time !== undefined)
    return new Date(Buffer.from(time, 'latin1').readUIntBE(0, 6)).toISOString()
  const hex = Buffer.from(id ?? hash ?? half ?? '', 'latin1').toString('hex')
  if (id === undefined) return hex
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/**
 * Returns the checksum of a row: CRC-32 of its content, which also depends on the key of the row, so that
 * rows that changed places are noticed. It guards against damage, not against intent; tamper evidence is the
 * audit log.
 */
export function rowSum(key: string, number: number, content: string | Uint8Array): number {
  // A whole log has one key, so its part of the sum is computed once.
  if (key !== last.key) last = { key, sum: crc32(key) }
  return crc32(content, (last.sum ^ number) >>> 0)
}

let last = { key: '', sum: 0 }
