import { randomBytes } from 'node:crypto'
import type { Store } from '../store/store.ts'

const SETTING = 'vault_key'

/** A key kept in the store itself: for memory and tests, where there is no folder to keep it in. */
export async function storedVaultKey(store: Store): Promise<Uint8Array> {
  const known = (await store.setting(SETTING))?.['key']
  if (typeof known === 'string') return Buffer.from(known, 'base64')
  const key = randomBytes(32)
  await store.setSetting(SETTING, { key: key.toString('base64') })
  return key
}
