import type { Child, KernelState } from '../kernel/state.ts'
import type { SubagentRegistryEntry } from '../thread-state.ts'

/**
 * The children that a thread can still reach (§7.11): resumable ones for good, others while they live.
 * `status` is the text that a running child published, else its lifecycle.
 */
export function childRegistry({
  children,
}: Pick<KernelState, 'children'>): SubagentRegistryEntry[] {
  return [...children.values()].filter(isListed).map(toEntry)
}

function isListed({ created, lifecycle }: Child): boolean {
  if (created.isResumable) return true
  return lifecycle === 'running' || lifecycle === 'idle' || lifecycle === 'awaiting_human'
}

function toEntry({ created, lifecycle, statusText }: Child): SubagentRegistryEntry {
  const { reference, name, title, description = '', threadName, spawnGroupId } = created
  return {
    reference,
    name,
    ...(title !== undefined && { title }),
    description,
    resumable: created.isResumable ?? false,
    blocking: created.isBlocking ?? false,
    ...(threadName !== undefined && { threadName }),
    ...(spawnGroupId !== undefined && { spawnGroupId }),
    createdAt: Date.parse(created.at) * 1000,
    status: lifecycle === 'running' && statusText ? statusText : shown(lifecycle),
    parentCommunication: created.parentCommunication,
  }
}

/** A resumable child that has finished waits for its next message. */
function shown(lifecycle: Child['lifecycle']): string {
  return lifecycle === 'completed' ? 'idle' : lifecycle
}
