import type { JsonObject } from '@skein/base'
import { objectOf } from './read-json.ts'
import { requestError } from './wire-error.ts'

/**
 * Merges function tools and the vendor's own tools from `params.tools` into one list (UPP §11.4).
 * Function tools come first, so that the start of the list stays the same for the vendor's prompt cache.
 * Returns undefined if there are no tools.
 */
export function mergeTools({
  provider,
  tools,
  native,
  namesOf,
}: {
  readonly provider: string
  readonly tools: readonly JsonObject[]
  /** The caller's `params.tools`, unchecked. */
  readonly native: unknown
  /**
   * Returns the names that a tool declares; a name declared twice is rejected before the request is
   * sent.
   */
  readonly namesOf: (tool: JsonObject) => readonly unknown[]
}): readonly unknown[] | undefined {
  if (native === undefined) return tools.length > 0 ? tools : undefined
  if (!Array.isArray(native)) {
    throw requestError(provider, 'params.tools is not a list.', 'Give the tools in a list.')
  }
  const toolNames = new Set(tools.flatMap(namesOf))
  for (const tool of native as unknown[]) {
    const clash = namesOf(objectOf(tool) ?? {}).find((name) => toolNames.has(name))
    if (clash === undefined) continue
    throw requestError(
      provider,
      `The tool name ${JSON.stringify(clash)} is in both tools and params.tools.`,
      'Rename the function tool, or leave one of the two out.',
    )
  }
  return [...tools, ...(native as unknown[])]
}
