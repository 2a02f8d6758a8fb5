import { decodeBase64, encodeBase64 } from '@skein/base'
import { toVerifyKey } from '../keys/keys.ts'
import type { PublicJwk, SigningKey, VerifyKey } from '../keys/keys.ts'
import {
  formatNote,
  isSameId,
  isSignedBy,
  noteKeyId,
  NoteType,
  parseNote,
  signNote,
} from './signed-note.ts'
import type { NoteSignature, SignedNote } from './signed-note.ts'
import type { Hash } from './merkle.ts'

/** What a checkpoint says: this log had this many entries and this root (C2SP tlog-checkpoint). */
export interface TreeHead {
  readonly origin: string
  readonly size: number
  readonly root: Hash
}

/** A checkpoint taken apart. */
export interface ParsedCheckpoint extends TreeHead {
  readonly note: SignedNote
}

const utf8 = new TextEncoder()

/** Signs a tree head. The result is the text that other transparency tools read. */
export async function signCheckpoint(head: TreeHead, key: SigningKey): Promise<string> {
  const text = `${head.origin}\n${head.size}\n${encodeBase64(head.root)}\n`
  return formatNote({ text, signatures: [await signNote(text, head.origin, key)] })
}

/** The tree head in a checkpoint, or undefined for text that is not one. Nothing is verified. */
export function parseCheckpoint(checkpoint: string): ParsedCheckpoint | undefined {
  const note = parseNote(checkpoint)
  if (note === undefined) return undefined
  const [origin, size, root] = note.text.split('\n')
  // At most 15 digits: beyond that a number is not exact. A leading zero would give a second text.
  if (!origin || size === undefined || !/^(?:0|[1-9]\d{0,14})$/.test(size)) return undefined
  try {
    const hash = decodeBase64(root ?? '')
    return hash.length === 32 ? { note, origin, size: Number(size), root: hash } : undefined
  } catch {
    return undefined // The root is not base64.
  }
}

/** The checkpoint's tree head if one of the log's keys signed it under the log's own name. */
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

/** Who cosigns checkpoints, by name and key. */
export interface Witness {
  readonly name: string
  readonly key: PublicJwk | VerifyKey
}

/** Adds a witness's cosignature (C2SP tlog-cosignature v1): "I saw this head at this time". */
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

/** How many of these witnesses cosigned the checkpoint; each counts once. */
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
