import type { TreeEvent } from '@skein/runtime/client'

/** One line for what is worth one; undefined for the rest. Children are indented beneath their parents. */
export function progressLine(
  { path, event }: TreeEvent,
  { isVerbose, isDialogue }: { readonly isVerbose: boolean; readonly isDialogue: boolean },
): string | undefined {
  // What an agent says to a person is the answer, and shown as such.
  const isAnswer = event.type === 'message_added' && path.length === 1 && !isDialogue
  const words = isAnswer ? undefined : wordsFor(event, isVerbose)
  if (words === undefined) return undefined
  const depth = path.length - 1
  return depth === 0 ? words : `${'  '.repeat(depth)}${path.at(-1)}: ${words}`
}

function wordsFor(event: TreeEvent['event'], isVerbose: boolean): string | undefined {
  switch (event.type) {
    case 'tool_execution_start':
      return `tool ${event.toolName}${isVerbose ? ` ${JSON.stringify(event.arguments)}` : ''}`
    case 'tool_execution_end':
      if (event.outcome === 'success') return undefined
      return `tool ${event.toolName}: ${event.outcome}${isVerbose ? ` ${JSON.stringify(event.result)}` : ''}`
    case 'message_added':
      return isVerbose ? spoken(event) : undefined
    case 'subagent_created':
      // The call that made it has its own line.
      return event.toolCallId === undefined ? `subagent ${event.name}` : undefined
    case 'agent_handoff':
      return `handed over to ${event.toAgentId}`
    case 'step_failed':
      return `model call failed: ${event.message}${event.retryAt === undefined ? '' : ' (tried again)'}`
    case 'gate_decided':
      if (event.decision !== 'repair') return undefined
      return `not delivered yet: ${(event.reasonCodes ?? []).join(', ')}`
    default:
      return undefined
  }
}

function spoken({
  message,
  agentId,
}: Extract<TreeEvent['event'], { type: 'message_added' }>): string | undefined {
  if (message.type !== 'assistant') return undefined
  const text = message.content.map((block) => ('text' in block ? block.text : '')).join('')
  return text === '' ? undefined : `${agentId ?? 'agent'} says: ${text}`
}
