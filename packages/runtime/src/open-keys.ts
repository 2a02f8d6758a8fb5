import { join } from 'node:path'
import type { Timers } from './dispatch/dispatcher.ts'
import { openGovernanceKeys, type GovernanceKeys } from './governance/governance-keys.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { openVault } from './secrets/open-vault.ts'
import type { Vault } from './secrets/vault.ts'
import type { Store } from './store/store.ts'

/** Opens the keys of a runtime. All processes that share a store must have the same keys. */
export async function openKeys(
  options: RuntimeOptions,
  {
    store,
    timers,
    nodes,
  }: {
    readonly store: Store
    readonly timers: Timers
    readonly nodes: typeof import('./nodes/nodes.ts') | undefined
  },
): Promise<{ readonly vault: Vault; readonly keys: GovernanceKeys }> {
  const { folder } = options
  const open = async () => ({
    vault: await openVault(options, { folder, store }),
    keys:
      options.keys ??
      (await openGovernanceKeys(
        folder === undefined ? { store } : { folder: join(folder, 'keys') },
      )),
  })
  if (!nodes) return open()
  return nodes.openSharedKeys({ store, timers, options: options.nodes! }, open, (opened) => ({
    secretKeys: opened.vault.keyIds ?? [],
    approvals: opened.keys.approvals.kid,
    log: opened.keys.log.kid,
  }))
}
