import type { RuntimeEvent } from '../event.ts'
import type { SubagentRegistryEntry } from '../thread-state.ts'
import { childRegistry } from '../services/child-registry.ts'
import type { DrainContext } from './drain-context.ts'
import { noteMessage } from './queue.ts'

const HEADING = 'Subagents of this thread:'

/** A line about the children, when it says something new: the history keeps it where it was. */
export function registryNote(context: DrainContext): readonly RuntimeEvent[] {
  const { state } = context
  const entries = childRegistry(state)
  // A child that came and went within one call was never spoken of.
  const told = state.registryText[state.session?.turn?.side ?? 'a']
  if (entries.length === 0 && told === undefined) return []
  const text = registryText(entries)
  return text === told ? [] : [noteMessage(context, text, 'registry')]
}

function registryText(entries: readonly SubagentRegistryEntry[]): string {
  if (entries.length === 0) return `${HEADING} none.`
  const lines = entries.map(({ reference, name, threadName, status, resumable }) => {
    const label = threadName === undefined ? name : `${name} "${threadName}"`
    return `- ${label} (reference: ${reference}): ${status}${resumable ? '' : ', not resumable'}`
  })
  return [HEADING, ...lines].join('\n')
}
