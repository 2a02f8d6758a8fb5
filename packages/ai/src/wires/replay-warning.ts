import type { AssistantContent } from '../contract/content.ts'
import type { Warning } from '../contract/turn.ts'

/** Told when reasoning of another vendor is left out. */
export const foreignReasoning: Warning = {
  code: 'foreign_reasoning_dropped',
  message: 'Reasoning of another vendor or API was left out of the history: it cannot be verified.',
}

/** An assistant block that cannot be said to this vendor. */
export function droppedBlock(block: AssistantContent, provider: string): Warning {
  const kind = block.type === 'native' ? `"${block.name}"` : block.type
  return {
    code: 'unsupported_block',
    message: `An assistant's ${kind} block cannot be sent to ${provider} and was left out.`,
  }
}
