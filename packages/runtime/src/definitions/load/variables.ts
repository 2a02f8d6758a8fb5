import type { VariableDefinition } from '../types.ts'

/** One declaration per name. Where several differ, the stricter word counts: secret, required, scoped. */
export function mergeVariables(
  declared: Iterable<VariableDefinition>,
): readonly VariableDefinition[] {
  const merged = new Map<string, VariableDefinition>()
  for (const variable of declared) {
    const other = merged.get(variable.name)
    merged.set(variable.name, other ? stricter(other, variable) : variable)
  }
  return Object.freeze([...merged.values()])
}

function stricter(a: VariableDefinition, b: VariableDefinition): VariableDefinition {
  const description = a.description ?? b.description
  return {
    name: a.name,
    type: a.type === 'secret' || b.type === 'secret' ? 'secret' : 'text',
    required: a.required === true || b.required === true,
    scoped: a.scoped === true || b.scoped === true,
    ...(description !== undefined && { description }),
  }
}
