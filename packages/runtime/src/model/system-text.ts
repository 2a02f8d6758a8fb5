import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { runHooks } from '../hooks/hooks.ts'

/**
 * Returns the system text of a side of the conversation: its parts with variables filled in, processed by the
 * hooks, without secrets. Undefined when it is empty.
 */
export async function systemText(
  context: DrainContext,
  side: ResolvedSide,
): Promise<string | undefined> {
  const env = context.env(side)
  const text = side.prompt.parts
    .map((part) => (part.type === 'text' ? part.content : (env.get(part.property) ?? '')))
    .join('')
  return hookedSystem(context, side, text)
}

/** Passes a system text through the hooks and removes secrets. Returns undefined when the result is empty. */
export async function hookedSystem(
  context: DrainContext,
  side: ResolvedSide,
  text: string,
): Promise<string | undefined> {
  const result = await runHooks(
    context,
    {
      side,
      name: 'after_system_message',
      args: (value: string | null) => [value ?? ''],
      fold: (_, answer) => answer,
    },
    text as string | null,
  )
  if (result === null || result === '') return undefined
  return context.redactor()?.text(result) ?? result
}
