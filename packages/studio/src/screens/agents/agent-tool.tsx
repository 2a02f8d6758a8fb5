import { useState, type FormEvent, type ReactNode } from 'react'
import { GitBranch, Hand } from '../../icons/lucide.ts'
import { ArgumentsFields, firstArguments, readArguments } from '../../parts/arguments.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { duration, line } from '../../parts/format.ts'
import { To } from '../../parts/link.tsx'
import { Json } from '../../parts/json.tsx'
import { useStore } from '../../state/store.ts'
import { useStudio } from '../../state/studio.ts'
import type { SideDetail } from './agent-screen.tsx'

type ToolDetail = SideDetail['tools'][number]

export function AgentToolView({
  agent,
  side,
  tool,
}: {
  readonly agent: string
  readonly side: string
  readonly tool: ToolDetail
}): ReactNode {
  const { me } = useStudio()
  const isPlayground = useStore(me)?.server.playground === true
  const isAgent = tool.agent !== undefined
  const isRisky = tool.risk === 'write_high_risk'
  return (
    <li>
      <details>
        <summary>
          {isAgent ? (
            <GitBranch size={14} className="model-ink" aria-hidden />
          ) : isRisky ? (
            <Hand size={14} className="waits" aria-hidden />
          ) : (
            <i className="dot done" aria-hidden />
          )}
          <code className={isAgent ? 'model-ink' : 'tool-ink'}>{line(tool.name, 60)}</code>
          <span className="cut soft">{line(tool.description, 160)}</span>
          <span className="small soft">
            {[kindWord(tool), undoWord(tool)].filter(Boolean).join(' · ')}
          </span>
        </summary>
        {isPlayground && tool.kind === 'tool' && side === 'a' && (
          <TryTool agent={agent} tool={tool} />
        )}
        <p className="small soft">Schema of its arguments</p>
        <Json
          value={tool.parameters ?? 'no arguments'}
          label={`Schema of ${line(tool.name, 60)}`}
        />
        {tool.agent !== undefined && (
          <p className="small">
            Starts{' '}
            <To className="link" address={{ screen: 'agent', agent: tool.agent }}>
              {line(tool.agent, 60)}
            </To>
            {tool.isBlocking === false ? ' in the background' : ''}
          </p>
        )}
      </details>
    </li>
  )
}

/** A form that calls a single tool, without a model. The policy applies, so a high-risk call waits for a person. */
function TryTool({
  agent,
  tool,
}: {
  readonly agent: string
  readonly tool: ToolDetail
}): ReactNode {
  const { client } = useStudio()
  const [text, setText] = useState(() => firstArguments(tool.parameters))
  const [tried, setTried] = useState<Awaited<ReturnType<typeof client.agents.tryTool>>>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      setTried(await client.agents.tryTool(agent, tool.name, JSON.parse(text)))
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="stack try-tool" onSubmit={(event) => void submit(event)}>
      <ArgumentsFields text={text} setText={setText} schema={tool.parameters} />
      <div className="btns">
        <button className="btn" disabled={isBusy || typeof readArguments(text) === 'string'}>
          Run this tool once
        </button>
        {tried && (
          <span className="soft small" role="status">
            {tried.waiting.length > 0 ? 'waiting for a person' : tried.outcome}
            {tried.durationMs !== undefined && ` · ${duration(tried.durationMs)}`} ·{' '}
            <To className="link" address={{ screen: 'thread', threadId: tried.threadId }}>
              its thread
            </To>
          </span>
        )}
      </div>
      {error !== undefined && <ErrorBox error={error} />}
      {tried?.result !== undefined && <Json value={tried.result} label="Result" />}
    </form>
  )
}

function kindWord({ kind, risk, isClientSide }: ToolDetail): string {
  if (kind === 'handoff') return 'takes over the conversation'
  if (kind === 'subagent') return 'starts a child thread'
  if (kind === 'prompt') return 'asks a model'
  if (isClientSide) return 'answered by a person or the client'
  return (
    {
      read_only: 'only reads',
      write_low_risk: 'low risk: writes',
      write_high_risk: 'high risk: a person decides',
    }[risk ?? ''] ??
    risk ??
    'no risk declared'
  )
}

function undoWord({ undo, risk, kind }: ToolDetail): string {
  if (kind !== 'tool' || risk === 'read_only' || risk === undefined) return ''
  return undo === 'yes' ? 'can be undone' : 'cannot be undone'
}
