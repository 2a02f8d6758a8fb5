import { isPlainObject } from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import type { ApiContext } from './api-context.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import { cutOffOf, type CutOff } from '../governance/in-doubt.ts'

const CUT_OFF: Readonly<Record<CutOff, string>> = {
  crash: 'the process died',
  time_limit: 'its time limit passed',
  stop: 'was stopped',
  cut: 'was stopped by a new message',
}

/** Returns one sentence about what the person is asked for; the arguments are shown next to it. */
export function sentenceOf(
  { registry }: ApiContext,
  { kind, toolName, path, question, variables = [] }: WaitingItem,
): string {
  const [who, tool] = [path.at(-1) ?? '', toolName].map((text) => safeText(text, { isLine: true }))
  if (kind === 'variables') {
    const count = variables.length === 1 ? 'a value' : `${variables.length} values`
    return `${who} needs ${count} before it can start ${tool}.`
  }
  if (kind === 'input') return `${who} asks for the result of ${tool}.`
  const isAboutUndo = isPlainObject(question) && question['undo'] !== undefined
  if (isAboutUndo) return safeText(String(question['question']), { isLine: true })
  if (kind === 'in_doubt')
    return `${who} ran ${tool} and ${CUT_OFF[cutOffOf(question)]}: did it have its effect?`
  const about = registry.tools.get(toolName)?.description
  const text = about === undefined ? '' : `: ${safeText(about, { isLine: true, maxChars: 300 })}`
  return `${who} wants to run ${tool}${text}`
}
