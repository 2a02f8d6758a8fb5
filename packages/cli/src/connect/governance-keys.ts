import { readFileSync, statSync } from 'node:fs'
import type { GovernanceKeys } from '@skein/runtime'
import { type JsonObject, tryParseJson } from '@skein/base'

/** Reads the keys that sign approvals and audit logs, from the file of `skein keys` or from a folder. */
export async function readGovernanceKeys(path: string): Promise<GovernanceKeys> {
  const { openGovernanceKeys } = await import('@skein/runtime')
  if (statSync(path).isDirectory()) return openGovernanceKeys({ folder: path })
  const keys = tryParseJson(readFileSync(path, 'utf8')) as JsonObject // checked by `checkSettings`
  const setting = async (): Promise<JsonObject> => keys
  return openGovernanceKeys({ store: { setting, setSetting: async () => undefined } })
}
