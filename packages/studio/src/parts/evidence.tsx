import type { ReactNode } from 'react'
import { escapeJson, safeText } from '@skein/base/safe-text'
import { CircleDashed, ScrollText } from '../icons/lucide.ts'
import type { EvidenceFact } from '../state/facts.ts'
import { Time } from './time.tsx'
import { line } from './format.ts'
import { Json } from './json.tsx'

/**
 * Facts on which checks (gates) may base their decisions, each with its hash and a link to the call that produced it.
 */
export function EvidenceList({
  evidence,
  results,
  onSelect,
}: {
  readonly evidence: readonly EvidenceFact[]
  /** What the calls have returned, by their ids: where a person decides, the evidence itself is shown. */
  readonly results?: ReadonlyMap<string, EvidenceCall>
  readonly onSelect?: (toolCallId: string) => void
}): ReactNode {
  return (
    <ul className="check">
      {evidence.map((fact) => {
        const { toolCallId, summary, kind } = fact
        const text = line(summary ?? kind, 160)
        const hash = hashOf(fact)
        const call = toolCallId === undefined ? undefined : results?.get(toolCallId)
        return (
          <li key={fact.evidenceId}>
            <ScrollText size={14} className="good" aria-hidden />
            <span>
              {toolCallId !== undefined && onSelect ? (
                <button type="button" className="link" onClick={() => onSelect(toolCallId)}>
                  {text}
                </button>
              ) : (
                text
              )}{' '}
              {hash !== undefined && (
                <code className="faint small" title={hash}>
                  {hash.replace(/^sha256:/, '').slice(0, 10)}
                </code>
              )}
              {call && <EvidenceContent call={call} />}
            </span>
            <Time at={fact.at} className="soft num small" />
          </li>
        )
      })}
      {evidence.length === 0 && (
        <li className="soft">
          <CircleDashed size={14} aria-hidden />
          <span>None yet</span>
        </li>
      )}
    </ul>
  )
}

/** A call on which evidence is based. */
export interface EvidenceCall {
  readonly arguments: unknown
  readonly result?: unknown
}

/** What a call was asked and what it returned. */
function EvidenceContent({ call }: { readonly call: EvidenceCall }): ReactNode {
  const text = (value: unknown): string => escapeJson(JSON.stringify(value) ?? 'null')
  const resultText = typeof call.result === 'string' ? safeText(call.result) : text(call.result)
  if (resultText.length > MAX_LINE)
    return <Json value={call.result} label="What the call returned" />
  return (
    <code className="evidence-content">
      <span className="soft">{line(text(call.arguments), 200)} → </span>
      {resultText}
    </code>
  )
}

const MAX_LINE = 300

function hashOf({ data }: EvidenceFact): string | undefined {
  const { hash } = (data ?? {}) as { hash?: unknown }
  return typeof hash === 'string' ? hash : undefined
}
