import type { DefinitionKind, Reads } from './definition-index.ts'
import { isKind } from './read-definition.ts'

/**
 * A value to be read. `from` is the place where it was found; it names a definition without a name in problems.
 */
export interface ListedDefinition {
  readonly kind: DefinitionKind
  readonly value: unknown
  readonly from: string
}

type Target = Omit<ListedDefinition, 'from'>

/** Functions that return the definitions to which a definition refers as objects and not by name. */
export const references: { readonly [Kind in DefinitionKind]?: (read: Reads[Kind]) => Target[] } = {
  agent({ sideA, sideB, hooks = [] }) {
    const sides = [sideA, sideB].filter((side) => side !== undefined)
    return [
      ...sides.flatMap((side) => [
        ...objects('prompt', [side.prompt]),
        ...objects('agent', side.subagents?.map((one) => one?.agent) ?? []),
        ...objects('tool', [
          side.stopTool,
          side.sessionStop?.name,
          side.sessionFail?.name,
          side.sessionStatus?.name,
        ]),
      ]),
      ...objects('hook', hooks),
    ]
  },
  prompt({ model, prompt = [], tools = [], hooks = [] }) {
    const includes =
      typeof prompt === 'string'
        ? []
        : prompt.flatMap((part) => (part?.type === 'include' ? [part.prompt] : []))
    const callables = tools.flatMap((tool) => {
      if (tool?.form === 'tool') return [tool.tool]
      if (tool?.form === 'agent') return [tool.agent]
      if (tool?.form === 'prompt') return [tool.prompt]
      return tool?.form === 'config' ? [tool.name] : []
    })
    return [
      ...models([model]),
      ...objects('prompt', includes),
      ...objects('hook', hooks),
      ...callables.flatMap((value) => {
        const kind = isKind(value, 'tool') ? 'tool' : isKind(value, 'prompt') ? 'prompt' : 'agent'
        return objects(kind, [value])
      }),
    ]
  },
  tool: ({ uses = [] }) => objects('tool', uses),
  model: ({ fallbacks = [] }) => models(fallbacks),
}

/** Selects the models that are definitions; models of vendors are not checked here. */
function models(references: readonly unknown[]): Target[] {
  return objects('model', references).filter(({ value }) => isKind(value, 'model'))
}

function objects(kind: DefinitionKind, references: readonly unknown[]): Target[] {
  return references
    .filter((value) => typeof value === 'object' && value !== null)
    .map((value) => ({ kind, value }))
}
