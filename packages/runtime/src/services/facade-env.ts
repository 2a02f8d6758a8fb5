import { RuntimeError } from '../error.ts'
import type { EnvEntry } from '../kernel/state.ts'
import type { EnvSet } from '../event.ts'
import type { ThreadState } from '../thread-state.ts'
import { checkEnvName, type EnvReader } from './env-reader.ts'
import type { FacadeBuffer } from './facade-buffer.ts'
import { envContext, type Vault } from './vault.ts'

const MAX_VALUE_BYTES = 64 * 1024

export type EnvMembers = Pick<ThreadState, 'env' | 'hasEnv' | 'envType' | 'setEnv'>

export interface FacadeEnv extends EnvMembers {
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
    ...(isScoped && { isScoped }),
  }
}

function checkEnvValue(name: string, value: string): string {
  if (typeof value === 'string' && Buffer.byteLength(value) <= MAX_VALUE_BYTES) return value
  throw new RuntimeError(`The value of the variable "${name}" is no text, or too long.`, {
    code: 'ENV_INVALID',
    hint: `Values are texts of at most ${MAX_VALUE_BYTES} bytes.`,
  })
}
