import { crc32 } from 'node:zlib'

/**
 * Texts that are frequent in events and audit lines. Packing replaces such a text by its place in this
 * list, so no place may ever change: nothing is removed, and new texts are added at the end, up to
 * `MAX_WORDS`. The first 26 texts take one byte, the others two.
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

const [UUID, TIME, HASH, HALF_HASH, LONG, FIRST] = [1, 2, 3, 4, 5, 6] as const
const SHORT = 32 - FIRST
/** The largest number of words. */
export const MAX_WORDS: number = SHORT + 256
const wordBytes: readonly Uint8Array[] = words.map((word) => Buffer.from(word))

/** `KEY`: words are looked up by a hash of their first 7 bytes; every word is at least that long. */
const [KEY, BUCKETS] = [7, 1024] as const
/** For each hash, the places in `words` of the words whose first bytes have that hash, the longest word first. */
const buckets: readonly number[][] = Array.from({ length: BUCKETS }, () => [])
const longestFirst = [...words.keys()].sort((a, b) => words[b]!.length - words[a]!.length)
for (const place of longestFirst) buckets[bucketOf(wordBytes[place]!, 0)]!.push(place)

/** Flags in `kinds`, which say what may begin with a byte: a word, hexadecimal digits, or a code of packed text. */
const [WORD, HEX, CODE] = [1, 2, 4] as const
const kinds = new Uint8Array(256).fill(CODE, 0, 32)
const HEX_DIGITS: Uint8Array = Buffer.from('0123456789abcdef')
/** The value of each hexadecimal digit. */
const nibbles = new Uint8Array(256)
for (const [value, digit] of HEX_DIGITS.entries()) nibbles[digit] = value
for (const digit of HEX_DIGITS) kinds[digit]! |= HEX
for (const [first] of wordBytes) kinds[first!]! |= WORD

const [DASH, T, ID_LENGTH, TIME_LENGTH] = [45, 84, 36, 24] as const

// Buffers that are used again for every short text. A longer text gets buffers of its own, which are freed afterwards.
const KEPT = 1 << 16
const kept = { text: Buffer.alloc(KEPT), packed: Buffer.alloc(KEPT) }

/**
 * Packs a JSON text into fewer bytes, by encoding frequent texts, ids, times and hashes. Returns the
 * text itself if it cannot be packed. `unpackText` returns exactly the original text.
 */
export function packText(text: string): string | Uint8Array {
  if (text.length < 32) return text
  const most = text.length * 3 // a character takes at most three bytes in UTF-8
  const bytes = most <= KEPT ? kept.text : Buffer.allocUnsafe(most)
  const length = bytes.write(text)
  const target = most <= KEPT ? kept.packed : Buffer.allocUnsafe(length)
  let size = 0
  for (let at = 0; at < length;) {
    const kind = kinds[bytes[at]!]!
    if (kind === CODE) return text // JSON never contains such a byte
    const place = (kind & WORD) === 0 ? -1 : wordAt(bytes, at, length)
    if (place >= 0) {
      if (place >= SHORT) target[size++] = LONG
      target[size++] = place < SHORT ? FIRST + place : place - SHORT
      at += wordBytes[place]!.length
      continue
    }
    const run = (kind & HEX) === 0 ? 1 : hexRun(bytes, at, length)
    const isHash = run >= 32
    const ms = run === 4 ? timeAt(bytes, at, length) : undefined
    if (isHash || (run === 8 && isId(bytes, at, length))) {
      target[size++] = run === 64 ? HASH : isHash ? HALF_HASH : UUID
      const end = at + (run === 64 ? 64 : isHash ? 32 : ID_LENGTH)
      for (; at < end; at += 2) {
        if (bytes[at] === DASH) at++
        target[size++] = (nibbles[bytes[at]!]! << 4) | nibbles[bytes[at + 1]!]!
      }
    } else if (ms !== undefined) {
      target[size] = TIME
      target.writeUIntBE(ms, size + 1, 6)
      size += 7
      at += TIME_LENGTH
    } else for (const end = at + run; at < end;) target[size++] = bytes[at++]!
  }
  return Buffer.from(target.subarray(0, size)) // a copy
}

