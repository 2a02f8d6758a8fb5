import { memo, useMemo, useState, type ComponentType, type ReactNode } from 'react'
import { escapeJson } from '@skein/base/safe-text'
import { bytes } from './format.ts'
import { Copy } from './basics.tsx'

/** Larger values are shown in part; the rest is one click away, and its size is said. */
const PART_CHARS = 20_000

interface JsonProps {
  readonly value: unknown
  readonly label?: string
}

/**
 * A value as JSON. Characters that would hide, reorder or command are written as JSON escapes, so that what is
 * shown has the value that it shows.
 */
export const Json: ComponentType<JsonProps> = memo(function Json({
  value,
  label = 'Value',
}: JsonProps): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const text = useMemo(() => jsonText(value), [value])
  const isLong = text.length > PART_CHARS && !isWhole
  const shown = useMemo(() => escapeJson(isLong ? text.slice(0, PART_CHARS) : text), [text, isLong])
  return (
    <div className="json-box">
      <pre className="json" tabIndex={0} aria-label={label}>
        {shown.length <= PART_CHARS * 2 ? coloured(shown) : shown}
        {isLong && '…'}
      </pre>
      <Copy text={text} label={`Copy: ${label.toLowerCase()}`} />
      {isLong && (
        <button type="button" className="link small" onClick={() => setWhole(true)}>
          Show all: {bytes(text.length)}, of which {bytes(PART_CHARS)} are shown
        </button>
      )}
    </div>
  )
})

/** The JSON of any value, indented; a text that is JSON already is read first. */
export function jsonText(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'string' ? reparsed(value) : value
  return JSON.stringify(text, null, 2) ?? String(value)
}

function reparsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > 5_000_000) return text
  try {
    return JSON.parse(text)
  } catch {
    return text // a text that begins like JSON
  }
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|(\\u[\da-f]{4})/g

/** Keys, texts and numbers in their colours. */
function coloured(json: string): ReactNode {
  const parts: ReactNode[] = []
  let end = 0
  for (const match of json.matchAll(TOKEN)) {
    const [whole, text, colon, number, word] = match
    if (match.index > end) parts.push(json.slice(end, match.index))
    end = match.index + whole.length
    const kind =
      text === undefined ? ((number ?? word) === undefined ? 'u' : 'n') : colon ? 'k' : 's'
    parts.push(
      <span key={match.index} className={kind}>
        {whole}
      </span>,
    )
  }
  parts.push(json.slice(end))
  return parts
}
