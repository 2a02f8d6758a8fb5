import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { decodeBase64Url, encodeBase64Url } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import { createRedactor } from './redactor.ts'
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { Store } from '../store/store.ts'

/** Encrypts stored secrets and removes secrets from texts. */
export interface Vault {
  /** Encrypts a secret. The result can be decrypted only with the same `context` (thread and variable). */
  seal(secret: string, context: string): string
  open(sealed: string, context: string): string
  /**
   * Creates a redactor that removes these secrets from texts and JSON, also when they are encoded as base64
   * or hex, URL-encoded or JSON-escaped.
   */
  redactor(secrets: Iterable<string>): Redactor
}

/** Removes secrets from texts, JSON and streams. */
export interface Redactor {
  text(text: string): string
  /** Returns a copy with every string redacted; the same object when nothing was found. */
  json<T>(value: T): T
  /** Redacts a stream: text that may be the beginning of a secret is held back until more has arrived. */
  stream(): { push(text: string): string; end(): string }
}

/**
 * Returns the context with which a variable is encrypted, so that it can be decrypted only for this name in
 * this thread.
 */
export function envContext(threadId: string, name: string): string {
  return `${threadId}/${name}`
}

const FORMAT = 'v1.'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

interface AesVaultOptions {
  /** The AES key, 32 bytes. */
  readonly key: Uint8Array
  /**
   * Generates nonces; it must never return the same nonce twice. Default: the platform's secure generator.
   */
  readonly random?: (size: number) => Uint8Array
}

/**
 * Creates a vault that encrypts with AES-256-GCM. The sealed form is `v1.` and then nonce, tag and ciphertext
 * in base64url.
 */
export function aesVault({ key, random = randomBytes }: AesVaultOptions): Vault {
  if (key.length !== KEY_BYTES) {
    throw new RuntimeError(`The vault's key has ${key.length} bytes.`, {
      code: 'ENV_INVALID',
      hint: `It must have ${KEY_BYTES}.`,
    })
  }
  const secretKey = Uint8Array.from(key)
  return {
    seal(secret, context) {
      // Encoding to UTF-8 would silently replace a lone surrogate.
      if (/\p{Surrogate}/u.test(secret))
        throw new RuntimeError(`The value of ${context} is not well-formed text.`, {
          code: 'ENV_INVALID',
          hint: 'Encode bytes as base64 before they are stored.',
        })
      const nonce = random(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', secretKey, nonce)
      cipher.setAAD(Buffer.from(context))
      const sealed = [cipher.update(secret, 'utf8'), cipher.final()]
      return FORMAT + encodeBase64Url(Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]))
    },
    open(sealed, context) {
      try {
        return open(sealed, context, secretKey)
      } catch {
        // The cause is left out, because the error must not reveal anything about the key or the text.
        throw unopenable(context)
      }
    },
    redactor: createRedactor,
  }
}

function open(sealed: string, context: string, key: Uint8Array): string {
  if (!sealed.startsWith(FORMAT)) throw unopenable(context)
  const bytes = decodeBase64Url(sealed.slice(FORMAT.length))
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw unopenable(context)
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  const parts = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]
  return Buffer.concat(parts).toString('utf8')
}

function unopenable(context: string): RuntimeError {
  return new RuntimeError(`The sealed value of ${context} cannot be opened.`, {
    code: 'ENV_INVALID',
    hint: 'It was sealed with another key or for another place, or it was changed. Set it again.',
  })
}

/**
 * Reads the key that encrypts secrets: 32 bytes in a file that only its owner may read. The file is created
 * at the first start.
 */
export function openVaultKey(path: string): Uint8Array {
  const key = readKey(path) ?? createKey(path)
  if (key.length === 32) return key
  throw invalid(path, 'It does not hold 32 bytes in base64.')
}

function readKey(path: string): Uint8Array | undefined {
  try {
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw invalid(path, 'Others can read it.')
    return Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Creates the key file. It is written completely and then linked to its name, so that two processes that
 * start at the same time use one key.
 */
function createKey(path: string): Uint8Array {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  const file = openSync(temporary, 'wx', 0o600)
  writeSync(file, `${randomBytes(32).toString('base64')}\n`)
  fsyncSync(file)
  closeSync(file)
  try {
    linkSync(temporary, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    unlinkSync(temporary)
  }
  return readKey(path)!
}

function invalid(path: string, why: string): RuntimeError {
  return new RuntimeError(`The key file ${path} cannot be used. ${why}`, {
    code: 'KEY_INVALID',
    hint: 'Put the key back from a backup (mode 600). Without it the stored secrets cannot be opened.',
  })
}

const SETTING = 'vault_key'

/** Reads or creates a key in the store itself, for memory stores and tests, which have no folder for it. */
export async function storedVaultKey(store: Store): Promise<Uint8Array> {
  const known = (await store.setting(SETTING))?.['key']
  if (typeof known === 'string') return Buffer.from(known, 'base64')
  const key = randomBytes(32)
  await store.setSetting(SETTING, { key: key.toString('base64') })
  return key
}
