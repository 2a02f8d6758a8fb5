import { memo, type ComponentType, type ReactNode } from 'react'
import type { ViewCall } from '@skein/runtime/view'
import {
  Ban,
  CircleCheck,
  CircleHelp,
  CircleX,
  ClockIcon as Clock,
  GitBranch,
  LoaderCircle,
  Undo2,
} from '../icons/lucide.ts'
import type { CallFacts } from '../state/facts.ts'
import { useResource, type Resource } from '../state/resource.ts'
import { useStudio } from '../state/studio.ts'
import type { LoggedEvent } from '../state/tree.ts'
import { Checklist } from './checklist.tsx'
import { EvidenceList } from './evidence.tsx'
import { ErrorBox } from './error-box.tsx'
import { Time } from './time.tsx'
import { duration, line } from './format.ts'
import { Json } from './json.tsx'

/** How the states of a call are drawn. Their words are those of the API and of the command. */
const STATES: Readonly<Record<ViewCall['state'], readonly [typeof Clock, string]>> = {
  requested: [Clock, 'soft'],
  waiting: [Clock, 'waits'],
  running: [LoaderCircle, 'runs'],
  success: [CircleCheck, 'good'],
  failed: [CircleX, 'bad'],
  denied: [Ban, 'bad'],
  interrupted: [Ban, 'soft'],
  retry: [Undo2, 'waits'],
  unknown: [CircleHelp, 'bad'],
}

/** What the words mean that do not say it by themselves. */
const MEANINGS: Partial<Readonly<Record<ViewCall['state'], string>>> = {
  requested: 'about to run',
  interrupted: 'not run, or stopped',
  retry: 'sent back to the model',
  unknown: 'it may have happened',
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

/** The state of a call in words, the same wherever a call is shown. */
export function callWords({ state, late }: Pick<ViewCall, 'state' | 'late'>): string {
  const meaning = MEANINGS[state]
  const words = meaning === undefined ? state : `${state} (${meaning})`
  return late === undefined ? words : `${state}, but it ended later: ${late.outcome}`
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
  const [Icon, tone] = STATES[call.late?.outcome ?? call.state]
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
          <span className="hidden">{callWords(call)}: </span>
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
      {facts && <DecisionLine facts={facts} />}
      <LateLine call={call} />
      <UndoLine call={call} />
      {isOpen && <CallBody threadId={threadId} call={call} facts={facts} />}
      {children}
    </div>
  )
})

/** Which questions about a call people answer, and the word for the answer. Children and timers are no questions. */
const ANSWERED: Readonly<Record<string, string>> = {
  approval: 'Approved',
  input: 'Answered',
  in_doubt: 'Settled',
}

/** Who decided about a call, when and why. */
export function DecisionLine({ facts }: { readonly facts: CallFacts }): ReactNode {
  const { answer, changedTo, interrupt } = facts
  const kind = interrupt?.kind ?? ''
  const answerWord = ANSWERED[kind]
  if (!answer || answerWord === undefined) return null
  const isYes = kind !== 'approval' || answer.type === 'approve'
  const word = changedTo !== undefined ? 'Approved with changes' : isYes ? answerWord : 'Denied'
  return (
    <p className="decision small">
      <b className={isYes || changedTo !== undefined ? 'person-ink' : 'bad'}>{word}</b>
      {answer.by !== undefined && <> by {line(answer.by, 60)}</>} ·{' '}
      <Time at={answer.at} className="num" isAgo />
      {answer.reason !== undefined && <> · “{line(answer.reason, 200)}”</>}
    </p>
  )
}

/** How a call really ended, if the log had recorded before that its outcome was unknown. */
export function LateLine({ call: { late } }: { readonly call: ViewCall }): ReactNode {
  if (!late) return null
  const [Icon, tone] = STATES[late.outcome]
  return (
    <p className="decision small">
      <Icon size={13} className={`in-line ${tone}`} aria-hidden /> It ended later:{' '}
      <b className={tone}>{late.outcome}</b> · <Time at={late.at} className="num" isAgo /> ·{' '}
      <span className="mono">{resultText(late.result)}</span>
    </p>
  )
}

/** What became of a write when its session failed. */
const UNDONE: Readonly<Record<NonNullable<ViewCall['undo']>['status'], string>> = {
  done: 'undone',
  failed: 'not undone: the rollback failed',
  skipped: 'not undone: its tool has no rollback',
  manual: 'not undone: a person has to do it',
  impossible: 'not undone: it cannot be undone',
  in_doubt: 'not undone: it is unknown whether it happened',
  unknown: 'unknown whether it was undone',
}

export function UndoLine({ call: { undo } }: { readonly call: ViewCall }): ReactNode {
  if (!undo) return null
  return (
    <p className="decision small">
      The session failed:{' '}
      <b className={undo.status === 'done' ? '' : 'bad'}>{UNDONE[undo.status]}</b> ·{' '}
      <Time at={undo.at} className="num" isAgo />
      {undo.error !== undefined && <> · {line(undo.error, 200)}</>}
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
      {call.sentArguments !== undefined && (
        <>
          <h3>What the model sent</h3>
          <Json value={call.sentArguments} label="What the model sent" />
        </>
      )}
      {call.result !== undefined && (
        <>
          <h3>{call.late ? 'Result as it was recorded at the end of the call' : 'Result'}</h3>
          <Result threadId={threadId} id={call.id} start={call.result} wholeAt={facts?.wholeAt} />
        </>
      )}
      {call.late && (
        <>
          <h3>Result that came later</h3>
          <Result
            threadId={threadId}
            id={call.id}
            start={call.late.result}
            wholeAt={facts?.lateWholeAt}
          />
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
  id,
  start,
  wholeAt,
}: {
  readonly threadId: string
  readonly id: string
  /** The result, or its beginning if it is long. */
  readonly start: unknown
  readonly wholeAt: number | undefined
}): ReactNode {
  const whole = useWholeEvent(threadId, wholeAt)
  const event = whole.value
  const result =
    event?.type === 'tool_execution_end' || event?.type === 'late_result'
      ? event.result
      : event?.type === 'message_added' && event.message.type === 'tool_result'
        ? event.message.results.find(({ toolCallId }) => toolCallId === id)?.result
        : undefined
  if (whole.isLoading) return <p className="soft small">Loading the result …</p>
  return (
    <>
      {whole.error !== undefined && <ErrorBox error={whole.error} retry={whole.reload} />}
      <Json value={result ?? start} label="Result" />
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
  const facts = entries.slice(0, 8).map(([name, value]) => `${line(name, 40)}: ${valueText(value)}`)
  return [...facts, ...(entries.length > 8 ? [`${entries.length - 8} more`] : [])].join(', ')
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
