import { randomBytes } from 'node:crypto'
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
import { dirname, join } from 'node:path'
import { KEY_BYTES, aesVault, type Vault } from './vault.ts'
import { RuntimeError } from '../contract/error.ts'
import type { Store } from '../store/store.ts'

/**
 * Reads the key that encrypts secrets: 32 bytes in a file that only its owner may read. The file is created
 * at the first start.
 */
export function openVaultKey(path: string): Uint8Array {
  const key = readKey(path) ?? createKey(path)
  if (key.length === 32) return key
  throw invalidKey(path, 'It does not hold 32 bytes in base64.')
}

function readKey(path: string): Uint8Array | undefined {
  try {
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw invalidKey(path, 'Others can read it.')
    return Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Creates the key file. The file is completed under a temporary name and then linked to its real name,
 * which fails if that exists, so that two processes that start at the same time use one key.
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

function invalidKey(path: string, why: string): RuntimeError {
  return new RuntimeError(`The key file ${path} cannot be used. ${why}`, {
    code: 'KEY_INVALID',
    hint: 'Put the key back from a backup (mode 600). Without it the stored secrets cannot be opened.',
  })
}

/** The options of a runtime about the keys that encrypt secrets. */
export interface SecretKeyOptions {
  /**
   * The key that encrypts stored secrets: 32 bytes, or their base64. Required if the store outlives the
   * process; keep the key in another place than the store.
   */
  readonly secretKey?: Uint8Array | string
  /** Earlier keys, newest first. Values that were encrypted with them can still be read. */
  readonly oldSecretKeys?: readonly (Uint8Array | string)[]
  /**
   * Creates a key and keeps it next to the data (as a file in the folder, or as a setting of the store). Anyone who
   * copies the data then has the key too: use this for development, or where the whole disk is protected.
   */
  readonly keepsSecretKeyWithData?: boolean
}

/**
 * Creates the vault of a runtime; throws `SECRET_KEY_MISSING` if the store outlives the process and there is no key.
 */
export async function openVault(
  { secretKey, oldSecretKeys = [], keepsSecretKeyWithData = false }: SecretKeyOptions,
  { folder, store }: { readonly folder: string | undefined; readonly store: Store },
): Promise<Vault> {
  const file = folder === undefined ? undefined : join(folder, 'keys', 'secrets.key')
  // A key that was kept next to the data earlier can still decrypt the values that were encrypted with it.
  const beside = file === undefined ? undefined : readKey(file)
  const oldKeys = [...oldSecretKeys.map(keyBytes), ...(beside ? [beside] : [])]
  if (secretKey !== undefined) return aesVault({ key: keyBytes(secretKey), oldKeys })
  if (!keepsSecretKeyWithData && !store.isTemporary)
    throw new RuntimeError('The store is lasting, and no `secretKey` was given.', {
      code: 'SECRET_KEY_MISSING',
      hint: 'Make a key with `openssl rand -base64 32`, keep it apart from the data, and pass it as `secretKey` (the command reads SKEIN_SECRET_KEY). `keepsSecretKeyWithData: true` makes a key beside the data, which protects nothing from whoever can copy the data.',
    })
  const key = file === undefined ? await storedVaultKey(store) : openVaultKey(file)
  return aesVault({ key, oldKeys })
}

function keyBytes(key: Uint8Array | string): Uint8Array {
  if (typeof key !== 'string') return key
  const bytes = /^[A-Za-z0-9+/_-]{43}=?$/.test(key.trim()) ? Buffer.from(key, 'base64') : undefined
  if (bytes?.length === KEY_BYTES) return bytes
  throw new RuntimeError('A secret key is not 32 bytes in base64.', {
    code: 'KEY_INVALID',
    hint: 'Make one with `openssl rand -base64 32`.',
  })
}

const SETTING = 'vault_key'

/** Reads or creates a key in the store itself, for stores that have no folder. */
async function storedVaultKey(store: Store): Promise<Uint8Array> {
  const storedKey = (await store.setting(SETTING))?.['key']
  if (typeof storedKey === 'string') return Buffer.from(storedKey, 'base64')
  const key = randomBytes(32)
  await store.setSetting(SETTING, { key: key.toString('base64') })
  return key
}
