import { createPrivateKey, randomBytes, randomUUID } from 'node:crypto'
import { chmod, link, lstat, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isPlainObject, sha256, type JsonObject } from '@skein/base'
import {
  thumbprint,
  toSigningKey,
  type PrivateJwk,
  type SigningKey,
} from '@skein/governance/approvals'
import { RuntimeError } from '../contract/error.ts'
import type { Store } from '../store/store.ts'

/**
 * The keys with which an installation signs. A program may also provide keys from a vault or a hardware
 * module.
 */
export interface GovernanceKeys {
  /** Signs approvals for the people who are authenticated here. */
  readonly approvals: SigningKey
  /** Signs the checkpoints of audit logs. */
  readonly log: SigningKey
}

/**
 * Opens keys for development, which are created at the first start. In a folder, each key is a file that only
 * its owner may read. In a store, the keys are stored next to the log that they sign, so a person who can
 * write to the store can forge the log.
 */
export async function openGovernanceKeys(
  where: { readonly folder: string } | { readonly store: Pick<Store, 'setting' | 'setSetting'> },
): Promise<GovernanceKeys> {
  if ('store' in where) {
    const { store } = where
    let setting = await store.setting(SETTING)
    if (!setting) {
      setting = { approvals: toSetting(newJwk()), log: toSetting(newJwk()) }
      await store.setSetting(SETTING, setting)
    }
    const place = `the setting ${SETTING}`
    return { approvals: toKey(setting['approvals'], place), log: toKey(setting['log'], place) }
  }
  await mkdir(where.folder, { recursive: true, mode: 0o700 })
  return {
    approvals: await openKeyFile(join(where.folder, 'approvals.key.json')),
    log: await openKeyFile(join(where.folder, 'audit-log.key.json')),
  }
}

/**
 * Creates keys in memory, for tests and for threads that need not last. The same seed gives the same keys.
 */
export function memoryGovernanceKeys({ seed }: { readonly seed?: string } = {}): GovernanceKeys {
  const jwkFor = (use: string): PrivateJwk =>
    toJwk(seed === undefined ? randomBytes(32) : sha256(`${use}\n${seed}`))
  return { approvals: toSigningKey(jwkFor('approvals')), log: toSigningKey(jwkFor('log')) }
}

const SETTING = 'governance_keys'

async function openKeyFile(path: string): Promise<SigningKey> {
  try {
    await checkPrivate(path)
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error
    await createKeyFile(path)
  }
  const text = await readFile(path, 'utf8')
  try {
    return toKey(JSON.parse(text), path)
  } catch (error) {
    // A SyntaxError is replaced, because its message quotes the text of the file, which is the key.
    throw error instanceof SyntaxError ? unusable(path) : error
  }
}

/** Throws for a key file that other users can read, because someone may have copied the key. */
async function checkPrivate(path: string): Promise<void> {
  const { mode } = await lstat(path)
  if (process.platform === 'win32' || (mode & 0o077) === 0) return
  const permissions = (mode & 0o777).toString(8).padStart(3, '0')
  throw new RuntimeError(`The key file ${path} can be read by others (mode ${permissions}).`, {
    code: 'KEY_INVALID',
    hint: `If no one has seen it: chmod 600 "${path}". Otherwise delete it, and a new key is made; approvals and checkpoints of the old one no longer count.`,
  })
}

/**
 * Creates a key file. It is written completely before it gets its name, so that two processes that start at
 * the same time use one key.
 */
async function createKeyFile(path: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(newJwk())}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await chmod(temporary, 0o600)
    await link(temporary, path)
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
    await checkPrivate(path)
  } finally {
    await unlink(temporary)
  }
}

function newJwk(): PrivateJwk {
  return toJwk(randomBytes(32))
}

/** The beginning of an Ed25519 key in PKCS #8 form; the 32 bytes of the key follow (RFC 8410 §7). */
const PKCS8 = '302e020100300506032b657004220420'

function toJwk(bytes: Uint8Array): PrivateJwk {
  const key = Buffer.concat([Buffer.from(PKCS8, 'hex'), bytes])
  const { crv, d, kty, x } = createPrivateKey({ key, format: 'der', type: 'pkcs8' }).export({
    format: 'jwk',
  })
  const bare = { kty: kty!, crv: crv!, x: x! }
  return { ...bare, alg: 'Ed25519', kid: thumbprint(bare), d: d! }
}

function toSetting({ kty, crv, x, alg, kid, d }: PrivateJwk): JsonObject {
  return { kty, crv, x, alg: alg!, kid: kid!, d }
}

function toKey(value: unknown, where: string): SigningKey {
  try {
    if (!isPlainObject(value)) throw unusable(where)
    return toSigningKey(value as unknown as PrivateJwk)
  } catch (error) {
    throw unusable(where, error)
  }
}

function unusable(where: string, cause?: unknown): RuntimeError {
  return new RuntimeError(`There is no usable Ed25519 key in ${where}.`, {
    code: 'KEY_INVALID',
    hint: 'Put the key back from a backup, or remove it and a new one is made.',
    cause,
  })
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
