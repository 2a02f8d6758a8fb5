import {
  Ban,
  CircleCheck,
  CircleHelp,
  CircleX,
  Clock,
  GitBranch,
  LoaderCircle,
  Undo2,
} from 'lucide-react'
import { memo, type ComponentType, type ReactNode } from 'react'
import type { ViewCall } from '@skein/runtime/view'
import type { CallFacts } from '../state/facts.ts'
import { useResource, useStudio, type Resource } from '../state/studio.ts'
import type { LoggedEvent } from '../state/tree.ts'
import { Checklist, EvidenceList } from './evidence.tsx'
import { ErrorBox, Time } from './basics.tsx'
import { duration, line } from './format.ts'
import { Json } from './json.tsx'

const STATES: Readonly<Record<ViewCall['state'], readonly [typeof Clock, string, string]>> = {
  requested: [Clock, 'soft', 'about to run'],
  waiting: [Clock, 'waits', 'waiting'],
  running: [LoaderCircle, 'runs', 'running'],
  success: [CircleCheck, 'good', 'done'],
  failed: [CircleX, 'bad', 'failed'],
  denied: [Ban, 'bad', 'denied'],
  interrupted: [Ban, 'soft', 'cut off'],
  retry: [Undo2, 'waits', 'sent back to the model'],
  unknown: [CircleHelp, 'bad', 'nobody knows whether it happened'],
}

interface CallViewProps {
  readonly threadId: string
  readonly call: ViewCall
  readonly facts: CallFacts | undefined
  readonly isOpen: boolean
  readonly isSelected: boolean
  readonly onToggle: (id: string) => void
  readonly onSelect: (id: string) => void
  /** What is shown below the call even when it is collapsed: a question to a person, a child thread. */
  readonly children?: ReactNode
}

/** A tool call on one line; its arguments, result, gate decisions and evidence open below it. */
export const CallView: ComponentType<CallViewProps> = memo(function CallView({
  threadId,
  call,
  facts,
  isOpen,
  isSelected,
  onToggle,
  onSelect,
  children,
}: CallViewProps): ReactNode {
  const [Icon, tone, word] = STATES[call.state]
  const isChild = call.childId !== undefined
  return (
    <div className={`call ${isSelected ? 'selected' : ''} ${isChild ? 'child' : ''}`}>
      <div className="call-line">
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Close' : 'Open'} ${line(call.toolName, 60)}`}
          onClick={() => onToggle(call.id)}
        />
        <button
          type="button"
          className="call-main"
          aria-pressed={isSelected}
          onClick={() => onSelect(call.id)}
          title="Show the details"
        >
          <Icon size={14} className={tone} aria-hidden />
          <span className="hidden">{word}: </span>
          {isChild && <GitBranch size={13} className="model-ink" aria-hidden />}
          <span className="call-text mono">
            <b className={isChild ? 'model-ink' : 'tool-ink'}>{line(call.toolName, 60)}</b>{' '}
            <span className="soft">{argumentsText(call)}</span>
            {call.result !== undefined && (
              <span>
                <span className="faint"> → </span>
                <span className={tone === 'bad' ? 'bad' : ''}>{resultText(call.result)}</span>
              </span>
            )}
          </span>
          <span className="soft num small">{tookText(call, facts)}</span>
        </button>
      </div>
      {facts?.answer && facts.interrupt?.kind === 'approval' && <DecisionLine facts={facts} />}
      {isOpen && <CallBody threadId={threadId} call={call} facts={facts} />}
      {children}
    </div>
  )
})

/** Who decided about a call, when and why. */
export function DecisionLine({ facts }: { readonly facts: CallFacts }): ReactNode {
  const { answer, changedTo } = facts
  if (!answer) return null
  const isYes = answer.type === 'approve'
  const word = changedTo === undefined ? (isYes ? 'Approved' : 'Denied') : 'Approved with changes'
  return (
    <p className="decision small">
      <b className={isYes || changedTo !== undefined ? 'person-ink' : 'bad'}>{word}</b>
      {answer.by !== undefined && <> by {line(answer.by, 60)}</>} ·{' '}
      <Time at={answer.at} className="num" isAgo />
      {answer.reason !== undefined && <> · “{line(answer.reason, 200)}”</>}
    </p>
  )
}

