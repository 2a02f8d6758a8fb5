import type { ReactNode } from 'react'
import { TriangleAlert } from '../../icons/lucide.ts'
import { Skeleton } from '../../parts/placeholder.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { countText, line, plural } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Prose } from '../../parts/prose.tsx'
import { Json } from '../../parts/json.tsx'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'
import { useTitle } from '../../state/title.ts'
import { FirstMessage } from '../threads/start-pane.tsx'
import { AgentToolView } from './agent-tool.tsx'

/** The parts of one agent, with a field for a message to try it. */
export function AgentScreen({ agent: name }: { readonly agent: string }): ReactNode {
  const { client } = useStudio()
  const agent = useResource(`agent ${name}`, () => client.agents.get(name))
  useTitle(`${name} · Studio`)
  const { value } = agent
  return (
    <div className="page" tabIndex={0} role="region" aria-label="Agent">
      <div className="inner">
        <p className="crumbs small soft">
          <To className="link" address={{ screen: 'agents' }}>
            Agents
          </To>{' '}
          › {line(name, 60)}
        </p>
        {agent.error !== undefined && <ErrorBox error={agent.error} retry={agent.reload} />}
        {agent.isLoading && <Skeleton lines={8} />}
        {value && (
          <>
            <h1>{line(value.title ?? value.name, 80)}</h1>
            {value.description !== undefined && (
              <p className="soft">{line(value.description, 400)}</p>
            )}
            <Problems title="Edited definitions are not in use" problems={value.problems ?? []} />
            <Problems title="Warnings" problems={value.warnings ?? []} />
            <section className="try">
              <h2>Try it</h2>
              <FirstMessage agent={name} isPlayground />
            </section>
            {value.sides.map((side) => (
              <Side key={side.side} agent={name} side={side} isOnly={value.sides.length === 1} />
            ))}
            <Limits detail={value} />
          </>
        )}
      </div>
    </div>
  )
}

type AgentDetail = Awaited<ReturnType<ReturnType<typeof useStudio>['client']['agents']['get']>>
export type SideDetail = AgentDetail['sides'][number]

function Problems({
  title,
  problems,
}: {
  readonly title: string
  readonly problems: NonNullable<AgentDetail['problems']>
}): ReactNode {
  if (problems.length === 0) return null
  return (
    <section className="problems" role="status">
      <h2>
        <TriangleAlert size={15} aria-hidden /> {title}: {plural(problems.length, 'problem')}
      </h2>
      <ul>
        {problems.map((problem, index) => (
          <li key={index}>
            {line(
              Object.values(problem)
                .filter((part) => typeof part === 'string')
                .join(' · '),
              400,
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Side({
  agent,
  side,
  isOnly,
}: {
  readonly agent: string
  readonly side: SideDetail
  readonly isOnly: boolean
}): ReactNode {
  const { model } = side
  return (
    <section className="side">
      <h2>
        {line(side.label, 60)}{' '}
        {!isOnly && <span className="soft">side {side.side.toUpperCase()}</span>}
      </h2>
      <dl className="facts">
        <dt>Model</dt>
        <dd>
          {model ? (
            <>
              <code>{line([model.provider, model.name].filter(Boolean).join('/'), 100)}</code>
              {model.maxContextTokens !== undefined && (
                <span className="soft num">
                  {' '}
                  · {countText(model.maxContextTokens)} tokens of context
                </span>
              )}
              {Object.keys(model.settings).length > 0 && (
                <Json value={model.settings} label="Settings of the model" />
              )}
            </>
          ) : (
            <span className="soft">none: code answers for this side</span>
          )}
        </dd>
        <dt>Steps</dt>
        <dd>
          {side.maxSteps === null ? 'no limit' : `${side.maxSteps} at most`}
          {side.stopsOnResponse ? ', ends with an answer' : ', continues after an answer'}
        </dd>
        <dt>Prompt</dt>
        <dd>
          {side.text === undefined ? (
            <span className="soft">
              <code>{line(side.prompt, 60)}</code>; to see its text, you need the right to read logs
            </span>
          ) : (
            <div className="prompt">
              <Prose text={side.text} />
            </div>
          )}
        </dd>
      </dl>
      <h3>{plural(side.tools.length, 'tool')}</h3>
      <ul className="tool-list">
        {side.tools.map((tool) => (
          <AgentToolView key={tool.name} agent={agent} side={side.side} tool={tool} />
        ))}
      </ul>
    </section>
  )
}

function Limits({ detail }: { readonly detail: AgentDetail }): ReactNode {
  const { limits, taskClass, variables } = detail
  return (
    <section className="side">
      <h2>Limits and requirements</h2>
      <dl className="facts">
        <dt>Turns</dt>
        <dd>
          {limits.maxSessionTurns === null ? 'no limit' : `${limits.maxSessionTurns} in a session`}
        </dd>
        <dt>Budget</dt>
        <dd>{limits.budget === null ? 'none' : <Json value={limits.budget} label="Budget" />}</dd>
        <dt>Answers</dt>
        <dd>
          {taskClass === null
            ? 'delivered without a check'
            : `checked before they are delivered, by the rules of ${line(taskClass, 60)}`}
        </dd>
        <dt>Variables</dt>
        <dd>
          {variables.length === 0 && 'none'}
          {variables.map(({ name, type, required, description }) => (
            <p key={name}>
              <code>{line(name, 60)}</code>{' '}
              <span className="soft">
                {type === 'secret' ? 'secret, shown by its name only' : 'text'}
                {required && ', needed'}
                {description !== undefined && ` · ${line(description, 160)}`}
              </span>
            </p>
          ))}
        </dd>
      </dl>
    </section>
  )
}
