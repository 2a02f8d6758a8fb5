import type { Registry, ResolvedTool } from '@skein/runtime'
import { threadTree } from '../recorded/facts-of.ts'
import type { RecordedThread } from '../recorded/recorded-thread.ts'
import type { ListedEffect } from './listed-effect.ts'

/** The calls that a thread made and that would be made for real if it ran again. Reads are listed too. */
export function recordedEffects(
  thread: RecordedThread,
  registry: Registry,
  fromSeq = 0,
): readonly ListedEffect[] {
  return [...threadTree(thread)].flatMap(({ threadId, agent, calls }) =>
    calls
      .filter(
        ({ seq, startedAt }) =>
          (threadId !== thread.threadId || seq >= fromSeq) && startedAt !== undefined,
      )
      .flatMap(({ toolName, raw, parsed = raw }): ListedEffect[] => {
        const tool = toolNamed(registry, agent, toolName)
        // Handoffs, children and prompts as tools have no effect of their own.
        if (tool && tool.kind !== 'tool') return []
        const risk = tool?.tool.governance.risk ?? 'unknown'
        return [
          {
            threadId,
            toolName,
            arguments: parsed,
            risk,
            needsApproval: risk === 'write_high_risk',
          },
        ]
      }),
  )
}

function toolNamed(registry: Registry, agentName: string, name: string): ResolvedTool | undefined {
  const agent = registry.agents.get(agentName)
  return [agent?.a, agent?.b]
    .flatMap((side) => side?.prompt.tools ?? [])
    .find((tool) => tool.name === name)
}