/** Everything about a call: arguments, result, gates, evidence. */
export function CallBody({
  threadId,
  call,
  facts,
}: {
  readonly threadId: string
  readonly call: ViewCall
  readonly facts: CallFacts | undefined
}): ReactNode {
  return (
    <div className="call-body">
      <h3>Arguments</h3>
      <Json value={call.arguments} label="Arguments" />
      {call.result !== undefined && (
        <>
          <h3>Result</h3>
          <Result threadId={threadId} call={call} wholeAt={facts?.wholeAt} />
        </>
      )}
      {call.result === undefined && facts?.progress !== undefined && (
        <>
          <h3>Progress</h3>
          <Json value={facts.progress} label="Progress" />
        </>
      )}
      {facts && facts.verdicts.length > 0 && (
        <>
          <h3>Gates</h3>
          <Checklist verdicts={facts.verdicts} />
        </>
      )}
      {facts && facts.evidence.length > 0 && (
        <>
          <h3>Evidence</h3>
          <EvidenceList evidence={facts.evidence} />
        </>
      )}
    </div>
  )
}

/** The result of a call. The rest of a long result is loaded when it is opened. */
function Result({
  threadId,
  call,
  wholeAt,
}: {
  readonly threadId: string
  readonly call: ViewCall
  readonly wholeAt: number | undefined
}): ReactNode {
  const whole = useWholeEvent(threadId, wholeAt)
  const event = whole.value
  const result =
    event?.type === 'tool_execution_end'
      ? event.result
      : event?.type === 'message_added' && event.message.type === 'tool_result'
        ? event.message.results.find(({ toolCallId }) => toolCallId === call.id)?.result
        : undefined
  if (whole.isLoading) return <p className="soft small">Reading the result …</p>
  return (
    <>
      {whole.error !== undefined && <ErrorBox error={whole.error} retry={whole.reload} />}
      <Json value={result ?? call.result} label="Result" />
    </>
  )
}

/** Loads a whole event of which the page has only a part. Loads nothing if `seq` is undefined. */
export function useWholeEvent(
  threadId: string,
  seq: number | undefined,
): Resource<LoggedEvent['event'] | undefined> {
  const { client } = useStudio()
  return useResource(seq === undefined ? undefined : `event ${threadId} ${seq}`, async () => {
    const [found] = await client.threads.events(threadId, { after: seq! - 1, limit: 1 })
    return found?.event
  })
}

/** The arguments on one line: `order: "O-7", countText: 25`. A click shows all of them. */
function argumentsText({ arguments: args }: ViewCall): string {
  if (!args || typeof args !== 'object' || Array.isArray(args)) return valueText(args)
  const entries = Object.entries(args)
  const shown = entries.slice(0, 8).map(([name, value]) => `${line(name, 40)}: ${valueText(value)}`)
  return [...shown, ...(entries.length > 8 ? [`${entries.length - 8} more`] : [])].join(', ')
}

function valueText(value: unknown): string {
  if (value === undefined) return ''
  return line(jsonStart(value), 160)
}

function resultText(result: unknown): string {
  return line(typeof result === 'string' ? result : jsonStart(result), 160)
}

/** More than a line shows. */
const MAX_START = 700

/** Returns the beginning of a value as JSON, without converting all of a large value. */
function jsonStart(value: unknown): string {
  let text = ''
  const write = (part: unknown): void => {
    if (typeof part === 'string') text += JSON.stringify(part.slice(0, MAX_START))
    else if (part === null || typeof part !== 'object') text += JSON.stringify(part) ?? 'null'
    else if (Array.isArray(part)) {
      text += '['
      for (let index = 0; index < part.length && text.length < MAX_START; index++) {
        if (index > 0) text += ','
        write(part[index])
      }
      text += ']'
    } else {
      text += '{'
      let separator = ''
      for (const name in part) {
        if (text.length >= MAX_START) break
        text += `${separator}${JSON.stringify(name)}:`
        write(part[name as never])
        separator = ','
      }
      text += '}'
    }
  }
  write(value)
  return text
}

function tookText({ state, at, endedAt }: ViewCall, facts: CallFacts | undefined): string {
  if (facts?.durationMs !== undefined) return duration(facts.durationMs)
  if (endedAt === undefined) return state === 'running' ? 'running' : ''
  return duration(Date.parse(endedAt) - Date.parse(facts?.startedAt ?? at))
}
