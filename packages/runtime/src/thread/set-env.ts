import { RuntimeError } from '../error.ts'
import type { EnvEntry, KernelState } from '../state.ts'
import type { EnvSet } from '../event.ts'
import type { ThreadState } from '../thread-state.ts'
import { checkEnvName, createEnvReader, type EnvReader, scopedNames } from './env.ts'
import { envContext, type Vault } from '../secrets/vault.ts'
import type { Registry } from '../definitions/resolved.ts'
import type { Store, ThreadChange, ThreadHead } from '../store/store.ts'
import { descendantsOf } from '../store/descendants.ts'
import type { FacadeBuffer } from './buffer.ts'

const MAX_VALUE_BYTES = 64 * 1024

type EnvMembers = Pick<ThreadState, 'env' | 'hasEnv' | 'envType' | 'setEnv'>

interface FacadeEnv extends EnvMembers {
  /** Every secret value, with those that were set here. */
  secrets(): string[]
  clear(): void
}

/** Variables of a thread with what was set but not committed. */
export function facadeEnv(
  { kernel, environment, events, at }: FacadeBuffer,
  env: EnvReader,
): FacadeEnv {
  const pending = new Map<string, EnvEntry | null>()
  const reader = env.over(pending)
  const known = new Set<string>()
  return {
    env: (name) => reader.require(name),
    hasEnv: (name) => reader.get(name) !== undefined,
    envType: (name) => reader.typeOf(name),
    setEnv(name, value, { type } = {}) {
      // What is a secret stays one, whatever the caller says.
      const valueType = reader.isSecret(name) ? 'secret' : (type ?? 'text')
      // A child that changes a value it was given does not begin to hand it on.
      const isScoped = kernel.env.get(name)?.isScoped ?? false
      const { threadId } = kernel
      const { vault } = environment
      const event = envSet({ name, value, valueType, threadId, vault, at: at(), isScoped })
      events.push(event)
      if (value !== null && valueType === 'secret') known.add(value)
      const entry = event.value === null ? null : { type: valueType, value: event.value, isScoped }
      pending.set(name, entry)
    },
    secrets: () => [...new Set([...reader.secrets(), ...known])],
    clear: () => pending.clear(),
  }
}

/** The event that sets a variable of a thread, sealed when it is a secret; null removes it. */
export function envSet(options: {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
  readonly threadId: string
  readonly vault: Vault
  readonly at: string
  readonly isScoped?: boolean
}): EnvSet {
  const { name, value, valueType, threadId, vault, at, isScoped } = options
  checkEnvName(name)
  const kept = value === null ? null : checkEnvValue(name, value)
  const isSealed = kept !== null && valueType === 'secret'
  return {
    type: 'env_set',
    at,
    name,
    valueType,
    value: isSealed ? vault.seal(kept, envContext(threadId, name)) : kept,
    isScoped: isScoped || undefined,
  }
}

function checkEnvValue(name: string, value: string): string {
  if (typeof value === 'string' && Buffer.byteLength(value) <= MAX_VALUE_BYTES) return value
  throw new RuntimeError(`The value of the variable "${name}" is no text, or too long.`, {
    code: 'ENV_INVALID',
    hint: `Values are texts of at most ${MAX_VALUE_BYTES} bytes.`,
  })
}

/** A variable that was set, in the open. */
interface EnvSetting {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
}

interface InheritingEnv {
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
