import type { Registry } from '../definitions/resolved.ts'
import type { KernelState } from '../kernel/state.ts'
import type { Store, ThreadChange, ThreadHead } from '../store/store.ts'
import { descendantsOf } from '../store/thread-head.ts'
import { createEnvReader } from './env-reader.ts'
import { envSet } from './facade-env.ts'
import { scopedNames } from './scoped-names.ts'
import type { Vault } from './vault.ts'

/** A variable that was set, in the open. */
export interface EnvSetting {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
}

export interface InheritingEnv {
  readonly store: Store
  readonly registry: Registry
  readonly vault: Vault
  readonly instanceEnv: Readonly<Record<string, string>>
  at(): string
  /** The fold of a descendant. */
  load(threadId: string): Promise<KernelState | undefined>
}

/** The same setting for every live descendant, down to those that were given a value of their own. */
export async function inheritedEnv(
  parts: InheritingEnv,
  head: Pick<ThreadHead, 'id' | 'rootId' | 'agent'>,
  setting: EnvSetting,
): Promise<readonly ThreadChange[]> {
  const changes: ThreadChange[] = []
  const reached = new Map([[head.id, head.agent]])
  for (const { id, parentId, lifecycle, agent } of await descendantsOf(parts, head)) {
    const parent = parts.registry.agents.get(reached.get(parentId ?? '') ?? '')
    if (!parent || scopedNames(parent).has(setting.name)) continue
    const state = await parts.load(id)
    if (!state || state.env.get(setting.name)?.isScoped) continue
    reached.set(id, agent)
    if (lifecycle === 'terminated' || lifecycle === 'erased') continue
    const valueType = isSecret(parts, state, setting.name) ? 'secret' : setting.valueType
    const event = { ...setting, valueType, threadId: id, vault: parts.vault, at: parts.at() }
    changes.push({ id, append: [envSet(event)] })
  }
  return changes
}

/** What is a secret stays one, whoever sets it. */
export function isSecret(
  { registry, vault, instanceEnv }: Pick<InheritingEnv, 'registry' | 'vault' | 'instanceEnv'>,
  state: KernelState,
  name: string,
): boolean {
  const agent = registry.agents.get(state.agent)
  if (!agent) return state.env.get(name)?.type === 'secret'
  const { threadId } = state
  return createEnvReader({
    kernel: state,
    agent,
    instanceEnv,
    vault,
    threadId,
    side: 'a',
  }).isSecret(name)
}
