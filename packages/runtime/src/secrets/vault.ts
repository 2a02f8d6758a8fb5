import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { decodeBase64Url, encodeBase64Url } from '@skein/base'
import { createRedactor } from './redactor.ts'
import { RuntimeError } from '../contract/error.ts'

/** Encrypts stored secrets and removes secrets from texts. */
export interface Vault {
  /** The ids of the keys: first the key that encrypts, then older keys that only decrypt. */
  readonly keyIds?: readonly string[]
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
 * Returns the context with which a variable is encrypted: it can be decrypted only as a variable of
 * this name in this thread.
 */
export function envContext(threadId: string, name: string): string {
  return `${threadId}/${name}`
}

const FORMAT = 'v2.'

/** The format of values that were encrypted before keys had ids. To decrypt such a value, every key is tried. */
const WITHOUT_ID = 'v1.'

/** The length of a key of AES-256. */
export const KEY_BYTES = 32

const NONCE_BYTES = 12

const TAG_BYTES = 16

interface AesVaultOptions {
  /** The AES key, 32 bytes. */
  readonly key: Uint8Array
  /** Keys that were used earlier. They only decrypt what was encrypted with them. */
  readonly oldKeys?: readonly Uint8Array[]
  /**
   * Generates nonces; it must never return the same nonce twice. Default: the platform's secure generator.
   */
  readonly random?: (size: number) => Uint8Array
}

/**
 * Creates a vault that encrypts with AES-256-GCM. An encrypted value is `v2.`, the id of the key, a
 * dot, and then nonce, tag and ciphertext in base64url.
 */
export function aesVault({ key, oldKeys = [], random = randomBytes }: AesVaultOptions): Vault {
  for (const one of [key, ...oldKeys])
    if (one.length !== KEY_BYTES)
      throw new RuntimeError(`The vault's key has ${one.length} bytes.`, {
        code: 'ENV_INVALID',
        hint: `It must have ${KEY_BYTES}.`,
      })
  const secretKey = Uint8Array.from(key)
  const keys = new Map(
    [secretKey, ...oldKeys.map((old) => Uint8Array.from(old))].map((one) => [keyId(one), one]),
  )
  const ownId = keyId(secretKey)
  return {
    keyIds: [...keys.keys()],
    seal(secret, context) {
      // Encoding to UTF-8 would silently replace a lone surrogate.
      if (/[\ud800-\udfff]/u.test(secret))
        throw new RuntimeError(`The value of ${context} is not well-formed text.`, {
          code: 'ENV_INVALID',
          hint: 'Encode bytes as base64 before they are stored.',
        })
      const nonce = random(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', secretKey, nonce)
      cipher.setAAD(Buffer.from(context))
      const parts = [cipher.update(secret, 'utf8'), cipher.final()]
      const bytes = Buffer.concat([nonce, cipher.getAuthTag(), ...parts])
      return `${FORMAT}${ownId}.${encodeBase64Url(bytes)}`
    },
    open(sealed, context) {
      try {
        return open(sealed, context, keys)
      } catch {
        // The cause is left out, because the error must not reveal anything about the key or the text.
        throw unopenable(context)
      }
    },
    redactor: createRedactor,
  }
}

/**
 * Returns the id of a key. The id is stored with each value that the key encrypted, and reveals nothing about the key.
 */
function keyId(key: Uint8Array): string {
  return createHmac('sha256', key).update('skein key id').digest('hex').slice(0, 8)
}

function open(sealed: string, context: string, keys: ReadonlyMap<string, Uint8Array>): string {
  if (sealed.startsWith(WITHOUT_ID)) {
    for (const key of keys.values())
      try {
        return openWith(key, sealed.slice(WITHOUT_ID.length), context)
      } catch {
        // The value was encrypted with another key, or changed since. If no key fits, the error below is thrown.
      }
    throw unopenable(context)
  }
  const [, id = '', body = ''] = /^v2\.([0-9a-f]{8})\.([\w-]+)$/.exec(sealed) ?? []
  const key = keys.get(id)
  if (!key) throw unopenable(context)
  return openWith(key, body, context)
}

function openWith(key: Uint8Array, body: string, context: string): string {
  const bytes = decodeBase64Url(body)
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
    hint: 'It was sealed with another key or for another place, or it was changed. Pass that key among `oldSecretKeys`, or set the value again.',
  })
}
