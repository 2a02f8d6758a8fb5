import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { decodeBase64Url, encodeBase64Url } from '@skein/base'
import { RuntimeError } from '../error.ts'
import { createRedactor } from './redactor.ts'

/** Seals secrets at rest and keeps them out of texts. */
export interface Vault {
  /** `context` (thread and variable) is bound to the sealed text: it opens nowhere else. */
  seal(secret: string, context: string): string
  open(sealed: string, context: string): string
  /** A redactor for texts and JSON of a thread with these secrets, also in base64 and URL-encoded. */
  redactor(secrets: Iterable<string>): Redactor
}

export interface Redactor {
  text(text: string): string
  /** A copy with every string redacted; the same object when nothing was found. */
  json<T>(value: T): T
  /** For streams: holds back what may be the beginning of a secret. */
  stream(): { push(text: string): string; end(): string }
}

/** The context by which a variable of a thread is sealed: it opens for this name in this thread alone. */
export function envContext(threadId: string, name: string): string {
  return `${threadId}/${name}`
}

const FORMAT = 'v1.'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

interface AesVaultOptions {
  /** 32 bytes. */
  readonly key: Uint8Array
  /** Where nonces come from; one must never come twice. Default: the platform's secure generator. */
  readonly random?: (size: number) => Uint8Array
}

/** Seals with AES-256-GCM: `v1.` and then nonce, tag and ciphertext in base64url. */
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
      // UTF-8 would change a lone surrogate in silence.
      if (/\p{Surrogate}/u.test(secret)) throw notText(context)
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
        // The cause is left out: nothing of the key or the text may travel with the error.
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

function notText(context: string): RuntimeError {
  return new RuntimeError(`The value of ${context} is not well-formed text.`, {
    code: 'ENV_INVALID',
    hint: 'Encode bytes as base64 before they are stored.',
  })
}
