import { at, report } from './readers.ts'
import { mergeVariables } from './required-variables.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { LoadedPrompt } from './resolve-prompt.ts'
import type { LoadedTool } from './resolve-tools.ts'

/** Reports problems that can only be found when all agents are known. */
export function checkGraph(agents: readonly LoadedAgent[], prompts: readonly LoadedPrompt[]): void {
  for (const agent of agents) checkHandoffs(agent)
  checkImmediateCycles(agents)
  checkSecrets(agents, prompts)
}

/**
 * Reports handoffs from a `dual_ai` agent to an `ai_human` agent, because a `dual_ai` thread has no person.
 */
function checkHandoffs({ entry, type, prompts }: LoadedAgent): void {
  if (type !== 'dual_ai') return
  const visits = new Set<LoadedPrompt>()
  for (const { field, prompt } of prompts) {
    if (visits.has(prompt)) continue
    visits.add(prompt)
    for (const { resolved } of prompt.tools) {
      if (resolved.kind !== 'handoff') continue
      report(
        at(at(entry.place, field), 'prompt'),
        `a dual_ai agent cannot hand off, but its prompt "${prompt.resolved.name}" lists the ai_human agent "${resolved.name}"`,
      )
    }
  }
}

/**
 * Reports subagents that start by themselves (`immediate`) and create each other, because they would create
 * threads endlessly.
 */
function checkImmediateCycles(agents: readonly LoadedAgent[]): void {
  const byName = new Map(agents.map((agent) => [agent.entry.name, agent]))
  const finishedAgents = new Set<LoadedAgent>()
  const path: { agent: LoadedAgent; tool: LoadedTool }[] = []

  function visit(agent: LoadedAgent): void {
    if (finishedAgents.has(agent)) return
    const tools = new Set(agent.prompts.map(({ prompt }) => prompt).flatMap((one) => one.tools))
    for (const tool of tools) {
      const { resolved, place } = tool
      if (resolved.kind !== 'subagent' || !resolved.relation.isImmediate) continue
      const target = resolved.relation.agent
      path.push({ agent, tool })
      const start = path.findIndex((step) => step.agent.entry.name === target)
      const next = byName.get(target)
      if (start >= 0) {
        const names = [...path.slice(start), path[start]!].map((step) => step.agent.entry.name)
        report(
          at(path[start]?.tool.place ?? place, 'immediate'),
          `immediate subagents create each other without end: ${names.join(' → ')}`,
        )
      } else if (next) visit(next)
      path.pop()
    }
    finishedAgents.add(agent)
  }

  for (const agent of agents) visit(agent)
}

/** Reports secrets in the text of a prompt, because they would be sent to the vendor and stored in logs. */
function checkSecrets(agents: readonly LoadedAgent[], prompts: readonly LoadedPrompt[]): void {
  const names = new Set<string>()
  const together = [
    ...agents.map((agent) => agent.prompts.map(({ prompt }) => prompt)),
    ...prompts.map((prompt) => [prompt]),
  ]
  for (const group of together) {
    const variables = mergeVariables(group.flatMap(({ resolved }) => resolved.variables))
    const secrets = new Set(
      variables.filter(({ type }) => type === 'secret').map(({ name }) => name),
    )
    for (const { part, place } of group.flatMap(({ unfolded }) => unfolded.parts)) {
      if (part.type !== 'env' || !secrets.has(part.property)) continue
      const key = `${place.subject}\n${place.field}`
      if (names.has(key)) continue
      names.add(key)
      report(
        at(place, 'property'),
        `"${part.property}" is declared as a secret, and secrets must not be in a prompt; read it in a tool with state.env`,
      )
    }
  }
}
