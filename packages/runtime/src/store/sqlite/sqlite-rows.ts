import type { SQLOutputValue } from 'node:sqlite'
import { rowSum, unpackText } from './packed-text.ts'
import type { RuntimeEvent, StoredEvent } from '../../contract/event.ts'
import { StoreError } from '../store-error.ts'
import type { UserValue } from '../user-value.ts'

/** A row as SQLite returns it. */
export type Row = Record<string, SQLOutputValue>

/** Converts a row of the table `events`; throws `STORE_CORRUPT` if its checksum is wrong. */
export function eventFrom(threadId: string, row: Row): StoredEvent {
  const seq = row['seq'] as number
  const json = textFrom(threadId, seq, row['json'], row['sum'])
  if (json === undefined) throw damaged(`Event ${seq} of thread ${threadId}`)
  return { seq, event: JSON.parse(json) as RuntimeEvent }
}

/** Returns the text of a row, packed or not; undefined if its checksum is wrong. */
export function textFrom(
  key: string,
  number: number,
  content: unknown,
  sum: unknown,
): string | undefined {
  // Damage to the header of a row may also change the type of a column.
  if (typeof content !== 'string' && !(content instanceof Uint8Array)) return undefined
  return rowSum(key, number, content) === sum ? unpackText(content) : undefined
}

/** Converts a row of the table `user_values`; throws `STORE_CORRUPT` if its checksum is wrong. */
export function userValueFrom(row: Row): UserValue {
  const [tenant, user, key] = [row['tenant'], row['user'], row['key']].map(String)
  const { json, version } = row
  const sum = rowSum(userValueName(tenant!, user!, key!), Number(version), String(json))
  if (typeof json !== 'string' || sum !== row['sum'])
    throw damaged(`The value "${key}" of the user ${user} of ${tenant}`)
  const value = JSON.parse(json) as UserValue['value']
  return { key: key!, value, version: Number(version), updatedAt: String(row['updated_at']) }
}

/** Names a row of `user_values`, for its checksum. */
export function userValueName(tenant: string, user: string, key: string): string {
  return JSON.stringify([tenant, user, key])
}

/** Creates the error for a row whose content differs from what was written. */
export function damaged(what: string, why = 'its checksum is wrong'): StoreError {
  return new StoreError(`${what} is damaged: ${why}.`, {
    code: 'STORE_CORRUPT',
    hint: 'Run `skein store verify` to see what else is damaged, and open a backup.',
  })
}
