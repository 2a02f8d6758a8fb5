import { callText } from '@skein/base/safe-text'
import type { WaitingItem } from '@skein/runtime'
import { isPlainObject } from '@skein/base'
import { lineText } from './table.ts'

/** Returns the question about a waiting call, and the commands that answer it. */
export function waitingLines(item: WaitingItem): string[] {
  const { threadId, interruptId, toolName, kind, path } = item
  const about = riskText(item)
  const call = callText(toolName, item.arguments)
  const from = path.length > 1 ? `${lineText(path.join(' › '))}: ` : ''
  if (kind === 'input') return [`waiting for an answer: ${from}${call}`]
  if (kind === 'in_doubt')
    return [
      `in doubt, because the process died during the call: ${from}${call}${about === '' ? '' : ` (${about})`}`,
      `  skein settle ${threadId} ${interruptId} --found applied`,
      `  skein settle ${threadId} ${interruptId} --found absent`,
    ]
  return [
    `waiting for approval: ${from}${call}${about === '' ? '' : ` (${about})`}`,
    ...sentLines(item),
    `  skein approve ${threadId} ${interruptId}`,
    `  skein deny ${threadId} ${interruptId} --reason "…"`,
  ]
}

/** Says what the model sent, if the tool has made other arguments of it. */
export function sentLines({ toolName, sentArguments }: WaitingItem): string[] {
  if (sentArguments === undefined) return []
  return [`  the model sent: ${callText(toolName, sentArguments)}`]
}

/** Returns the risk of a waiting call, and how the call can be undone; empty if neither is known. */
export function riskText({ risk, isIrreversible, request }: WaitingItem): string {
  const undo = isIrreversible ? 'cannot be undone' : undoText(request?.action.rollback)
  return [risk ?? '', undo].filter((text) => text !== '').join(', ')
}

/** Returns how a call can be undone; empty if nothing is known about that. */
export function undoText(rollback: unknown): string {
  if (!isPlainObject(rollback)) return ''
  const { type, target, payload } = rollback
  if (type === 'impossible') return 'cannot be undone'
  if (type === 'manual') return 'undone by hand'
  return typeof target === 'string' ? `undone by ${callText(target, payload ?? {})}` : ''
}
