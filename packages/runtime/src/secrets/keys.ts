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
import { dirname } from 'node:path'
import { RuntimeError } from '../error.ts'
import type { Store } from '../store/store.ts'

/** The key that seals secrets: 32 bytes in a file that only its owner may read, made at the first start. */
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

/** Written whole before it has its name, so that two processes that start together agree on one key. */
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

/** A key kept in the store itself: for memory and tests, where there is no folder to keep it in. */
export async function storedVaultKey(store: Store): Promise<Uint8Array> {
  const known = (await store.setting(SETTING))?.['key']
  if (typeof known === 'string') return Buffer.from(known, 'base64')
  const key = randomBytes(32)
  await store.setSetting(SETTING, { key: key.toString('base64') })
  return key
}