function bucketOf(bytes: Uint8Array, at: number): number {
  let hash = 0
  for (let place = at; place < at + KEY; place++) hash = (hash * 31 + bytes[place]!) | 0
  return hash & (BUCKETS - 1)
}

/** Returns the place in `words` of the longest word that begins here, or -1. */
function wordAt(bytes: Uint8Array, at: number, end: number): number {
  if (at + KEY > end) return -1
  next: for (const place of buckets[bucketOf(bytes, at)]!) {
    const word = wordBytes[place]!
    if (at + word.length > end) continue
    for (let index = 0; index < word.length; index++)
      if (bytes[at + index] !== word[index]) continue next
    return place
  }
  return -1
}

/** Returns how many hexadecimal digits begin here, at most 64. */
function hexRun(bytes: Uint8Array, at: number, end: number): number {
  const last = Math.min(at + 64, end)
  let place = at
  while (place < last && (kinds[bytes[place]!]! & HEX) !== 0) place++
  return place - at
}

/** Whether an id (UUID) begins here. The caller has checked its first eight digits. */
function isId(bytes: Uint8Array, at: number, end: number): boolean {
  const has = (from: number, to: number): boolean =>
    bytes[at + from] === DASH && hexRun(bytes, at + from + 1, at + to) === to - from - 1
  return at + ID_LENGTH <= end && has(8, 13) && has(13, 18) && has(18, 23) && has(23, 36)
}

/** Returns the time whose text begins here; undefined if the text is no valid time (e.g. February 30). */
function timeAt(bytes: Buffer, at: number, end: number): number | undefined {
  if (at + TIME_LENGTH > end || bytes[at + 4] !== DASH || bytes[at + 10] !== T) return undefined
  const text = bytes.toString('latin1', at, at + TIME_LENGTH)
  if (text === lastTime.text) return lastTime.ms
  const ms = Date.parse(text)
  if (!(ms >= 0) || new Date(ms).toISOString() !== text) return undefined
  lastTime = { ms, text }
  return ms
}

/** The last time that was packed or unpacked, and its text. */
let lastTime = { ms: NaN, text: '' }

/** Unpacks what `packText` has returned. */
export function unpackText(packed: string | Uint8Array): string {
  if (typeof packed === 'string') return packed
  let text = kept.text
  let size = 0
  let isAscii = true
  for (let at = 0; at < packed.length;) {
    if (size + 128 > text.length) {
      // 128 bytes are always enough: no word, id, time or hash is longer.
      const larger = Buffer.allocUnsafe(text.length * 2)
      text.copy(larger, 0, 0, size)
      text = larger
    }
    const code = packed[at++]!
    if (code >= 32) {
      text[size++] = code
      isAscii &&= code < 128
    } else if (code >= LONG) {
      const word = wordBytes[code === LONG ? packed[at++]! + SHORT : code - FIRST]
      if (word) for (let index = 0; index < word.length; index++) text[size++] = word[index]!
    } else if (code === TIME) {
      let ms = 0
      for (const end = at + 6; at < end;) ms = ms * 256 + packed[at++]!
      // Events that were written together mostly have the same time, so the text of the last time is kept.
      if (ms !== lastTime.ms) lastTime = { ms, text: new Date(ms).toISOString() }
      size += text.write(lastTime.text, size, 'latin1')
    } else {
      const count = code === HASH ? 32 : 16
      for (let index = 0; index < count; index++) {
        if (code === UUID && (index === 4 || index === 6 || index === 8 || index === 10))
          text[size++] = DASH
        const byte = packed[at++]!
        text[size++] = HEX_DIGITS[byte >> 4]!
        text[size++] = HEX_DIGITS[byte & 15]!
      }
    }
  }
  return text.toString(isAscii ? 'latin1' : 'utf8', 0, size)
}

/**
 * Returns the checksum of a row: CRC-32 of its content and of its key, so that exchanged rows are
 * noticed too. It detects damage, not intent; the audit log shows deliberate changes.
 */
export function rowSum(key: string, number: number, content: string | Uint8Array): number {
  // All events of a log have the same key, so the sum of the key is computed once.
  if (key !== last.key) last = { key, sum: crc32(key) }
  return crc32(content, (last.sum ^ number) >>> 0)
}

let last = { key: '', sum: 0 }
