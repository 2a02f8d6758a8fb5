import type { ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { escapeJson, safeText } from '@skein/base/safe-text'
import { Copy, Time, useNow } from './basics.tsx'
import { age, dateText, line, plural } from './format.ts'
import { Json } from './json.tsx'

const RISKS: Readonly<Record<string, string>> = {
  read_only: 'reads only',
  write_low_risk: 'low: writes',
  write_high_risk: 'high: writes, and needs a person',
  destructive: 'high: cannot be taken back',
}

export function AskFacts({ item }: { readonly item: WaitingItem }): ReactNode {
  const now = useNow()
  const { request, risk, expiresAt, isIrreversible, question } = item
  const rollback = request?.action.rollback
  return (
    <dl className="facts">
      {question !== undefined && item.kind !== 'in_doubt' && (
        <>
          <dt>Question</dt>
          <dd>
            {typeof question === 'string' ? (
              safeText(question)
            ) : (
              <Json value={question} label="Question" />
            )}
          </dd>
        </>
      )}
      <dt>{item.sentArguments === undefined ? 'Arguments' : 'Will run'}</dt>
      <dd>
        <Arguments value={item.arguments} />
      </dd>
      {item.sentArguments !== undefined && (
        <>
          <dt>Model sent</dt>
          <dd>
            <Arguments value={item.sentArguments} />
          </dd>
        </>
      )}
      {risk !== undefined && (
        <>
          <dt>Risk</dt>
          <dd>{RISKS[risk] ?? risk}</dd>
        </>
      )}
      {item.kind === 'approval' && (
        <>
          <dt>Undo</dt>
          <dd>
            {rollback !== undefined && isIrreversible !== true ? (
              <code>{line(undoText(rollback), 300)}</code>
            ) : (
              <b className="bad">cannot be undone</b>
            )}
          </dd>
        </>
      )}
      <dt>Asked</dt>
      <dd>
        <Time at={item.openedAt} className="num" />{' '}
        {age(now - Date.parse(item.openedAt)) !== 'now' && 'ago'}
        {expiresAt !== undefined && (
          <>
            {' · '}
            <span title={dateText(expiresAt)}>expires in {age(Date.parse(expiresAt) - now)}</span>
          </>
        )}
        {request !== undefined && (
          <>
            {' · '}
            <span className="one-line">
              digest <code title={request.digest}>{shortDigest(request.digest)}</code>{' '}
              <Copy text={request.digest} label="Copy the digest" />
            </span>
          </>
        )}
      </dd>
    </dl>
  )
}

/** Shows the arguments of a call in full: on one line if they are short, else in a box. */
function Arguments({ value }: { readonly value: unknown }): ReactNode {
  // In JSON, line breaks inside texts are escaped. So every real line break is between two values and can be removed.
  const text = escapeJson((JSON.stringify(value, null, 1) ?? 'null').replaceAll(/\n */g, ' '))
  if (text.length > 100) return <Json value={value} label="Arguments of the call" />
  return <code>{text}</code>
}

function undoText(rollback: unknown): string {
  if (!rollback || typeof rollback !== 'object') return String(rollback)
  const { target, payload } = rollback as { target?: unknown; payload?: unknown }
  return `${String(target ?? 'undo')} ${JSON.stringify(payload ?? {})}`
}

function shortDigest(digest: string): string {
  const hash = digest.replace(/^sha256:/, '')
  return `${hash.slice(0, 6)}…${hash.slice(-4)}`
}

/** Returns what a call does, for the confirmation of one that cannot be undone: `Refund: order O-7, amount 25.` */
export function effectText(item: Pick<WaitingItem, 'toolName' | 'arguments'>): string {
  const name = line(item.toolName, 60).replaceAll('_', ' ')
  const title = name.charAt(0).toUpperCase() + name.slice(1)
  const few = argumentsInWords(item.arguments)
  return few === '' ? `${title}.` : `${title}: ${few}.`
}

/** The first arguments of a call in words: `order O-7, amount 25`. */
function argumentsInWords(args: unknown): string {
  const entries = Object.entries(
    args && typeof args === 'object' && !Array.isArray(args) ? args : {},
  )
  const few = entries
    .slice(0, 3)
    .map(
      ([key, value]) =>
        `${line(key, 30)} ${line(typeof value === 'string' ? value : JSON.stringify(value), 40)}`,
    )
    .join(', ')
  return entries.length > 3 ? `${few} and ${entries.length - 3} more` : few
}

/** Whether a person is asked about a write of a session that failed, which was not undone by itself. */
export function isAboutUndo({ kind, question }: Pick<WaitingItem, 'kind' | 'question'>): boolean {
  return kind === 'in_doubt' && (question as { readonly undo?: unknown } | null)?.undo !== undefined
}

/** Returns a sentence that says what the call would do. The arguments of the call cannot change its wording. */
export function sentence(item: WaitingItem): string {
  const { toolName, kind, effectId, arguments: args, variables = [] } = item
  const name = line(toolName, 60)
  if (kind === 'variables')
    return `${name} needs ${plural(variables.length, 'value')} before it can start`
  const few = argumentsInWords(args)
  const what = few === '' ? name : `${name}: ${few}`
  if (isAboutUndo(item)) return `Not undone: ${what}`
  if (kind === 'in_doubt') return `Did it happen? ${what}`
  if (kind === 'input') return `An answer is needed for ${what}`
  return effectId === undefined ? `Run ${what}` : `Run the scheduled ${what}`
}
