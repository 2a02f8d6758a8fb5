import type { JsonObject } from '@skein/base'
import { objectOf } from './read-json.ts'
import { invalidRequest } from './wire-error.ts'

/**
 * Function tools and the vendor's own tools from `params.tools` in one list (UPP §11.4): ours
 * first, so that a prompt cache keeps them. Undefined when there are none.
 */
export function mergeTools({
  provider,
  tools,
  native,
  namesOf,
}: {
  readonly provider: string
  readonly tools: readonly JsonObject[]
  /** `params.tools` as the caller gave it. */
  readonly native: unknown
  /** The names a tool takes, so that two of one name are noticed before the vendor does. */
  readonly namesOf: (tool: JsonObject) => readonly unknown[]
}): readonly unknown[] | undefined {
  if (native === undefined) return tools.length > 0 ? tools : undefined
  if (!Array.isArray(native)) {
    throw invalidRequest(provider, 'params.tools is not a list.', 'Give the tools in a list.')
  }
  const taken = new Set(tools.flatMap(namesOf))
  for (const tool of native as unknown[]) {
    const clash = namesOf(objectOf(tool) ?? {}).find((name) => taken.has(name))
    if (clash === undefined) continue
    throw invalidRequest(
      provider,
      `The tool name ${JSON.stringify(clash)} is in both tools and params.tools.`,
      'Rename the function tool, or leave one of the two out.',
    )
  }
  return [...tools, ...(native as unknown[])]
}
