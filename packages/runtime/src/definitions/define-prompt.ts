import { frozenCopy } from './frozen-copy.ts'
import type { PromptDefinition } from './types.ts'

/**
 * Defines what one side is told and may use.
 *
 *     const supportPrompt = definePrompt({
 *       name: 'support',
 *       prompt: 'You help customers of a book shop.',
 *       model: anthropic('claude-sonnet-4-5'),
 *       tools: [findOrder],
 *     })
 */
export function definePrompt(prompt: Omit<PromptDefinition, 'kind'>): PromptDefinition {
  const fields = Object.entries(prompt).map(([key, value]) => [key, frozenCopy(value)])
  return Object.freeze({ ...Object.fromEntries(fields), kind: 'prompt' }) as PromptDefinition
}
