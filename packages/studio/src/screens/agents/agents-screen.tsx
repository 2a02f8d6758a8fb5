import type { ReactNode } from 'react'
import type { ThreadInfo } from '@skein/runtime'
import { Bot, Users } from '../../icons/lucide.ts'
import { CommandLine } from '../../parts/copy.tsx'
import { Empty, Skeleton } from '../../parts/placeholder.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { inOrder, type OrderedAgent } from '../../state/agent-order.ts'
import { useStore } from '../../state/store.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'
import { useTitle } from '../../state/title.ts'

/** All agents that threads can be created for. */
export function AgentsScreen(): ReactNode {
  const { client, lists } = useStudio()
  const agents = useResource('agents', () => client.agents.list())
  const { items: threads, isAll } = useStore(lists.threads)
  useTitle('Agents · Studio')
  return (
    <div className="page" tabIndex={0} role="region" aria-label="Agents">
      <div className="inner">
        <h1>Agents</h1>
        {agents.error !== undefined && <ErrorBox error={agents.error} retry={agents.reload} />}
        {agents.isLoading && <Skeleton lines={5} />}
        {agents.value?.length === 0 && (
          <Empty title="No agents">
            <p>An agent is a file in the definitions folder. A new project already has one:</p>
            <CommandLine text="npm create skein" />
          </Empty>
        )}
        <ul className="agent-list">
          {inOrder(agents.value ?? []).map((agent) => (
            <AgentRow
              key={agent.name}
              agent={agent}
              threads={threadsOf(threads, agent.name, isAll)}
            />
          ))}
        </ul>
      </div>
    </div>
  )
}

/** Returns how many of the loaded threads belong to an agent, as text. */
function threadsOf(threads: readonly ThreadInfo[], agent: string, isAll: boolean): string {
  const count = threads.filter((thread) => thread.agent === agent).length
  return isAll ? plural(count, 'thread') : `${count} of the latest ${threads.length} threads`
}

function AgentRow({
  agent,
  threads,
}: {
  readonly agent: OrderedAgent
  readonly threads: string
}): ReactNode {
  const { name, title, description, type, sides, calledBy } = agent
  const tools = sides.flatMap((side) => side.tools)
  const Icon = type === 'dual_ai' ? Users : Bot
  return (
    <li>
      <To className="agent-row" address={{ screen: 'agent', agent: name }}>
        <Icon size={16} className="model-ink" aria-hidden />
        <span>
          <b>{line(title ?? name, 80)}</b> <code className="soft">{line(name, 60)}</code>
          {description !== undefined && (
            <span className="soft block">{line(description, 200)}</span>
          )}
          {calledBy.length > 0 && (
            <span className="soft block small">Called by {line(calledBy.join(', '), 120)}.</span>
          )}
        </span>
        <span className="soft small">
          {[...new Set(sides.flatMap((side) => side.models))]
            .map((model) => line(model, 40))
            .join(', ')}
          {' · '}
          {plural(tools.length, 'tool')} · {threads}
        </span>
      </To>
    </li>
  )
}
