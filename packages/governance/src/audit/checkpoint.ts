import { decodeBase64, encodeBase64, sha256, SkeinError } from '@skein/base'
import {
  type PublicJwk,
  rawEd25519,
  type SigningKey,
  toVerifyKey,
  type VerifyKey,
} from '../keys/keys.ts'
import type { TreeHash } from './merkle.ts'

/**
 * The content of a checkpoint: the name of a log, its number of entries and its root hash (C2SP
 * tlog-checkpoint).
 */
export interface TreeHead {
  readonly origin: string
  readonly size: number
  readonly root: TreeHash
}

/** A parsed checkpoint. */
export interface ParsedCheckpoint extends TreeHead {
  readonly note: SignedNote
}

const utf8 = new TextEncoder()

/** Signs a tree head. Returns the checkpoint as text, in the format that other transparency tools read. */
export async function signCheckpoint(head: TreeHead, key: SigningKey): Promise<string> {
  const text = `${head.origin}\n${head.size}\n${encodeBase64(head.root)}\n`
  return formatNote({ text, signatures: [await signNote(text, head.origin, key)] })
}

/**
 * Parses a checkpoint without verifying its signatures. Returns undefined for text that is not a
 * checkpoint.
 */
export function parseCheckpoint(checkpoint: string): ParsedCheckpoint | undefined {
  const note = parseNote(checkpoint)
  if (note === undefined) return undefined
  const [origin, size, root] = note.text.split('\n')
  // At most 15 digits, because larger numbers are not exact. No leading zero, so that each size is
  // written in one way only.
  if (!origin || size === undefined || !/^(?:0|[1-9]\d{0,14})$/.test(size)) return undefined
  try {
    const hash = decodeBase64(root ?? '')
    return hash.length === 32 ? { note, origin, size: Number(size), root: hash } : undefined
  } catch {
    return undefined // The root is not base64.
  }
}

/**
 * Returns the tree head of a checkpoint if one of the log's keys signed it under the log's name;
 * undefined otherwise.
 */
export async function verifyCheckpoint(
  checkpoint: string,
  keys: readonly (PublicJwk | VerifyKey)[],
): Promise<ParsedCheckpoint | undefined> {
  const parsed = parseCheckpoint(checkpoint)
  if (parsed === undefined) return undefined
  for (const key of keys.map(toVerifyKey)) {
    if (key.alg === 'Ed25519' && (await isSignedBy(parsed.note, parsed.origin, key))) return parsed
  }
  return undefined
}

/** A witness: an independent party that adds its own signature to checkpoints. */
export interface Witness {
  readonly name: string
  readonly key: PublicJwk | VerifyKey
}

/**
 * Adds a witness's cosignature (C2SP tlog-cosignature v1), which states that the witness saw this tree
 * head at this time.
 */
export async function cosignCheckpoint(
  checkpoint: string,
  witness: { readonly name: string; readonly key: SigningKey; readonly time: number },
): Promise<string> {
  const { note } = parseCheckpoint(checkpoint)!
  const seconds = Math.floor(witness.time / 1000)
  const signature = await witness.key.sign(cosigned(note.text, seconds))
  const bytes = new Uint8Array(8 + signature.length)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(seconds))
  bytes.set(signature, 8)
  const keyId = noteKeyId(witness.name, witness.key.jwk, NoteType.Cosignature)
  const added: NoteSignature = { name: witness.name, keyId, bytes }
  return formatNote({ ...note, signatures: [...note.signatures, added] })
}

/** Counts how many of these witnesses signed the checkpoint; each name counts once. */
export async function countWitnesses(
  checkpoint: ParsedCheckpoint,
  witnesses: readonly Witness[],
): Promise<number> {
  const names = new Set<string>()
  for (const { name, key } of witnesses) {
    if (await isCosignedBy(checkpoint.note, name, toVerifyKey(key))) names.add(name)
  }
  return names.size
}

async function isCosignedBy(note: SignedNote, name: string, key: VerifyKey): Promise<boolean> {
  const keyId = noteKeyId(name, key.jwk, NoteType.Cosignature)
  for (const { bytes, ...signature } of note.signatures) {
    if (signature.name !== name || !isSameId(signature.keyId, keyId)) continue
    if (bytes.length !== 72) continue
    const seconds = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0))
    if (await key.verify(cosigned(note.text, seconds), bytes.slice(8))) return true
  }
  return false
}

function cosigned(text: string, seconds: number): Uint8Array {
  return utf8.encode(`cosignature/v1\ntime ${seconds}\n${text}`)
}

