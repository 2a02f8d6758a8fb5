import type { WaitingItem } from '@skein/runtime'
import { line, plural } from './format.ts'

/** Returns what a call does, for the confirmation of one that cannot be undone: `Refund: order O-7, amount 25.` */
export function effectText(item: Pick<WaitingItem, 'toolName' | 'arguments'>): string {
  const name = line(item.toolName, 60).replaceAll('_', ' ')
  const title = name.charAt(0).toUpperCase() + name.slice(1)
  const few = argumentsInWords(item.arguments)
  return few === '' ? `${title}.` : `${title}: ${few}.`
}

/** The first arguments of a call in words: `order O-7, amount 25`. */
function argumentsInWords(args: unknown): string {
  const entries = Object.entries(
    args && typeof args === 'object' && !Array.isArray(args) ? args : {},
  )
  const few = entries
    .slice(0, 3)
    .map(
      ([key, value]) =>
        `${line(key, 30)} ${line(typeof value === 'string' ? value : JSON.stringify(value), 40)}`,
    )
    .join(', ')
  return entries.length > 3 ? `${few} and ${entries.length - 3} more` : few
}

/** Whether a person is asked about a write of a session that failed, which was not undone by itself. */
export function isAboutUndo({ kind, question }: Pick<WaitingItem, 'kind' | 'question'>): boolean {
  return kind === 'in_doubt' && (question as { readonly undo?: unknown } | null)?.undo !== undefined
}

/** Returns a sentence that says what the call would do. The arguments of the call cannot change its wording. */
export function sentence(item: WaitingItem): string {
  const { toolName, kind, effectId, arguments: args, variables = [] } = item
  const name = line(toolName, 60)
  if (kind === 'variables')
    return `${name} needs ${plural(variables.length, 'value')} before it can start`
  const few = argumentsInWords(args)
  const what = few === '' ? name : `${name}: ${few}`
  if (isAboutUndo(item)) return `Not undone: ${what}`
  if (kind === 'in_doubt') return `Did it happen? ${what}`
  if (kind === 'input') return `An answer is needed for ${what}`
  return effectId === undefined ? `Run ${what}` : `Run the scheduled ${what}`
}
