import type { ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { escapeJson, safeText } from '@skein/base/safe-text'
import { Copy } from './copy.tsx'
import { Time, useNow } from './time.tsx'
import { age, dateText, line } from './format.ts'
import { Json } from './json.tsx'

const RISKS: Readonly<Record<string, string>> = {
  read_only: 'reads only',
  write_low_risk: 'low: writes',
  write_high_risk: 'high: writes, and needs a person',
  destructive: 'high: cannot be undone',
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
