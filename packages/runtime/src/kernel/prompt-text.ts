import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from './drain-context.ts'
import { runHooks } from './run-hooks.ts'

/** The system text of a side: its parts with variables, then the hooks, without secrets. Undefined for none. */
export async function systemText(
  context: DrainContext,
  side: ResolvedSide,
): Promise<string | undefined> {
  const env = context.env(side)
  const text = side.prompt.parts
    .map((part) => (part.type === 'text' ? part.content : (env.get(part.property) ?? '')))
    .join('')
  const seen = await runHooks(
    context,
    {
      side,
      name: 'after_system_message',
      args: (value: string | null) => [value ?? ''],
      fold: (_, answer) => answer,
    },
    text as string | null,
  )
  if (seen === null || seen === '') return undefined
  return context.redactor()?.text(seen) ?? seen
}
