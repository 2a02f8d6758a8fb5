import type { Thread } from './types.ts'

/** The label before another agent's text: `{agent:NAME}: `, with the name of the registry. */
export function labelOf(thread: Thread, agentId: string): string {
  const agent = Object.hasOwn(thread.agents, agentId) ? thread.agents[agentId] : undefined
  return `{agent:${encodeName(agent?.agent_name ?? agentId)}}: `
}

/**
 * Names that could end the label early or start a new line are percent-encoded; different names stay different, and
 * ordinary names stay as they are.
 */
function encodeName(name: string): string {
  return name.replace(/[{}\p{Cc}\p{Zl}\p{Zp}]|%(?=[0-9A-Fa-f]{2})/gu, (character) =>
    encodeURIComponent(character),
  )
}

const LOOK_ALIKE = /\\*\{\s*agent\s*:/giu

/** Marks every look-alike of a label with a backslash; one that has backslashes gets one more, so it can be undone. */
export function escapePrefixes(text: string): string {
  return text.includes('{') ? text.replace(LOOK_ALIKE, '\\$&') : text
}

/** Undoes `escapePrefixes`, for text that a model quotes back. */
export function unescapePrefixes(text: string): string {
  return text.replace(/\\(\\*\{\s*agent\s*:)/giu, '$1')
}
