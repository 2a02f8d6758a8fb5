import type { JsonObject, JsonValue } from '@skein/base'
import type { ToolChoice } from '../contract/provider.ts'

/** Writes a tool choice as OpenAI's two APIs do; `named` writes the name of one tool. */
export function openaiChoice(
  choice: ToolChoice | undefined,
  named: (name: string) => JsonObject,
): JsonValue | undefined {
  return typeof choice === 'object' ? { type: 'function', ...named(choice.tool) } : choice
}
