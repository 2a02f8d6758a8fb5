import type { RuntimeEvent } from '../contract/event.ts'
import type { Redactor } from '../secrets/vault.ts'
import { type KernelState, registryOf } from '../state/kernel-state.ts'
import type { ThreadChange } from '../store/commit.ts'
import { threadSecrets } from '../thread/env.ts'
import type { ApiContext } from './api-context.ts'

/**
 * Removes the secrets of a thread from everything that a commit contains about it, so that they are never
 * stored. Every write of the API goes through this function. `secrets` are additional secrets, e.g. those that
 * were set just now.
 */
export function redacted<T extends readonly ThreadChange[]>(
  context: ApiContext,
  state: SecretState,
  changes: T,
  secrets: readonly string[] = [],
): T {
  const redactor = redactorOf(context, state, secrets)
  if (!redactor) return changes
  return changes.map((change) => {
    const { append, create, head } = change
    return {
      ...change,
      append: append?.map((event) => (isVariable(event) ? event : redactor.json(event))),
      head: head && redactor.json(head),
      // The other columns of the new thread's row contain ids and names, not free text.
      create: create && {
        ...create,
        title: redactor.json(create.title),
        tags: redactor.json(create.tags),
      },
    }
  }) as unknown as T // one change for each change
}

/** Variables are not redacted: secrets among them are encrypted, and tools need the others as they are. */
function isVariable({ type }: RuntimeEvent): boolean {
  return type === 'env_set' || type === 'variables_provided'
}

/** The part of a thread's state that names its secrets. */
type SecretState = Pick<KernelState, 'agent' | 'env' | 'envSeq' | 'threadId'> &
  Partial<Pick<KernelState, 'session'>>

interface KnownRedactor {
  readonly agent: unknown
  readonly envSeq: number
  readonly redactor: Redactor | undefined
}

/** Caches the redactor of each state, because building a redactor takes longer than using it. */
const redactors = new WeakMap<SecretState, KnownRedactor>()

/** Returns the redactor of a thread's secrets; undefined if the thread has none. */
export function redactorOf(
  context: ApiContext,
  state: SecretState,
  more: readonly string[],
): Redactor | undefined {
  const agent = registryOf(context.registry, state).agents.get(state.agent)
  const entry = redactors.get(state)
  if (entry && more.length === 0 && entry.agent === agent && entry.envSeq === state.envSeq)
    return entry.redactor
  const secrets = new Set([...threadSecrets(context, state), ...more])
  const redactor = secrets.size > 0 ? context.vault.redactor(secrets) : undefined
  if (more.length === 0) redactors.set(state, { agent, envSeq: state.envSeq, redactor })
  return redactor
}
