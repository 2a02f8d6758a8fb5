import type { Relation, ResolvedAgent } from '../definitions/resolved.ts'

/** Variables that belong to some of an agent's children alone; the others do not inherit them. */
export function scopedNames(agent: ResolvedAgent): ReadonlySet<string> {
  const names = relationsOf(agent).flatMap(({ scopedEnv, requiredVariables }) => [
    ...scopedEnv,
    ...requiredVariables.map(({ name }) => name),
  ])
  return new Set(names)
}

/** Variables that no model may see: those handed to children, but for what is declared as a hint (§7.6). */
export function hiddenNames(agent: ResolvedAgent): readonly string[] {
  const relations = relationsOf(agent)
  const hints = relations.flatMap(({ nameEnv, descriptionEnv }) => [nameEnv, descriptionEnv])
  const shown = new Set(hints)
  return relations.flatMap(({ scopedEnv }) => scopedEnv).filter((name) => !shown.has(name))
}

function relationsOf({ a, b }: ResolvedAgent): readonly Relation[] {
  return [a, b].flatMap((side) =>
    (side?.prompt.tools ?? []).flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation] : [])),
  )
}