/** One signature line of a signed note: the signer's name, a short key id, and the signature. */
interface NoteSignature {
  readonly name: string
  /** The first four bytes of the key's id. They help to find the key but prove nothing. */
  readonly keyId: Uint8Array
  readonly bytes: Uint8Array
}

/** A text with signatures under it (C2SP signed-note). */
interface SignedNote {
  /** The signed text, which ends with a newline. */
  readonly text: string
  readonly signatures: readonly NoteSignature[]
}

/** Signature types of C2SP signed-note: plain Ed25519, and a witness's cosignature with a time. */
const NoteType = { Ed25519: 0x01, Cosignature: 0x04 } as const
type NoteType = (typeof NoteType)[keyof typeof NoteType]

const MAX_NOTE_CHARACTERS = 65_536
const MAX_SIGNATURES = 64

/** Parses a signed note; undefined for any other text. */
export function parseNote(note: string): SignedNote | undefined {
  if (note.length > MAX_NOTE_CHARACTERS || !isPlainText(note) || !note.endsWith('\n')) return
  // The last blank line separates text and signatures, because the text itself may contain blank lines.
  const separator = note.lastIndexOf('\n\n')
  if (separator < 0) return undefined
  const lines = note.slice(separator + 2, -1).split('\n')
  if (lines.length > MAX_SIGNATURES) return undefined
  const signatures = lines.map(parseSignature)
  if (!signatures.every((signature) => signature !== undefined)) return undefined
  return { text: note.slice(0, separator + 1), signatures }
}

/** Converts a note to its text form. */
function formatNote({ text, signatures }: SignedNote): string {
  const lines = signatures.map(
    ({ name, keyId, bytes }) => `— ${name} ${encodeBase64(new Uint8Array([...keyId, ...bytes]))}\n`,
  )
  return `${text}\n${lines.join('')}`
}

/**
 * Computes the key id of a signature line: the first four bytes of SHA-256 over name, type and public
 * key.
 */
function noteKeyId(name: string, jwk: PublicJwk, type: NoteType): Uint8Array {
  const label = utf8.encode(`${name}\n`)
  const input = new Uint8Array(label.length + 33)
  input.set(label)
  input[label.length] = type
  input.set(rawEd25519(jwk), label.length + 1)
  return sha256(input).slice(0, 4)
}

/** Signs a text as `name` with an Ed25519 key. */
async function signNote(text: string, name: string, key: SigningKey): Promise<NoteSignature> {
  // Spaces and "+" are separators in the formats that contain names.
  if (name === '' || /[\s+]/u.test(name))
    throw new SkeinError(`"${name}" cannot be the name of a log or a witness.`, {
      code: 'NOTE_NAME_INVALID',
      hint: 'Use a name without spaces and "+", such as "example.com/audit".',
    })
  const bytes = await key.sign(utf8.encode(text))
  return { name, keyId: noteKeyId(name, key.jwk, NoteType.Ed25519), bytes }
}

/** True when `key` signed the note under `name`, as a log does (not as a witness). */
export async function isSignedBy(note: SignedNote, name: string, key: VerifyKey): Promise<boolean> {
  const keyId = noteKeyId(name, key.jwk, NoteType.Ed25519)
  for (const signature of note.signatures) {
    if (signature.name !== name || !isSameId(signature.keyId, keyId)) continue
    if (await key.verify(utf8.encode(note.text), signature.bytes)) return true
  }
  return false
}

/** Converts a public key to the text form that other tools read: `name+keyid+base64`. */
export function encodeNoteKey(name: string, jwk: PublicJwk): string {
  const id = Array.from(noteKeyId(name, jwk, NoteType.Ed25519), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
  return `${name}+${id}+${encodeBase64(new Uint8Array([NoteType.Ed25519, ...rawEd25519(jwk)]))}`
}

/** True if both key ids have the same bytes. */
function isSameId(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

function parseSignature(line: string): NoteSignature | undefined {
  const match = /^— ([^\s+]+) ([A-Za-z0-9+/=]+)$/u.exec(line)
  if (match === null) return undefined
  try {
    const bytes = decodeBase64(match[2]!)
    if (bytes.length < 5) return undefined
    return { name: match[1]!, keyId: bytes.slice(0, 4), bytes: bytes.slice(4) }
  } catch {
    return undefined // Not base64: not a signature line.
  }
}

/** True if the text has no control characters except newline, and no broken UTF-16. */
function isPlainText(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return !/[\u0000-\u0009\u000b-\u001f]|[\ud800-\udfff]/u.test(text)
}
